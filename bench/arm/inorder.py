#!/usr/bin/env python3
"""Rates the hot loop of Arm object files on Cortex-A53 and Cortex-A55 by a rule model of their two-wide in-order pipelines.

  bench/arm/inorder.py kernel.o ...

The rules come from public notes on dual issue and were not calibrated on silicon: use the figures to rank loops, not as promises.

  - Two instructions a cycle, in order; the second waits if an operand is not ready or its pipe is taken.
  - One 128-bit arithmetic instruction a cycle. One load a cycle.
  - A 64-bit vector load pairs with arithmetic on the A55, not on the A53. A 128-bit load holds the pipe two cycles and pairs with nothing;
    a pair of loads (ldp) takes twice its single load.
  - Loads to general registers, inserts, integer arithmetic and branches pair with arithmetic; an insert does not on the A53.

AArch32 likewise: a load of one D register is a 64-bit vector load, vmov of two words to a D register an insert; a load of several D registers takes a cycle for
each, ldrd two, and they pair with nothing. A product that is rounded before it is added (vmla) takes twice the cycles until its sum can be used.
"""
import argparse
import os
import re
import sys
from dataclasses import dataclass

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import objcode

CORES = ("a53", "a55")
# Cycles from issue until the result can be used.
LATENCY = {"mac": 4, "apart": 8, "simd": 3, "insert": 3, "alu": 1, "load_d": 3, "load_x": 3, "load_q": 4}
TURNS = 60

MAC = re.compile(r"(fml[as]|[su]dot|usdot|sudot|[us]*mmla|bfdot|bfmmla|fmlal2?|[su]mlal2?|[su]mull2?)$")
LOAD = re.compile(r"(ldr|ldp|ldur|ldnp|ld1r?)[bhsw]*$")
REGISTER = re.compile(r"\b([vqdshxw])(\d+)\b")


@dataclass
class Operation:
    kind: str          # mac, apart (a mac of AArch32 that rounds twice), simd, insert, alu, load_d, load_x, load_q
    count: float       # registers loaded
    reads: list
    writes: list
    updates_base: bool


def registers(text):
    """Vector and general registers in order, whatever the width they are named by."""
    return [("v" if letter in "vqdsh" else "x") + number for letter, number in REGISTER.findall(text)]


def kind_of(op, args):
    if MAC.match(op):
        return "mac", 1
    if LOAD.match(op):
        if op.startswith("ld1"):
            wide = re.search(r"\.(16b|8h|4s|2d)", args)
            return ("load_q" if wide else "load_d"), len(re.findall(r"v\d+", args.split("[")[0]))
        letter = args.lstrip("{ ")[0]
        return {"q": "load_q", "d": "load_d", "s": "load_d"}.get(letter, "load_x"), 2 if op in ("ldp", "ldnp") else 1
    if op == "prfm":
        return "load_x", 1
    if op in ("ins", "mov") and re.match(r"v\d+\.[dsh]\[", args):
        return "insert", 1
    return ("simd" if re.match(r"v\d+\.|[qds]\d+,", args) else "alu"), 1


def decode(instruction):
    op, _, args = instruction.text.partition(" ")
    kind, count = kind_of(op, args)
    used = registers(args)
    updates_base = kind.startswith("load") and (args.rstrip().endswith("!") or re.search(r"\], (#|x)", args) is not None)
    if op == "prfm" or objcode.branch_target(instruction) is not None:
        return Operation(kind, 1, used, [], False)
    if op in ("cmp", "cmn", "tst"):
        return Operation("alu", 1, used, [], False)
    if kind.startswith("load"):
        loaded = len(registers(args.split("[")[0] if not op.startswith("ld1") else args.rsplit("[", 1)[0]))
        return Operation(kind, count, used[loaded:], used[:loaded], updates_base)
    if kind in ("mac", "insert"):
        return Operation(kind, 1, used, used[:1], False)
    if op.startswith("st"):
        return Operation("load_x", 1, used, [], False)
    return Operation(kind, 1, used[1:], used[:1], False)


MAC32 = re.compile(r"v(fm[as]|ml[as]|sdot|udot|mul|nmul|mull|mlal)\.")
CONDITION = r"(?:eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?"
LOAD32 = re.compile(rf"(v?ldr|ldrd|vld1|vldm(?:ia|db)?|vldr)[bhsd]?{CONDITION}(?:\.\d+)?$")
REGISTER32 = re.compile(r"\b(?:([qds])(\d+)|(r\d+|sp|lr))\b")


def registers32(text):
    """D registers, two for each Q, and general registers in order."""
    found = []
    for letter, number, general in REGISTER32.findall(text):
        n = int(number or 0)
        found += [general] if general else [f"d{2 * n}", f"d{2 * n + 1}"] if letter == "q" else [f"d{n // 2 if letter == 's' else n}"]
    return found


def decode32(instruction):
    op, _, args = instruction.text.partition(" ")
    op = re.sub(r"\.[nw]$", "", op)  # Thumb
    used = registers32(args)
    if objcode.branch_target(instruction) is not None or re.match(r"(cmp|cmn|tst|pld)", op):
        return Operation("load_x" if op == "pld" else "alu", 1, used, [], False)
    if MAC32.match(op):
        first = registers32(args.split(",")[0])
        return Operation("apart" if op.startswith(("vmla.f", "vmls.f")) else "mac", 1, used, first, False)
    if LOAD32.match(op):
        listed = registers32(args[:args.index("[")] if "[" in args else args[args.index("{"):])
        base = registers32(args[args.index("["):args.index("]")] if "[" in args else args.split(",")[0])
        vector = op.startswith("v")
        if vector and len(listed) > 1:
            kind, count = "load_q", len(listed) / 2
        else:
            kind, count = ("load_d" if vector else "load_x"), 2 if op.startswith("ldrd") else 1
        rest = registers32(args[args.index("]"):]) if "[" in args else []
        return Operation(kind, count, [r for r in rest if r not in base] + base, listed, "!" in args or bool(rest) or re.search(r"\], #", args) is not None)
    if re.match(r"v?st[rm1]", op):
        return Operation("load_x", 1, used, [], False)
    if op.startswith("vmov") and re.match(r"d\d+(\[\d\])?, (r|lr)", args):
        return Operation("insert", 1, used if "[" in args else used[1:], used[:1], False)
    if op.startswith("v"):
        return Operation("simd", 1, used, registers32(args.split(",")[0]), False)
    return Operation("alu", 1, used[1:] if args.count(",") > 1 else used, used[:1], False)


class Pipeline:
    """One cycle of issue at a time: which pipes are taken, and until when a wide load blocks them all."""

    def __init__(self, core):
        self.core, self.cycle, self.blocked_until = core, 0, 0
        self.taken = []

    def fits(self, op):
        if self.cycle < self.blocked_until or len(self.taken) >= 2:
            return False
        arithmetic = ("mac", "apart", "simd")
        if op.kind in arithmetic and any(k in arithmetic for k in self.taken):
            return False
        if op.kind.startswith("load"):
            if any(k.startswith("load") for k in self.taken):
                return False
            if (op.kind == "load_q" or op.count > 1) and self.taken:
                return False
        if op.kind == "insert" and "insert" in self.taken:
            return False
        if self.core == "a53":
            pairs = self.taken + [op.kind]
            if any(k in arithmetic for k in pairs) and any(k in ("load_d", "insert") for k in pairs):
                return False
        return True

    def issue(self, op, ready_at):
        """Waits until the operation can go, takes its pipe, and returns the cycle it went."""
        if ready_at > self.cycle:
            self.cycle, self.taken = ready_at, []
        while not self.fits(op):
            self.cycle, self.taken = max(self.cycle + 1, self.blocked_until), []
        self.taken.append(op.kind)
        if op.kind == "load_q":
            self.blocked_until = self.cycle + 2 * op.count
        elif op.kind.startswith("load") and op.count > 1:
            self.blocked_until = self.cycle + op.count
        return self.cycle


def operations_of(body, arch="aarch64"):
    return [(decode32 if arch == "arm" else decode)(i) for i in body]


class Run:
    """What has been executed so far, in its order, remembered as what decides how the next instructions go: the pipes taken in this cycle, and when what is on its way arrives."""

    def __init__(self, core):
        self.core, self.cycle, self.state, self.known = core, 0, ((), 0, ()), {}

    def execute(self, name, operations):
        """Returns the cycle in which the last of them went; name: of these operations. What went so before from the same state is not worked out again."""
        key = name, self.state
        if key not in self.known:
            taken, blocked, coming = self.state
            pipeline, ready = Pipeline(self.core), dict(coming)
            pipeline.taken, pipeline.blocked_until = list(taken), blocked
            for op in operations:
                at = pipeline.issue(op, max((ready.get(r, 0) for r in op.reads), default=0))
                late = LATENCY[op.kind] + (2 * (op.count - 1) if op.kind == "load_q" else 0)
                for register in op.writes:
                    ready[register] = at + late
                if op.updates_base and op.reads:
                    ready[op.reads[-1]] = at + 1
            now = pipeline.cycle
            self.known[key] = now, (tuple(pipeline.taken), max(pipeline.blocked_until - now, 0), tuple(sorted((r, t - now) for r, t in ready.items() if t > now)))
        spent, self.state = self.known[key]
        self.cycle += spent
        return self.cycle


def cycles_per_turn(body, core, arch="aarch64"):
    operations, run = operations_of(body, arch), Run(core)
    ends = [run.execute(0, operations) for _ in range(TURNS)]
    half = TURNS // 2
    return (ends[-1] - ends[half - 1]) / (TURNS - half)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("object", nargs="+")
    parser.add_argument("--symbol", help="part of the mangled name of the function to look at")
    options = parser.parse_args()
    for path in options.object:
        arch = objcode.architecture(path)
        if arch not in ("aarch64", "arm"):
            raise SystemExit(f"{path}: the rules are for Arm")
        loop = objcode.hot_loop(path, options.symbol)
        if not loop:
            raise SystemExit(f"{path}: no loop with a multiply-accumulate")
        work, name, body = loop
        multiplies = sum(objcode.macs(i, arch) > 0 for i in body)
        print(f"{os.path.basename(path)}: {objcode.demangle([name])[0]}: {len(body)} instructions, {work} MAC a turn")
        for core in CORES:
            turn = cycles_per_turn(body, core, arch)
            print(f"  {core}: {turn:.1f} cycles, {work / turn:.2f} MAC/cycle, multiplier busy {100 * multiplies / turn:.0f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
