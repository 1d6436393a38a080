#!/usr/bin/env python3
"""snippets.py LANGUAGE FILE...: writes the code blocks of a language (cpp, python) in Markdown files to
standard output as one program, so that tests can run the documentation's code. Python blocks run one
after another; each C++ block becomes a scope of its own, preceded by its includes."""

import pathlib
import re
import sys


def blocks(language, path):
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def as_python(pages):
    parts = []
    for name, code in pages:
        parts += [f"# {name}", code]
    return "\n".join(parts)


def as_cpp(pages):
    includes, scopes = {"#include <cstdio>", "#include <exception>"}, []
    for name, code in pages:
        lines = code.splitlines()
        includes |= {line for line in lines if line.startswith("#include")}
        body = "\n".join("  " + line for line in lines if not line.startswith("#include"))
        scopes.append(f"void from_page_{len(scopes)}() {{  // {name}\n{body}\n}}\n")
    calls = "\n".join(f"  from_page_{i}();" for i in range(len(scopes)))
    return ("\n".join(sorted(includes)) + "\n\nnamespace {\n" + "\n".join(scopes) +
            "}  // namespace\n\nint main() try {\n" + calls +
            '\n} catch (const std::exception& e) {\n  std::fprintf(stderr, "%s\\n", e.what());\n  return 1;\n}\n')


def main():
    language, *files = sys.argv[1:]
    pages = [(pathlib.Path(f).name, code) for f in files for code in blocks(language, pathlib.Path(f))]
    if not pages:
        sys.exit(f"no block of {language} in {' '.join(files)}")
    print({"python": as_python, "cpp": as_cpp}[language](pages))


if __name__ == "__main__":
    main()
