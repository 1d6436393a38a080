#!/usr/bin/env python3
"""Checks that a HIP runtime reports a major version: version_check.py LIBRARY MAJOR"""

import ctypes
import sys

library, wanted = sys.argv[1], int(sys.argv[2])
hip = ctypes.CDLL(library)
for function in (hip.hipRuntimeGetVersion, hip.hipDriverGetVersion):
    version = ctypes.c_int()
    code = function(ctypes.byref(version))
    if code != 0 or version.value // 10_000_000 != wanted:
        sys.exit(f"{library}: {function.__name__} gives {code} and version {version.value}, not {wanted}")
