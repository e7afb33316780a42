#!/usr/bin/env python3
"""Shows that every gate can fail: small objects that must trip it, and one that must not.

  canaries.py [NAME ...]    all of them by default
"""
import os
import re
import subprocess
import sys
import tempfile

import units
import leak
import model
import one_symbol
import spills

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "canary")
AVX2 = ["g++", "-mavx2", "-mfma", "-DSKUA_CANARY_VECTOR=32"]
SSE2 = ["g++", "-DSKUA_CANARY_VECTOR=16"]
SSSE3 = ["g++", "-mssse3", "-DSKUA_CANARY_VECTOR=16"]
ARM64 = ["aarch64-linux-gnu-g++", "-DSKUA_CANARY_VECTOR=16"]
ARM64_DOT = ["aarch64-linux-gnu-g++", "-march=armv8.2-a+fp16", "-DSKUA_CANARY_VECTOR=16"]
ARM32 = ["arm-linux-gnueabihf-g++", "-march=armv7-a", "-mfloat-abi=hard", "-mfpu=vfpv3-d16", "-Wno-psabi", "-DSKUA_CANARY_VECTOR=16"]
ARM32_NEON = ["arm-linux-gnueabihf-g++", "-march=armv7-a", "-mfloat-abi=hard", "-mfpu=neon-vfpv4", "-DSKUA_CANARY_VECTOR=16"]


def spilled(path):
    arch = spills.objcode.architecture(path)
    found = list(spills.tiles(path))
    return ([] if found else ["no tile found"]) + [t for f, body, _ in found for t in spills.accesses(f, body, arch)]


# name: (compiler, source, gate, what it must say; None: nothing)
CANARIES = {
    "one_symbol_clean": (AVX2, "clean.cc", one_symbol.check_unit, None),
    "one_symbol_clean_arm64": (ARM64, "clean.cc", one_symbol.check_unit, None),
    "one_symbol_weak": (AVX2, "weak_symbol.cc", one_symbol.check_unit, "twice.*: weak symbol"),
    "one_symbol_weak_armhf": (ARM32_NEON, "weak_symbol.cc", one_symbol.check_unit, "twice.*: weak symbol"),
    "one_symbol_function": (AVX2, "exported_function.cc", one_symbol.check_unit, "tile.*: exported function"),
    "one_symbol_call": (AVX2, "outside_call.cc", one_symbol.check_unit, "expf: called from outside"),
    "one_symbol_constructor": (AVX2, "static_constructor.cc", one_symbol.check_unit, "before main"),
    "one_symbol_runtime": (SSE2, "runtime.cc", one_symbol.check_library, "operator new.*: needs the C\\+\\+ runtime"),
    "leak_clean": (SSE2, "clean.cc", leak.check, None),
    "leak_clean_arm64": (ARM64, "clean.cc", leak.check, None),
    "leak_clean_armhf": (ARM32, "clean.cc", leak.check, None),
    "leak_avx2": (AVX2, "clean.cc", leak.check, "vbroadcastss|vfmadd"),
    "leak_ssse3": (SSSE3, "ssse3.cc", leak.check, "pshufb"),
    "leak_arm64_fp16": (ARM64_DOT, "half.cc", leak.check, "above the baseline"),
    "leak_armhf_neon": (ARM32_NEON, "clean.cc", leak.check, "above the baseline"),
    "spills_clean": (AVX2, "clean.cc", spilled, None),
    "spills_clean_arm64": (ARM64, "clean.cc", spilled, None),
    "spills_avx2": (AVX2, "spill.cc", spilled, r"\(%rsp|\(%rbp"),
    "spills_arm64": (ARM64, "spill.cc", spilled, r"\[sp|\[x29"),
    "spills_armhf": (ARM32_NEON, "spill.cc", spilled, r"\[sp|\[r7"),
    "spills_by_pointer": (AVX2, "spill_by_pointer.cc", spilled, r"%ymm\d+, \S*\(%r(?!sp|bp)"),
    "model_slow_tile": (ARM64, "spill.cc", model.check, "neoverse-n1: .* below 85 %"),
    "spills_no_tile": (SSE2, "runtime.cc", spilled, "no tile found"),
}


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or CANARIES:
            compiler, source, gate, expected = CANARIES[name]
            path = os.path.join(folder, name + ".o")
            subprocess.run([*compiler, "-std=c++20", "-O2", "-c", os.path.join(SOURCES, source), "-o", path], check=True)
            said = gate(path)
            good = not said if expected is None else any(re.search(expected, sentence) for sentence in said)
            failures += not good
            print(f"{name}: {'ok' if good else 'WRONG'}: {said[0] if said else 'nothing to say'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
