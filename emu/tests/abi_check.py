#!/usr/bin/env python3
"""Compares our declarations with the public HIP headers: abi_check.py CLANG HEADERS ROOT.

Compares the prototypes of all functions that both declare, the values of enumerators and the sizes
of structures. Older headers may lack some declarations, so those of only one side are counted."""

import re
import subprocess
import sys
import tempfile

clang, headers, root = sys.argv[1:4]


def preprocess(text, *flags):
    done = subprocess.run([clang, "-x", "c++", "-std=c++20", "-E", "-P", *flags, "-"], input=text,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


ours = preprocess('#include "emu/hip/functions.h"\n', "-I", root)
theirs = preprocess("#include <hip/hip_runtime_api.h>\n#include <hip/hip_ext.h>\n", "-I", headers,
                    "-D__HIP_PLATFORM_AMD__")

ALIASES = {"unsigned int": "unsigned", "uint32_t": "unsigned", "hipDeviceptr_t": "void*",
           "hipDeviceProp_tR0600": "hipDeviceProp_t", "hipDeviceProp_tR0000": "hipDeviceProp_t",
           "hipLaunchParams_t": "hipLaunchParams", "GLuint": "unsigned", "GLenum": "unsigned",
           "hipKernelNodeAttrID": "hipLaunchAttributeID",
           "hipKernelNodeAttrValue": "hipLaunchAttributeValue",
           "hipGraphicsResource**": "hipGraphicsResource_t*"}
# Releases differ in the type of this number.
LOOSE = {"hipCtxGetApiVersion"}


def kind(argument):
    argument = re.sub(r"=.*", "", argument)
    argument = re.sub(r"\b(struct|enum)\b", "", argument)
    argument = re.sub(r"\s*\*\s*", "*", re.sub(r"\s+", " ", argument)).strip()
    match = re.match(r"^((?:const )?(?:unsigned long long|unsigned int|unsigned char|unsigned short|"
                     r"\w+))\s*((?:\*| const)*)", argument)
    base, stars = match.group(1), match.group(2)
    const = "const " if base.startswith("const ") else ""
    base = base.removeprefix("const ")
    text = const + ALIASES.get(base, base) + stars.replace(" const", "").replace(" ", "")
    return ALIASES.get(text, text)


def prototypes(text):
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", text)
    found = {}
    for match in re.finditer(r"\b(hipError_t|const char\s*\*|int)\s+(\w*hip\w+)\s*\(([^(){}]*)\)\s*;",
                             text):
        arguments = [a for a in match.group(3).split(",") if a.strip() not in ("", "void")]
        found[match.group(2)] = [kind(a) for a in arguments]
    return found


mine, real = prototypes(ours), prototypes(theirs)
both = sorted((set(mine) & set(real)) - LOOSE)
wrong = 0
for name in both:
    # Releases differ in the constness of what a char** points to.
    a = [x.replace("const ", "") for x in mine[name]]
    b = [x.replace("const ", "") for x in real[name]]
    if a != b:
        wrong += 1
        print(f"{name}: ours {mine[name]}, theirs {real[name]}")

enumerators = sorted(set(re.findall(r"\b(hip[A-Z]\w+|HIP_[A-Z_0-9]+) = ", ours)))
known = [e for e in enumerators if re.search(r"\b%s\b" % e, theirs)]
# These enumerators changed their numbers with HIP 6, which the library's name refers to.
changed = {"hipMemoryTypeHost", "hipMemoryTypeDevice", "hipMemoryTypeArray", "hipMemoryTypeUnified",
           "hipMemoryTypeManaged", "hipErrorTbd", "hipErrorRuntimeOther", "hipErrorRuntimeMemory",
           "hipLimitMallocHeapSize", "hipLimitRange", "hipLimitStackSize", "hipLimitPrintfFifoSize",
           "hipGraphNodeTypeCount", "hipGraphNodeTypeEmpty", "hipGraphNodeTypeEventRecord",
           "hipGraphNodeTypeGraph", "hipGraphNodeTypeHost", "hipGraphNodeTypeKernel",
           "hipGraphNodeTypeMemcpy", "hipGraphNodeTypeMemcpyFromSymbol",
           "hipGraphNodeTypeMemcpyToSymbol", "hipGraphNodeTypeMemset", "hipGraphNodeTypeWaitEvent"}
old = "hipMemoryTypeUnregistered" not in theirs
lines = ['#include <cstdio>']
program = "\n".join(f'  std::printf("{e} %lld\\n", (long long)({e}));' for e in known
                    if not (old and e in changed))


def numbers(include, *flags):
    with tempfile.TemporaryDirectory() as folder:
        source = f"#include <cstdio>\n{include}\nint main() {{\n{program}\n}}\n"
        done = subprocess.run([clang, "-x", "c++", "-std=c++20", "-w", *flags, "-", "-o",
                               folder + "/a"], input=source, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        out = subprocess.run([folder + "/a"], capture_output=True, text=True, check=True).stdout
        return dict(line.split() for line in out.splitlines())


a = numbers('#include "emu/hip/functions.h"', "-I", root)
b = numbers("#include <hip/hip_runtime_api.h>", "-I", headers, "-D__HIP_PLATFORM_AMD__")
for name in a:
    if a[name] != b[name]:
        wrong += 1
        print(f"{name}: ours {a[name]}, theirs {b[name]}")
print(f"{len(both)} prototypes and {len(a)} numbers compared, {wrong} differ; "
      f"{len(set(mine) - set(real))} functions are only ours")
sys.exit(1 if wrong else 0)
