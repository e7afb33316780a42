#!/usr/bin/env python3
"""Gate: the GEMM tiles for arm64, as compiled, keep the multipliers of out-of-order cores busy.

  model.py --build DIR [--min-share SHARE]

Of each unit the hot loop of the tiles for any core (not of those for in-order cores); least shares of the peak stand in UNITS. The cores are LLVM's
scheduling models (bench/arm/loopmca.py); nothing is measured on silicon. LLVM 19 and 22 disagree on the Neoverse N1 (the later one lets it dispatch three
micro-operations a cycle and splits every 128-bit load in two): the middle of the two counts.
"""
import argparse
import sys

import units
import loopmca
import objcode

# Core: the versions of llvm-mca that know it.
MODELS = {"neoverse-n1": ("19", "22"), "cortex-a710": ("22",), "cortex-x1": ("22",)}
# Unit: the family, the functions (part of the mangled name), multiply-accumulates to one of f32, the least share of the peak, the cores that have the instructions.
BIG = ("cortex-a710", "cortex-x1")
UNITS = {"neon": ("gemm", "4tileILi", 1, 0.85, MODELS), "neon_fp16": ("gemm", "4tileILi", 2, 0.97, MODELS), "neon_bf16": ("gemm", "5pairsILi", 4, 0.97, BIG),
         "neon_dot": ("gemm_int8", "8row_tileIaLi6ELi4E", 4, 0.92, MODELS), "neon_i8mm": ("gemm_int8", "5panelIaLi4E", 8, 0.97, BIG)}


def check(path, min_share=0.85, symbol=None, scale=1, cores=MODELS):
    """Prints how the hot loop of one object rates, and returns what is too slow as sentences."""
    wrong = []
    work, name, body = objcode.hot_loop(path, symbol) or (0, "no tile", [])
    print(f"{objcode.demangle([name])[0]}: {len(body)} instructions, {work} MAC a turn")
    for core in cores:
        versions, peak = MODELS[core], loopmca.PEAK[core] * scale
        turns = [loopmca.steady_state(loopmca.as_source(body), "aarch64", core, version) for version in versions]
        shares = [work / turn / peak for turn in turns]
        share = sum(shares) / len(shares)
        single = ", ".join(f"{100 * s:.0f} % with LLVM {v}" for s, v in zip(shares, versions))
        print(f"  {core}: {100 * share:.0f} % of {peak} MAC/cycle ({single})")
        if share < min_share:
            wrong.append(f"{core}: {100 * share:.0f} %, below {100 * min_share:.0f} %")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build")
    parser.add_argument("--unit", choices=UNITS, help="one of them only; which one --object is")
    parser.add_argument("--object", nargs="*", default=[])
    parser.add_argument("--min-share", type=float)
    options = parser.parse_args()
    wrong, count = [], 0
    for unit in [options.unit] if options.unit else UNITS if options.build else ["neon"]:
        family, symbol, scale, share, cores = UNITS[unit]
        for path in units.unit_objects(options.build, family, unit) if options.build else options.object:
            wrong += check(path, options.min_share or share, symbol, scale, cores)
            count += 1
    print("\n".join(wrong) or f"{count} objects reach their share on every core")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
