#!/usr/bin/env python3
"""Counts the instructions of one run of a layer, exactly, under qemu's user emulation.

  bench/arm/count.py build/evidence-arm64/bench/arm/skua-arm-layer [--cpu max] [--core cortex-a55] [--kernel GLOB] [--top N] -- conv 28 28 128 128 3 f32

qemu logs every translated block that it enters (-d exec, blocks not chained) and, once each, the instructions of a block (-d in_asm): the sum between
count_begin() and count_end() of the program is what a core would retire, library and C library alike. --check takes one instruction per block instead, which
is slow and must give the same number. Counts say nothing about cycles; nothing here is measured on silicon. --rule gives the blocks, in their order, to the rules of inorder.py:
cycles of a Cortex-A53 (where it has the instructions) and A55 without caches and branches; with --top, where they go on the core of --cpu or --core.
"""
import argparse
import bisect
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import inorder
import objcode

# Dot products, halves: what an A53 has not.
BEYOND_A53 = re.compile(r"v?[us]+dot|\w*mmla|bf(?:dot|mmla|mlal|cvt)|\w+ v\d+\.[48]h, v\d+\.[48]h, v\d+\.h\[|f(?!cvt)\w+ v\d+\.8h|v\w+\.f16 q\d+, q")
TRACE = re.compile(rb"Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/")


@dataclass
class Count:
    macs: int
    instructions: int
    algorithm: str
    kernel: str
    functions: Counter  # instructions by function
    cycles: dict        # by core: cycles by function, by the rules

    @property
    def rate(self):
        return self.macs / self.instructions


def emulator(program):
    name = {"aarch64": "qemu-aarch64", "arm": "qemu-arm"}[objcode.architecture(program)]
    for candidate in (os.path.join(ROOT, "build/tools/qemu/usr/bin", name), name, name + "-static"):
        if path := shutil.which(candidate):
            return path
    raise SystemExit(f"{name} is not installed")


def text_symbols(program):
    """Addresses in order, and their names."""
    rows = re.findall(r"^([0-9a-f]+) [tTwW] (\S+)$", objcode.output_of("nm", "-n", program), re.M)
    return [(int(address, 16) & ~1, name) for address, name in rows if not name.startswith("$")]


def instruction_addresses(program):
    """Where instructions begin. qemu's listing shows a Thumb instruction that its disassembler does not know as two."""
    command = [objcode.llvm_tool("llvm-objdump"), "-d", "--no-show-raw-insn", *objcode.EVERYTHING["arm"], program]
    return {int(a, 16) for a in re.findall(r"^\s*([0-9a-f]+):", objcode.output_of(*command), re.M)}


def single_step(qemu):
    return "-one-insn-per-tb" if "-one-insn-per-tb" in subprocess.run([qemu, "-h"], capture_output=True, text=True).stdout else "-singlestep"


def cycles_of(program, order, function_of):
    """By core and function, for blocks (address, length) in the order in which they were entered."""
    arch = objcode.architecture(program)
    everything = sorted((i for f in objcode.disassemble(program) for i in f.instructions), key=lambda i: i.address)
    starts = [i.address for i in everything]
    first = {at: bisect.bisect_left(starts, at) for at, _ in set(order)}
    blocks = {(at, n): inorder.operations_of(everything[first[at]:first[at] + n], arch) for at, n in set(order)}
    cycles = {}
    beyond_a53 = any(BEYOND_A53.match(i.text) for at, n in set(order) for i in everything[first[at]:first[at] + n])
    for core in inorder.CORES[beyond_a53:]:
        run, before, spent = inorder.Run(core), 0, Counter()
        for block in order:
            now = run.execute(block, blocks[block])
            spent[function_of(block[0])] += now - before
            before = now
        cycles[core] = spent
    return cycles


def count(program, arguments, cpu="max", core=None, kernel=None, sysroot=None, check=False, rule=False):
    """Runs `program arguments` and returns its Count."""
    symbols = text_symbols(program)
    known = instruction_addresses(program) if objcode.architecture(program) == "arm" else None
    begin, end = (next(a for a, name in symbols if name == f"count_{which}") for which in ("begin", "end"))
    qemu = emulator(program)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SKUA_")}
    environment.update({k: v for k, v in (("SKUA_CORE", core), ("SKUA_KERNEL", kernel)) if v})
    command = [qemu, "-cpu", cpu, *(["-L", sysroot] if sysroot else []), "-d", "exec,nochain,in_asm", *([single_step(qemu)] if check else []), program, *arguments]
    blocks, entered, order, counting = {}, Counter(), [], False
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as run:
        new, error = [], b""
        for line in run.stderr:
            if line.startswith(b"Trace"):
                at = int(TRACE.match(line).group(1), 16)
                if new:
                    blocks[new[0]] = len(new)
                    new = []
                if at == begin:
                    counting = True
                elif at == end:
                    counting = False
                elif counting:
                    block = at, 1 if check else blocks[at]
                    entered[block] += 1
                    if rule:
                        order.append(block)
            elif line.startswith(b"0x"):
                address = int(line.split(b":", 1)[0], 16)
                if not known or address in known:
                    new.append(address)
            elif line.startswith(b"IN:"):
                new = []
            elif not line.startswith((b"-", b"\n")):
                error = line
        said = run.stdout.read().decode().split()
    if run.returncode or len(said) != 3:
        raise SystemExit(f"{' '.join(arguments)}: {error.decode().strip() or 'no result'}")
    functions, starts = Counter(), [a for a, _ in symbols]

    def function_of(at):
        return symbols[bisect.bisect_right(starts, at) - 1][1]
    for (at, length), times in entered.items():
        functions[function_of(at)] += length * times
    return Count(int(said[0]), sum(functions.values()), said[1], said[2], functions, cycles_of(program, order, function_of) if rule else {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("layer", nargs="+")
    parser.add_argument("--cpu", default="max", help="the core that qemu shows")
    parser.add_argument("--core", help="the core that kernels are chosen for (SKUA_CORE)")
    parser.add_argument("--kernel", help="glob on kernels and algorithms (SKUA_KERNEL)")
    parser.add_argument("--sysroot", help="for a program that is not static")
    parser.add_argument("--check", action="store_true", help="one instruction per block")
    parser.add_argument("--rule", action="store_true", help="cycles of in-order cores by rule as well")
    parser.add_argument("--top", type=int, default=0, help="the functions with the most instructions")
    o = parser.parse_args()
    c = count(o.program, o.layer, o.cpu, o.core, o.kernel, o.sysroot, o.check, o.rule)
    print(f"{' '.join(o.layer)}: {c.algorithm}, {c.kernel}: {c.macs} MAC, {c.instructions} instructions, {c.rate:.3f} MAC per instruction [counted]")
    for core, cycles in c.cycles.items():
        print(f"  {core}: {cycles.total() / 1e6:.3f} M cycles, {c.macs / cycles.total():.2f} MAC per cycle [rule]")
    asked = [core for core in c.cycles if core in f"{o.cpu} {o.core}"] or list(c.cycles)
    shares = c.cycles[asked[0]] if asked else c.functions
    for name, n in shares.most_common(o.top):
        print(f"  {100 * n / shares.total():5.1f} %  {objcode.demangle([name])[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
