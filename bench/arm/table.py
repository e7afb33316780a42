#!/usr/bin/env python3
"""Writes the tables of docs/arm.md anew, from three builds: arm64 by GCC and by Clang, armhf by GCC.

  bench/arm/table.py --arm64 DIR --arm64-clang DIR --armhf DIR [--only layers] [--page docs/arm.md]

./dev arm makes the builds and calls it. Every figure is a model's, a rule's or a count: nothing is measured on silicon.
"""
import argparse
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import count
import inorder
import loopmca
from count import ROOT, objcode


@dataclass(frozen=True)
class Loop:
    """The hot loop of a function of a unit."""
    name: str       # the kernel's
    unit: str       # family_isa
    function: str   # regular expression on the demangled name
    element: str    # what it multiplies: f32, f16, bf16, s8 (products of four), i8mm (of eight), s8 mull (two products in 16 bits, added to 32), s16 mlal
    tuned: str = "" # the cores it is written for; "" = any
    longest: bool = False  # the loop of the most multiply-accumulates, not the densest one


LOOPS64 = [
    Loop("gemm_f32_6x8_neon", "gemm_neon", r"even_tiles<6, 2\b", "f32"),
    Loop("gemm_f32_4x12_neon", "gemm_neon", r"even_tiles<4, 3\b", "f32"),
    Loop("gemm_f16_8x16_neon_fp16", "gemm_neon_fp16", r"tile<8, 2\b", "f16"),
    Loop("gemm_f16_8x16_neon_fp16, one row", "gemm_neon_fp16", r"four_panels<2>", "f16"),
    Loop("gemm_bf16_8x12_neon_bf16", "gemm_neon_bf16", r"pairs<4, 3\b", "bf16"),
    Loop("gemm_f32_8x12_a53_neon", "gemm_neon", r"packed_rows<3, \(skua::Core\)1>", "f32", "A53"),
    Loop("gemm_f32_8x12_a55_neon", "gemm_neon", r"packed_rows<3, \(skua::Core\)2>", "f32", "A55"),
    Loop("gemm_f32_8x12_*, panels of 8 columns", "gemm_neon", r"packed_rows<2, ", "f32", "A53, A55"),
    Loop("gemm_f32_8x12_*, panels of 4 columns", "gemm_neon", r"packed_rows<1, ", "f32", "A53, A55"),
    Loop("gemm_f16_8x16_a55_neon_fp16", "gemm_neon_fp16", r"packed_rows<2, ", "f16", "A55"),
    Loop("gemm_f16_8x16_a55_neon_fp16, panels of 8 columns", "gemm_neon_fp16", r"packed_rows<1, ", "f16", "A55"),
    Loop("depthwise_f32_3x3s1_2x7_neon", "depthwise_neon", r"\btile<float, 3, 1, 2, 7, .*\)0>", "f32"),
    Loop("depthwise_f16_3x3s1_2x7_neon_fp16", "depthwise_neon_fp16", r"\btile<skua::f16, 3, 1, 2, 7, .*\)0>", "f16"),
    Loop("depthwise_bf16_3x3s1_2x7_neon_bf16", "depthwise_neon_bf16", r"\btile<skua::bf16, 3, 1, 2, 7, .*\)0>", "f32"),
    Loop("depthwise_f32_3x3s2_2x7_neon", "depthwise_neon", r"\btile<float, 3, 2, 2, 7, .*\)0>", "f32"),
    Loop("depthwise_f32_3x3s1_2x7_a53_neon", "depthwise_neon", r"scheduled_tile<float, 3, 1, 2, 7, true, 0, 0, 0, 0>", "f32", "A53"),
    Loop("depthwise_f32_3x3s1_2x7_a53_neon, left border", "depthwise_neon", r"scheduled_tile<float, 3, 1, 2, 7, true, 1, 0, 0, 0>", "f32", "A53"),
    Loop("depthwise_f32_3x3s1_2x7_a55_neon", "depthwise_neon", r"scheduled_tile<float, 3, 1, 2, 7, false, 0, 0, 0, 0>", "f32", "A55"),
    Loop("depthwise_f32_3x3s1_2x7_a55_neon, left border", "depthwise_neon", r"scheduled_tile<float, 3, 1, 2, 7, false, 1, 0, 0, 0>", "f32", "A55"),
    Loop("depthwise_f32_3x3s1_2x7_a55_neon, first line", "depthwise_neon", r"scheduled_tile<float, 3, 1, 2, 7, false, 0, 0, 1, 0>", "f32", "A55"),
    Loop("depthwise_f32_3x3s2_2x7_*", "depthwise_neon", r"scheduled_tile<float, 3, 2, 2, 7, true, 0, 0, 0, 0>", "f32", "A53, A55"),
    Loop("depthwise_f32_5x5s1_2x7_neon", "depthwise_neon", r"\btile<float, 5, 1, 2, 7, .*\)0>", "f32"),
    Loop("depthwise_f32_5x5s1_2x7_a53_neon", "depthwise_neon", r"scheduled_tile<float, 5, 1, 2, 7, true, 0, 0, 0, 0>", "f32", "A53"),
    Loop("depthwise_f32_5x5s1_2x7_a53_neon, left border", "depthwise_neon", r"scheduled_tile<float, 5, 1, 2, 7, true, 2, 0, 0, 0>", "f32", "A53"),
    Loop("depthwise_f32_5x5s1_2x7_a55_neon", "depthwise_neon", r"scheduled_tile<float, 5, 1, 2, 7, false, 0, 0, 0, 0>", "f32", "A55"),
    Loop("depthwise_f32_5x5s1_2x7_a55_neon, left border", "depthwise_neon", r"scheduled_tile<float, 5, 1, 2, 7, false, 2, 0, 0, 0>", "f32", "A55"),
    Loop("depthwise_f32_5x5s2_2x7_neon", "depthwise_neon", r"\btile<float, 5, 2, 2, 7, .*\)0>", "f32"),
    Loop("depthwise_f32_5x5s2_2x7_*", "depthwise_neon", r"scheduled_tile<float, 5, 2, 2, 7, true, 0, 0, 0, 0>", "f32", "A53, A55"),
    Loop("depthwise_f16_3x3s1_2x7_a55_neon_fp16", "depthwise_neon_fp16", r"scheduled_tile<skua::f16, 3, 1, 2, 7, false, 0, 0, 0, 0>", "f16", "A55"),
    Loop("depthwise_f16_3x3s1_2x7_a55_neon_fp16, left border", "depthwise_neon_fp16", r"scheduled_tile<skua::f16, 3, 1, 2, 7, false, 1, 0, 0, 0>", "f16", "A55"),
    Loop("depthwise_f16_3x3s2_2x7_a55_neon_fp16", "depthwise_neon_fp16", r"scheduled_tile<skua::f16, 3, 2, 2, 7, true, 0, 0, 0, 0>", "f16", "A55"),
    Loop("depthwise_f16_5x5s1_2x7_a55_neon_fp16", "depthwise_neon_fp16", r"scheduled_tile<skua::f16, 5, 1, 2, 7, false, 0, 0, 0, 0>", "f16", "A55"),
    Loop("depthwise_f16_5x5s1_2x7_a55_neon_fp16, left border", "depthwise_neon_fp16", r"scheduled_tile<skua::f16, 5, 1, 2, 7, false, 2, 0, 0, 0>", "f16", "A55"),
    Loop("depthwise_f16_5x5s2_2x7_a55_neon_fp16", "depthwise_neon_fp16", r"scheduled_tile<skua::f16, 5, 2, 2, 7, true, 0, 0, 0, 0>", "f16", "A55"),
    Loop("gemm_s8_6x16_neon_dot", "gemm_int8_neon_dot", r"row_tile<signed char, 6, 4, ", "s8"),
    Loop("gemm_u8_6x16_neon_dot", "gemm_int8_neon_dot", r"row_tile<unsigned char, 6, 4, ", "s8"),
    Loop("gemm_s8_6x16_neon_i8mm", "gemm_int8_neon_i8mm", r"panel<signed char, 4, ", "i8mm"),
    Loop("gemm_s8_4x16_neon_i8mm", "gemm_int8_neon_i8mm", r"row_tile<signed char, 4, 4, ", "i8mm"),
    Loop("gemm_u8_4x16_neon_i8mm", "gemm_int8_neon_i8mm", r"row_tile<unsigned char, 4, 4, ", "i8mm"),
    Loop("gemm_s8_4x4_neon", "gemm_int8_neon", r"row_tile<signed char, 4, 1, .*\(skua::Core\)0>", "s8 mull"),
    Loop("gemm_s8_4x4_a53_neon", "gemm_int8_neon", r"row_tile<signed char, 4, 1, .*\(skua::Core\)1>", "s8 mull", "A53"),
    Loop("winograd_product_f32_6x8_neon", "winograd_neon", r"\bproduct<6, 2>\(skua::WinogradProduct const&\)$", "f32"),
    Loop("winograd_product_f32_6x8_*", "winograd_neon", r"product_in_order<float, .*, 6, \(skua::Core\)1, ", "f32", "A53, A55", longest=True),
    Loop("winograd_product_s8_6x8_neon", "winograd_int8_neon", r"\bproduct<6, 2>\(skua::WinogradProduct const&\)$", "s16 mlal"),
    Loop("winograd_product_s8_6x8_a53_neon", "winograd_int8_neon", r"product_in_order<short, .*, 6, \(skua::Core\)1, ", "s16 mlal", "A53", longest=True),
    Loop("depthwise_s8_2x2x16_a55_neon_dot, 3x3", "depthwise_int8_neon_dot", r"dot_in_order", "s8", "A55"),
    Loop("depthwise_s8_2x2x16_a53_neon, 3x3", "depthwise_int8_neon", r"taps_in_order<1>", "s8 mull", "A53"),
    Loop("depthwise_s8_2x2x16_a53_neon, 3x3 of stride 2", "depthwise_int8_neon", r"taps_in_order<2>", "s8 mull", "A53"),
    Loop("gemm_s8_8x12_a55_neon_dot", "gemm_int8_neon_dot", r"panel<signed char, 3, ", "s8", "A55"),
    Loop("gemm_s8_8x12_a55_neon_dot, panels of 8 columns", "gemm_int8_neon_dot", r"panel<signed char, 2, ", "s8", "A55"),
]
LOOPS32 = [
    Loop("gemm_f32_4x8_neon32", "gemm_neon32", r"even_tiles<4, 2\b", "f32"),
    Loop("gemm_f32_6x8_neon32", "gemm_neon32", r"packed_rows<2, \(skua::Core\)0>", "f32"),
    Loop("gemm_f32_6x8_a53_neon32", "gemm_neon32", r"packed_rows<2, \(skua::Core\)1>", "f32", "A53"),
    Loop("gemm_f32_6x8_a55_neon32", "gemm_neon32", r"packed_rows<2, \(skua::Core\)2>", "f32", "A55"),
    Loop("gemm_f32_6x8_*, panels of 4 columns", "gemm_neon32", r"packed_rows<1, ", "f32"),
    Loop("gemm_f16_4x16_neon32_fp16", "gemm_neon32_fp16", r"tile<4, 2\b", "f16"),
    Loop("gemm_f16_6x16_neon32_fp16", "gemm_neon32_fp16", r"packed_blocks<\(skua::Core\)0>", "f16"),
    Loop("gemm_f16_6x16_a55_neon32_fp16", "gemm_neon32_fp16", r"packed_blocks<\(skua::Core\)2>", "f16", "A55"),
    Loop("gemm_f16_6x16_*, panels of 8 columns", "gemm_neon32_fp16", r"packed_rows<1, ", "f16"),
    Loop("depthwise_f32_3x3s1_2x4_neon32", "depthwise_neon32", r"\btile<float, 3, 1, 2, 4, .*\)0>", "f32"),
    Loop("depthwise_f16_3x3s1_2x4_neon32_fp16", "depthwise_neon32_fp16", r"\btile<skua::f16, 3, 1, 2, 4, .*\)0>", "f16"),
    Loop("depthwise_f32_3x3s1_1x7_a53_neon32", "depthwise_neon32", r"scheduled_tile<float, 3, 1, 1, 7, true, 0, 0, 0, 0>", "f32", "A53"),
    Loop("depthwise_f32_3x3s1_1x7_a53_neon32, left border", "depthwise_neon32", r"scheduled_tile<float, 3, 1, 1, 7, true, 1, 0, 0, 0>", "f32", "A53"),
    Loop("depthwise_f32_3x3s1_1x7_a55_neon32", "depthwise_neon32", r"scheduled_tile<float, 3, 1, 1, 7, false, 0, 0, 0, 0>", "f32", "A55"),
    Loop("depthwise_f32_3x3s1_1x7_a55_neon32, left border", "depthwise_neon32", r"scheduled_tile<float, 3, 1, 1, 7, false, 1, 0, 0, 0>", "f32", "A55"),
    Loop("depthwise_f32_3x3s2_1x7_neon32", "depthwise_neon32", r"\btile<float, 3, 2, 1, 7, .*\)0>", "f32"),
    Loop("depthwise_f32_3x3s2_1x7_a55_neon32", "depthwise_neon32", r"scheduled_tile<float, 3, 2, 1, 7, false, 0, 0, 0, 0>", "f32", "A55"),
    Loop("depthwise_f32_5x5s1_1x7_neon32", "depthwise_neon32", r"\btile<float, 5, 1, 1, 7, .*\)0>", "f32"),
    Loop("depthwise_f32_5x5s1_1x7_a53_neon32", "depthwise_neon32", r"scheduled_tile<float, 5, 1, 1, 7, true, 0, 0, 0, 0>", "f32", "A53"),
    Loop("depthwise_f32_5x5s1_1x7_a53_neon32, left border", "depthwise_neon32", r"scheduled_tile<float, 5, 1, 1, 7, true, 2, 0, 0, 0>", "f32", "A53"),
    Loop("depthwise_f32_5x5s1_1x7_a55_neon32", "depthwise_neon32", r"scheduled_tile<float, 5, 1, 1, 7, false, 0, 0, 0, 0>", "f32", "A55"),
    Loop("depthwise_f32_5x5s1_1x7_a55_neon32, left border", "depthwise_neon32", r"scheduled_tile<float, 5, 1, 1, 7, false, 2, 0, 0, 0>", "f32", "A55"),
    Loop("depthwise_f16_3x3s1_1x7_a55_neon32_fp16", "depthwise_neon32_fp16", r"scheduled_tile<skua::f16, 3, 1, 1, 7, false, 0, 0, 0, 0>", "f16", "A55"),
    Loop("depthwise_f16_3x3s1_1x7_a55_neon32_fp16, left border", "depthwise_neon32_fp16", r"scheduled_tile<skua::f16, 3, 1, 1, 7, false, 1, 0, 0, 0>", "f16", "A55"),
    Loop("depthwise_f16_3x3s2_1x7_a55_neon32_fp16", "depthwise_neon32_fp16", r"scheduled_tile<skua::f16, 3, 2, 1, 7, false, 0, 0, 0, 0>", "f16", "A55"),
    Loop("depthwise_f16_5x5s1_1x7_a55_neon32_fp16", "depthwise_neon32_fp16", r"scheduled_tile<skua::f16, 5, 1, 1, 7, false, 0, 0, 0, 0>", "f16", "A55"),
    Loop("depthwise_f16_5x5s1_1x7_a55_neon32_fp16, left border", "depthwise_neon32_fp16", r"scheduled_tile<skua::f16, 5, 1, 1, 7, false, 2, 0, 0, 0>", "f16", "A55"),
    Loop("winograd_product_f32_4x8_neon32", "winograd_neon32", r"\bproduct<4, 2>\(skua::WinogradProduct const&\)$", "f32"),
    Loop("winograd_product_f32_4x8_a53_neon32", "winograd_neon32", r"product_in_order<float, .*, 4, \(skua::Core\)1, ", "f32", "A53", longest=True),
    Loop("winograd_product_f32_4x8_a55_neon32", "winograd_neon32", r"product_in_order<float, .*, 4, \(skua::Core\)2, ", "f32", "A55", longest=True),
    Loop("winograd_product_s8_4x8_neon32", "winograd_int8_neon32", r"\bproduct<4, 2>\(skua::WinogradProduct const&\)$", "s16 mlal"),
    Loop("winograd_product_s8_4x8_a53_neon32", "winograd_int8_neon32", r"product_in_order<short, .*, 4, \(skua::Core\)1, ", "s16 mlal", "A53", longest=True),
    Loop("depthwise_s8_2x2x16_a53_neon32, 3x3", "depthwise_int8_neon32", r"taps_of_eight<1, false>", "s8 mull", "A53"),
    Loop("depthwise_s8_2x2x16_a53_neon32, 3x3, bounds", "depthwise_int8_neon32", r"taps_of_eight<1, true>", "s8 mull", "A53"),
    Loop("depthwise_s8_2x2x16_a53_neon32, 3x3 of stride 2", "depthwise_int8_neon32", r"taps_of_eight<2, false>", "s8 mull", "A53"),
    Loop("gemm_s8_2x4_neon32", "gemm_int8_neon32", r"row_tile<signed char, 2, 1, ", "s8 mull"),
    Loop("gemm_s8_4x4_a53_neon32", "gemm_int8_neon32", r"pair_sums<false>", "s8 mull", "A53, A55"),
    Loop("gemm_s8_6x8_neon32_dot", "gemm_int8_neon32_dot", r"panel<signed char, 2, \(skua::Core\)0>", "s8"),
    Loop("gemm_s8_6x8_a55_neon32_dot", "gemm_int8_neon32_dot", r"panel<signed char, 2, \(skua::Core\)2>", "s8", "A55"),
    Loop("gemm_s8_4x8_neon32_dot", "gemm_int8_neon32_dot", r"row_tile<signed char, 4, 2, ", "s8"),
]


@dataclass
class Layer:
    text: str
    algorithm: str = None  # glob for SKUA_KERNEL
    cores: tuple = ("any",)  # SKUA_CORE
    architectures: tuple = ("arm64", "armhf")


CONV, DEPTHWISE, POINTWISE = "conv 28 28 128 128 3", "depthwise 56 56 128 3", "gemm 784 256 256"
EVERY = ("any", "cortex-a53", "cortex-a55")
NEWER = ("any", "cortex-a55")  # the A53 has neither half arithmetic nor dot products


def of_floats(layer, algorithm=None):
    return [Layer(f"{layer} {element}", algorithm, cores) for element, cores in (("f32", EVERY), ("f16", NEWER), ("bf16", NEWER))]


LAYERS = of_floats(CONV, "direct") + of_floats(CONV) + of_floats(DEPTHWISE) + of_floats(POINTWISE)
# Tiles that the model leaves aside here.
LAYERS += [Layer(f"{POINTWISE} f32", "gemm_f32_6x8_neon", architectures=("arm64",)), Layer(f"{POINTWISE} f32", "gemm_f32_4x8_neon32", architectures=("armhf",)),
           Layer(f"{POINTWISE} f16", "gemm_f16_4x16_neon32_fp16", architectures=("armhf",))]
LAYERS += [Layer(f"{layer} s8", cores=EVERY) for layer in (CONV, DEPTHWISE, POINTWISE, "depthwise 112 112 64 3s2", "depthwise 14 14 512 3", "depthwise 28 28 120 5")]
LAYERS += [Layer(f"{DEPTHWISE} s8", kernel, architectures=(arch,)) for kernel, arch in (("depthwise_s8_*_neon", "arm64"), ("depthwise_s8_*_neon32", "armhf"))]
for s8 in (f"{CONV} s8", f"{POINTWISE} s8"):  # kernels of cores with fewer instructions
    LAYERS += [Layer(s8, "gemm_s8_*_neon_dot", architectures=("arm64",)), Layer(s8, "gemm_s8_*_neon", architectures=("arm64",)), Layer(s8, "gemm_s8_*_neon32", architectures=("armhf",))]


def unit_objects(build, unit):
    folder = f"/skua_{unit}.dir/"
    return sorted(os.path.join(at, n) for at, _, names in os.walk(build) for n in names if n.endswith(".o") and folder in at + "/")


@lru_cache
def functions_of(path):
    """Functions of an object file and their readable names."""
    functions = objcode.disassemble(path)
    return list(zip(functions, objcode.demangle([f.name for f in functions])))


@lru_cache
def find_loop(build, loop):
    """(multiply-accumulates a turn, instructions) of the densest inner loop of the function."""
    best = None
    for path in unit_objects(build, loop.unit):
        arch = objcode.architecture(path)
        for function, readable in functions_of(path):
            if not re.search(loop.function, readable):
                continue
            loops = [(sum(objcode.macs(i, arch) for i in body), body) for body in objcode.innermost_loops(function)]
            most = max((work for work, _ in loops), default=0)
            for work, body in loops:
                if work and (1 if loop.longest else 2) * work >= most and (best is None or work / len(body) > best[0] / len(best[1])):
                    best = work, body
    if not best:
        raise SystemExit(f"{loop.name}: no loop of {loop.function} in {loop.unit} of {build}")
    return best


def scale(element):
    return {"f32": 1, "f16": 2, "bf16": 4, "s8": 4, "i8mm": 8, "s8 mull": 4 / 3, "s16 mlal": 1}[element]


def model(work, body, core, versions, element):
    rates = [work / loopmca.steady_state(loopmca.as_source(body), "aarch64", core, version) for version in versions]
    return " / ".join(f"{rate:.1f}" for rate in rates) + f" ({loopmca.PEAK[core] * scale(element):.3g})"


def in_order(loop, work, body, arch):
    beyond_a53 = loop.element not in ("f32", "s8 mull", "s16 mlal") or loop.unit.endswith("_bf16")  # it has neither half types nor dot products
    return [("–" if core == "a53" and beyond_a53 else f"{work / inorder.cycles_per_turn(body, core, arch):.2f} ({4 * scale(loop.element):.3g})") for core in inorder.CORES]


def loop_rows64(builds):
    yield "| kernel | for | compiler | instructions per 100 MAC [counted] | A53 [rule] | A55 [rule] | N1, LLVM 19 / 22 [model] | A710 [model] | X1 [model] |"
    yield "|---|---|---|---|---|---|---|---|---|"

    def row(job):
        loop, compiler, build = job
        work, body = find_loop(build, loop)
        rules = in_order(loop, work, body, "aarch64")
        models = ["–" if loop.tuned or (core == "neoverse-n1" and loop.unit.endswith(("_bf16", "_i8mm"))) else model(work, body, core, versions, loop.element)
                  for core, versions in (("neoverse-n1", ("19", "22")), ("cortex-a710", ("22",)), ("cortex-x1", ("22",)))]
        return f"| `{loop.name}` | {loop.tuned or 'any'} | {compiler} | {100 * len(body) / work:.1f} | {' | '.join(rules + models)} |"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(row, [(loop, compiler, build) for loop in LOOPS64 for compiler, build in builds])


def loop_rows32(build):
    yield "| kernel | for | instructions per 100 MAC [counted] | A53 [rule] | A55 [rule] |"
    yield "|---|---|---|---|---|"
    for loop in LOOPS32:
        work, body = find_loop(build, loop)
        yield f"| `{loop.name}` | {loop.tuned or 'any'} | {100 * len(body) / work:.1f} | {' | '.join(in_order(loop, work, body, 'arm'))} |"


def share(layer, build, loop):
    work, body = find_loop(build, loop)
    return f"{100 * layer.rate * len(body) / work:.0f}%"


def run_layer(job):
    layer, name, build, core = job
    # Bytes take what an in-order core has; qemu shows 32-bit programs none by name.
    shown = "max" if not layer.text.endswith(" s8") or core == "any" else core if name == "arm64" else {"cortex-a53": "cortex-a7"}.get(core, "max")
    return count.count(os.path.join(build, "bench/arm/skua-arm-layer"), layer.text.split(), shown, core, layer.algorithm, rule=core != "any")


def layer_rows(builds):
    yield "| layer | architecture, SKUA_CORE | algorithm | kernel | MAC | instructions [counted] | MAC per instruction | of the loop's | MAC per cycle [rule] |"
    yield "|---|---|---|---|---|---|---|---|---|"
    loops = {loop.name: (build, loop) for (name, build), of in zip(builds, (LOOPS64, LOOPS32)) for loop in of}
    jobs = [(layer, name, build, core) for layer in LAYERS for name, build in builds for core in layer.cores if name in layer.architectures]

    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for (layer, name, _, core), c in zip(jobs, pool.map(run_layer, jobs)):
            of_loop = share(c, *loops[c.kernel]) if c.kernel in loops and not c.algorithm.startswith("winograd") else "–"
            by_rule = f"{c.macs / c.cycles[core.removeprefix('cortex-')].total():.2f}" if c.cycles else "–"
            yield f"| {layer.text} | {name}, {core} | {c.algorithm} | `{c.kernel}` | {c.macs / 1e6:.1f} M | {c.instructions / 1e6:.2f} M | {c.rate:.2f} | {of_loop} | {by_rule} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", action="store_true", help="print the targets whose objects the loops of arm64 are in, nothing else")
    for build in ("arm64", "arm64-clang", "armhf"):
        parser.add_argument(f"--{build}")
    parser.add_argument("--only", help="the table of this name")
    parser.add_argument("--page", default=os.path.join(ROOT, "docs/arm.md"))
    o = parser.parse_args()
    if o.units:
        print(" ".join(sorted({f"skua_{loop.unit}" for loop in LOOPS64})))
        return 0
    if not (o.arm64 and o.arm64_clang and o.armhf):
        parser.error("all three builds are needed")
    tables = {
        "loops-arm64": loop_rows64([("gcc", o.arm64), ("clang", o.arm64_clang)]),
        "loops-armhf": loop_rows32(o.armhf),
        "layers": layer_rows([("arm64", o.arm64), ("armhf", o.armhf)]),
    }
    with open(o.page) as file:
        text = file.read()
    for name, rows in tables.items():
        if o.only and name != o.only:
            continue
        begin, end = f"<!-- table {name} -->\n", "<!-- end -->"
        before, found, rest = text.partition(begin)
        if not found:
            raise SystemExit(f"{o.page} has no table {name}")
        text = before + begin + "\n".join(rows) + "\n" + end + rest.partition(end)[2]
    with open(o.page, "w") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
