#!/usr/bin/env python3
"""Gate: outside the instruction-set units no instruction needs more than the architecture's baseline.

  leak.py --build DIR         every object of the library outside the units
  leak.py --object OBJECT ...

Baselines: x86-64 with SSE2, Armv8.0-A with its SIMD, Armv7-A with VFPv3-D16 and no NEON.
"""
import argparse
import os
import re
import sys

import units
import objcode

# Armv8.0-A and Armv7-A as LLVM knows them: what is above decodes to <unknown>.
BASELINE = {
    "aarch64": ["--triple=aarch64-linux-gnu", "--mcpu=generic", "--mattr=+neon"],
    "arm": ["--triple=armv7-linux-gnueabihf", "--mattr=-neon,-d32,-vfp4,-fullfp16"],
}
X86_PREFIXES = {0x66, 0xF2, 0xF3, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65, 0x67, 0xF0}
# 0F xx beyond SSE2: SSE3 arithmetic and moves, POPCNT, LZCNT. TZCNT is left out: older cores read it as BSF, and compilers count on that.
X86_LATER = {(0xF2, 0x7C), (0x66, 0x7C), (0xF2, 0x7D), (0x66, 0x7D), (0xF2, 0xD0), (0x66, 0xD0), (0xF2, 0xF0), (0xF2, 0x12), (0xF3, 0x12),
             (0xF3, 0x16), (0xF3, 0xB8), (0xF3, 0xBD)}


def x86_above_baseline(code):
    """Whether one machine instruction needs more than SSE2, by its prefixes and opcode map."""
    at, mandatory = 0, 0
    while at < len(code) and code[at] in X86_PREFIXES:
        if code[at] in (0x66, 0xF2, 0xF3):
            mandatory = code[at]
        at += 1
    if at < len(code) and code[at] in (0xC4, 0xC5, 0x62):  # VEX, EVEX
        return True
    if at < len(code) and code[at] & 0xF0 == 0x40:  # REX
        at += 1
    if at + 1 >= len(code) or code[at] != 0x0F:
        return False
    if code[at + 1] in (0x38, 0x3A):  # SSSE3, SSE4, AES, SHA, MOVBE
        return True
    return (mandatory, code[at + 1]) in X86_LATER


def check(path):
    arch = objcode.architecture(path)
    if arch == "x86_64":
        return [f"{f.name}: {i.text}" for f in objcode.disassemble(path, code=True) for i in f.instructions
                if x86_above_baseline(i.code)]
    wrong = [f"{f.name}+{i.address - f.instructions[0].address:#x}: above the baseline"
             for f in objcode.disassemble(path, BASELINE[arch]) for i in f.instructions if "<unknown>" in i.text]
    if arch == "arm" and re.search(r"Tag_Advanced_SIMD_arch", objcode.output_of("readelf", "-A", path)):
        wrong.append("built for NEON")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build")
    parser.add_argument("--object", nargs="*", default=[])
    options = parser.parse_args()
    paths = units.objects(options.build)[1] if options.build else options.object
    failures = 0
    for path in paths:
        for sentence in check(path):
            failures += 1
            print(f"{os.path.relpath(path, options.build or '.')}: {sentence}")
    print(f"{len(paths)} objects, {failures} instructions above the baseline")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
