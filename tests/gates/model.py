#!/usr/bin/env python3
"""Gate: the f32 GEMM tile for arm64, as compiled, keeps the multipliers of out-of-order cores busy.

  model.py --build DIR [--min-share 0.85]

The cores are LLVM's scheduling models (bench/arm/loopmca.py); nothing is measured on silicon. LLVM 19 and 22 disagree on the Neoverse N1
(the later one lets it dispatch three micro-operations a cycle and splits every 128-bit load in two): the middle of the two counts.
"""
import argparse
import sys

import units
import loopmca
import objcode

# Core: the versions of llvm-mca that know it.
MODELS = {"neoverse-n1": ("19", "22"), "cortex-a710": ("22",), "cortex-x1": ("22",)}


def check(path, min_share=0.85):
    """Prints how the hot loop of one object rates, and returns what is too slow as sentences."""
    wrong = []
    work, name, body = objcode.hot_loop(path) or (0, "no tile", [])
    print(f"{objcode.demangle([name])[0]}: {len(body)} instructions, {work} MAC a turn")
    for core, versions in MODELS.items():
        turns = [loopmca.steady_state(loopmca.as_source(body), "aarch64", core, version) for version in versions]
        shares = [work / turn / loopmca.PEAK[core] for turn in turns]
        share = sum(shares) / len(shares)
        single = ", ".join(f"{100 * s:.0f} % with LLVM {v}" for s, v in zip(shares, versions))
        print(f"  {core}: {100 * share:.0f} % of {loopmca.PEAK[core]} MAC/cycle ({single})")
        if share < min_share:
            wrong.append(f"{core}: {100 * share:.0f} %, below {100 * min_share:.0f} %")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build")
    parser.add_argument("--object", nargs="*", default=[])
    parser.add_argument("--min-share", type=float, default=0.85)
    options = parser.parse_args()
    paths = units.unit_objects(options.build, "gemm", "neon") if options.build else options.object
    wrong = [sentence for path in paths for sentence in check(path, options.min_share)]
    print("\n".join(wrong) or f"{len(paths)} objects reach {100 * options.min_share:.0f} % on every core")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
