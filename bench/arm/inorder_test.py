#!/usr/bin/env python3
"""The rules of inorder.py, one by one, on loops of a few instructions; and objcode's count of multiply-accumulates, on which every figure rests."""
import sys
import unittest

import inorder
from inorder import objcode

FMLA = [f"fmla v{r}.4s, v30.4s, v31.s[0]" for r in range(8)]


VFMA = [f"vfma.f32 q{r + 8}, q6, q7" for r in range(8)]


def cycles(core, *texts, arch="aarch64"):
    return inorder.cycles_per_turn([objcode.Instruction(4 * i, b"", text) for i, text in enumerate(texts)], core, arch)


def beside_multiplies(core, text, times=4):
    """Cycles that `times` copies of an instruction cost between eight multiplies, which alone take eight."""
    loop = []
    for i, multiply in enumerate(FMLA):
        loop += [multiply] + ([text.format(16 + i)] if i < times else [])
    return cycles(core, *loop) - len(FMLA)


class Rules(unittest.TestCase):
    def both(self, expected, measure):
        for core, cycles_expected in zip(inorder.CORES, expected):
            self.assertAlmostEqual(measure(core), cycles_expected, 3, core)

    def test_one_multiply_a_cycle(self):
        self.both((8, 8), lambda core: cycles(core, *FMLA))

    def test_a_chain_waits_for_its_sum(self):
        self.both((4, 4), lambda core: cycles(core, FMLA[0]))

    def test_integer_arithmetic_and_branches_are_free_beside_multiplies(self):
        self.both((0, 0), lambda core: beside_multiplies(core, "add x{0}, x{0}, #1"))
        self.both((0, 0), lambda core: beside_multiplies(core, "b.ne 0x0", 1))

    def test_a_general_load_is_free_beside_a_multiply(self):
        self.both((0, 0), lambda core: beside_multiplies(core, "ldr x{}, [x1]"))

    def test_half_a_vector_is_loaded_beside_a_multiply_on_the_a55_only(self):
        self.both((4, 0), lambda core: beside_multiplies(core, "ldr d{}, [x1]"))

    def test_an_insert_goes_beside_a_multiply_on_the_a55_only(self):
        self.both((4, 0), lambda core: beside_multiplies(core, "mov v{}.d[1], x2"))

    def test_a_vector_load_and_an_insert_go_together_on_both(self):
        self.both((4, 4), lambda core: cycles(core, *["ldr d1, [x1]", "mov v2.d[1], x2", "ldr d3, [x1]", "mov v4.d[1], x2",
                                                      "ldr d5, [x1]", "mov v6.d[1], x2", "ldr d7, [x1]", "mov v8.d[1], x2"]))

    def test_a_whole_vector_costs_two_cycles(self):
        self.both((8, 8), lambda core: beside_multiplies(core, "ldr q{}, [x1]"))

    def test_a_pair_costs_twice_as_much(self):
        self.both((4, 4), lambda core: beside_multiplies(core, "ldp q{}, q29, [x1]", 1))

    def test_a_load_must_arrive_before_its_use(self):
        self.both((3, 3), lambda core: cycles(core, "ldr x2, [x2]"))


class Rules32(unittest.TestCase):
    def both(self, expected, *texts):
        for core, cycles_expected in zip(inorder.CORES, expected):
            self.assertAlmostEqual(cycles(core, *texts, arch="arm"), cycles_expected, 3, f"{core} {texts}")

    def beside(self, expected, text, times=4):
        loop = []
        for i, multiply in enumerate(VFMA):
            loop += [multiply] + ([text.format(2 * i)] if i < times else [])
        self.both([8 + e for e in expected], *loop)

    def test_multiplies(self):
        self.both((8, 8), *VFMA)
        self.both((4, 4), VFMA[0])
        self.both((8, 8), "vmla.f32 q8, q6, d0[0]")

    def test_what_goes_beside_multiplies(self):
        self.beside((0, 0), "ldrne r{}, [r1, #4]")
        self.beside((0, 0), "add r{0}, r{0}, #1")
        self.beside((4, 0), "vldr d{}, [r1, #8]")
        self.beside((4, 0), "vldrne d{}, [r1]")
        self.beside((4, 0), "vld1.16 {{d{}}}, [r1], r2")
        self.beside((4, 0), "vmov d{}, r2, r3")
        self.beside((8, 8), "vld1.32 {{d{0}, d1}}, [r1]")
        self.beside((12, 12), "vld1.32 {{d{0}, d1, d2}}, [r1]!")

    def test_a_vector_load_and_a_move_go_together_on_both(self):
        self.both((2, 2), "vldr d0, [r1]", "vmov d1, r2, r3", "vldr d2, [r1]", "vmov d3, lr, r3")

    def test_a_load_moves_its_base_on(self):
        self.both((1, 1), "vld1.16 {d0}, [r1]!")


class Counting(unittest.TestCase):
    def test_multiply_accumulates(self):
        for arch, text, expected in (("aarch64", "fmla v0.4s, v1.4s, v2.s[0]", 4), ("aarch64", "fmla v0.8h, v1.8h, v2.h[7]", 8),
                                     ("aarch64", "bfmmla v0.4s, v1.8h, v2.8h", 16), ("aarch64", "bfdot v0.4s, v1.8h, v2.8h", 8), ("aarch64", "fadd v0.4s, v1.4s, v2.4s", 0),
                                     ("arm", "vmla.f32 q4, q2, d0[0]", 4), ("arm", "vmla.f16 q4, q2, d0[3]", 8), ("arm", "vfma.f16 q4, q2, q3", 8),
                                     ("arm", "vfma.f32 d4, d2, d3", 2)):
            self.assertEqual(objcode.macs(objcode.Instruction(0, b"", text), arch), expected, text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-q"])
