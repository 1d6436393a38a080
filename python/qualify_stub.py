"""qualify_stub.py STUB: writes builtins.float for float in the annotations of class Tensor, whose
methods float(), int() and bool() would be meant otherwise. Does nothing where that is done."""

import ast
import pathlib
import sys

SHADOWED = {"float", "int", "bool"}


def annotations(function: ast.FunctionDef):
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg]:
        if argument is not None and argument.annotation is not None:
            yield argument.annotation
    if function.returns is not None:
        yield function.returns


def qualified(text: str) -> str:
    lines = text.split("\n")
    places = set()
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef) or node.name != "Tensor":
            continue
        for function in ast.walk(node):
            if isinstance(function, ast.FunctionDef):
                for annotation in annotations(function):
                    places |= {(name.lineno - 1, name.col_offset) for name in ast.walk(annotation)
                               if isinstance(name, ast.Name) and name.id in SHADOWED}
    # Offsets are of bytes, and what stands behind a place doesn't move it.
    for line, column in sorted(places, reverse=True):
        data = lines[line].encode()
        lines[line] = (data[:column] + b"builtins." + data[column:]).decode()
    if places and "import builtins\n" not in text:
        first = next(i for i, line in enumerate(lines) if line.startswith(("import ", "from ")))
        lines.insert(first, "import builtins")
    return "\n".join(lines)


def main() -> None:
    stub = pathlib.Path(sys.argv[1])
    stub.write_text(qualified(stub.read_text()))


if __name__ == "__main__":
    main()
