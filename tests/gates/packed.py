#!/usr/bin/env python3
"""Gate: the assembly loops over packed A are as good as they were written to be.

  packed.py --arm64 DIR    multiply-accumulates per cycle on Cortex-A53 and A55 by the rules of bench/arm/inorder.py
  packed.py --armhf DIR    the same; and f16 takes at most half of the instructions of f32
"""
import argparse
import sys

import units
import inorder
import objcode

# Family, unit, part of the function's mangled name, core, least multiply-accumulates per cycle.
RATES64 = [
    ("gemm", "neon", "packed_rowsILi3ELNS_4CoreE1", "a53", 3.3),
    ("gemm", "neon", "packed_rowsILi3ELNS_4CoreE2", "a55", 3.95),
    ("gemm", "neon_fp16", "packed_rowsILi2ELNS_4CoreE2", "a55", 7.9),
    ("gemm_int8", "neon_dot", "5panelIaLi3ELNS_4CoreE2", "a55", 15.9),
]
RATES32 = [
    ("gemm", "neon32", "packed_rowsILi2ELNS_4CoreE1", "a53", 3.05),
    ("gemm", "neon32", "packed_rowsILi2ELNS_4CoreE2", "a55", 3.95),
    ("gemm", "neon32_fp16", "packed_blocksILNS_4CoreE2", "a55", 7.9),
    ("gemm_int8", "neon32_dot", "5panelIaLi2ELNS_4CoreE2", "a55", 15.8),
]


def loop_of(build, unit, symbol, family="gemm"):
    for path in units.unit_objects(build, family, unit):
        if loop := objcode.hot_loop(path, symbol):
            return loop[0], loop[2]
    raise SystemExit(f"{build}: no loop of {symbol} in the unit {unit}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arm64")
    parser.add_argument("--armhf")
    options = parser.parse_args()
    wrong = 0
    for build, arch, rates in ((options.arm64, "aarch64", RATES64), (options.armhf, "arm", RATES32)):
        for family, unit, symbol, core, least in rates if build else []:
            work, body = loop_of(build, unit, symbol, family)
            rate = work / inorder.cycles_per_turn(body, core, arch)
            wrong += rate < least
            print(f"{unit} for {core}: {rate:.2f} MAC/cycle, at least {least} [rule]")
    if options.armhf:
        f32, f16 = (len(body) / work for work, body in (loop_of(options.armhf, *loop) for loop in (("neon32", "packed_rowsILi2ELNS_4CoreE0"), ("neon32_fp16", "packed_blocksILNS_4CoreE0"))))
        wrong += f32 < 2 * f16
        print(f"f16 takes {100 * f16:.1f} instructions per 100 MAC, f32 {100 * f32:.1f}: a factor of {f32 / f16:.2f}, at least 2 [counted]")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
