#!/usr/bin/env python3
"""Gate: the inner loop of a GEMM tile keeps everything in registers.

  spills.py --build DIR --family gemm    every unit of the family, save the scalar ones and AMX's, whose registers of sums the code names itself
  spills.py --object OBJECT ... --share 0.15

A tile with one accumulator too many still computes the right result, a third slower: the compiler quietly keeps the rest on the stack.
A tile's inner loop is, of the innermost loops without a return and with at least half of the most multiply-accumulates in its function, the densest (a compiler's jump
back from the tails at the function's end to its epilogue looks like a loop, too); it may neither read nor write the stack, nor, in the families of GEMM, store a vector
anywhere: sums in an array that no unrolling took apart are on the stack behind a pointer. On x86 the pointers of more rows than there are address
registers may lie there, one access for five multiply-adds: the load ports have room for that, and no value passes through memory.
Of tiles that are one long loop, end and all, --share is the part of its instructions that may touch the stack.
"""
import argparse
import os
import re
import sys

import units
import objcode

# Fewer multiply-accumulates a turn than this are clean-up loops, not tiles.
TILE_MACS = 16
# A body with a return in it is a jump back to the epilogue, as long as there is any other.
RETURN = re.compile(r"retq?|bx")
# What lies around tiles: their multiplies convert types; and the few tiles of a run that lie in two lines, which have a pointer for each of more rows than there are registers.
AROUND = re.compile(r"_GLOBAL__N_1L?\d+(packI|finish_|widen_|across_linesI)")  # mangled


def stack_accesses(function, body, arch):
    if arch == "x86_64":
        frame = any(i.text == "movq %rsp, %rbp" for i in function.instructions[:12])
        stack = re.compile(r"\((%rsp|%rbp)[,)]" if frame else r"\(%rsp[,)]")
        return [i.text for i in body if (stack.search(i.text) and not i.mnemonic.startswith("lea")) or i.mnemonic in ("pushq", "popq")]
    frame = "x29" if arch == "aarch64" else "r7|r11"
    frame = any(re.match(rf"(mov|add)(\.w)? ({frame}), sp", i.text) for i in function.instructions[:24]) and frame
    stack = re.compile(rf"\[(sp|{frame})\b" if frame else r"\[sp\b")
    return [i.text for i in body if stack.search(i.text)]


def vector_stores(body, arch):
    store = r"v?mov\S* %[xyz]mm\d+, \S*\(" if arch == "x86_64" else r"st(r|p|ur|1) \{?[qv]|vst(1|r|mia)"
    return [i.text for i in body if re.match(store, i.text)]


def accesses(function, body, arch, family="gemm"):
    touched = stack_accesses(function, body, arch)
    stores = vector_stores(body, arch) if family.startswith("gemm") else []
    return touched + [text for text in stores if text not in touched]


def tiles(path):
    """(function, inner loop, multiply-accumulates a turn) of every tile in one object."""
    arch = objcode.architecture(path)
    for function in objcode.disassemble(path):
        if AROUND.search(function.name):
            continue
        loops = [(sum(objcode.macs(i, arch) for i in body), body) for body in objcode.innermost_loops(function)]
        loops = [loop for loop in loops if not any(RETURN.fullmatch(i.mnemonic) for i in loop[1])] or loops
        most = max((work for work, _ in loops), default=0)
        work, body = max((loop for loop in loops if 2 * loop[0] >= most), key=lambda loop: loop[0] / len(loop[1]), default=(0, None))
        if work >= TILE_MACS:
            yield function, body, work


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build")
    parser.add_argument("--family", default="gemm")
    parser.add_argument("--object", nargs="*", default=[])
    parser.add_argument("--share", type=float, default=0)
    options = parser.parse_args()
    paths = options.object
    if options.build and not paths:
        found, _ = units.objects(options.build)
        paths = [p for p, isa in found.items() if isa != "scalar" and not isa.startswith("amx_") and f"/skua_{options.family}_{isa}.dir/" in p]
    count = failures = 0
    for path in sorted(paths):
        seen, arch = 0, objcode.architecture(path)
        for function, body, work in tiles(path):
            seen += 1
            touched = accesses(function, body, arch, options.family)
            values = [text for text in touched if re.search(r"%[xyz]mm", text)]
            if arch == "x86_64" and not values and 5 * len(touched) <= sum(objcode.macs(i, arch) > 0 for i in body):
                continue
            if len(touched) > options.share * len(body):
                failures += 1
                print(f"{os.path.relpath(path, options.build or '.')}: {objcode.demangle([function.name])[0]}: "
                      f"{len(touched)} accesses to the stack, or stores, in the inner loop of {len(body)} instructions and {work} MAC: {touched[0]}")
        if not seen:
            failures += 1
            print(f"{path}: no tile found")
        count += seen
    print(f"{len(paths)} objects, {count} tiles, {failures} faults")
    return 1 if failures or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
