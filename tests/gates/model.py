#!/usr/bin/env python3
"""Gate: the GEMM tiles for arm64, as compiled, keep the multipliers of out-of-order cores busy.

  model.py --build DIR

Of each unit the hot loops of the tiles for any core (not of those for in-order cores), for scattered and for even rows; least shares of the peak stand in LOOPS. The cores are LLVM's
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
# Unit, family, part of the function's mangled name, multiply-accumulates to one of f32, the least shares of the peak on the cores that have the instructions.
BIG = {"cortex-a710": 0.97, "cortex-x1": 0.97}
LOOPS = [(unit, family, symbol, scale, shares) for unit, family, symbols, scale, shares in (
    ("neon", "gemm", ("4tileILi6ELi2E", "4tileILi4ELi3E", "10even_tilesILi6ELi2E", "10even_tilesILi4ELi3E"), 1, {"neoverse-n1": 0.85, **BIG}),
    ("neon_fp16", "gemm", ("4tileILi8ELi2E",), 2, {"neoverse-n1": 0.97, **BIG}),
    ("neon_fp16", "gemm", ("11four_panelsILi2E",), 2, {"neoverse-n1": 0.7, "cortex-a710": 0.92, "cortex-x1": 0.7}),
    ("neon_bf16", "gemm", ("5pairsILi4ELi3E",), 4, BIG),
    ("neon_dot", "gemm_int8", ("8row_tileIaLi6ELi4E",), 4, {"neoverse-n1": 0.92, **BIG}),
    ("neon_i8mm", "gemm_int8", ("5panelIaLi4E",), 8, BIG)) for symbol in symbols]


def check(path, shares=dict.fromkeys(MODELS, 0.85), symbol=None, scale=1):
    """Prints how the hot loop of one object rates, and returns what is too slow as sentences."""
    wrong = []
    work, name, body = objcode.hot_loop(path, symbol) or (0, "no tile", [])
    if not work:
        return [f"{path}: no loop of {symbol}"]
    readable = objcode.demangle([name])[0]
    print(f"{readable}: {len(body)} instructions, {work} MAC a turn")
    for core, least in shares.items():
        versions, peak = MODELS[core], loopmca.PEAK[core] * scale
        turns = [loopmca.steady_state(loopmca.as_source(body), "aarch64", core, version) for version in versions]
        rates = [work / turn / peak for turn in turns]
        share = sum(rates) / len(rates)
        single = ", ".join(f"{100 * s:.0f} % with LLVM {v}" for s, v in zip(rates, versions))
        print(f"  {core}: {100 * share:.0f} % of {peak} MAC/cycle ({single})")
        if share < least:
            wrong.append(f"{core}: {100 * share:.0f} % in {readable}, below {100 * least:.0f} %")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    options = parser.parse_args()
    wrong, count = [], 0
    for unit, family, symbol, scale, shares in LOOPS:
        for path in units.unit_objects(options.build, family, unit):
            wrong += check(path, shares, symbol, scale)
            count += 1
    print("\n".join(wrong) or f"{count} loops reach their share on every core")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
