#!/usr/bin/env python3
"""Rates the hot loop of object files on the out-of-order cores of LLVM's scheduling models, without the hardware.

  bench/arm/loopmca.py build/arm64/gemm/CMakeFiles/skua_gemm_neon.dir/kernels.cc.o --cpus neoverse-n1,cortex-a710,cortex-x1

The hot loop is the innermost loop with the most multiply-accumulates (or that of --symbol). The models are deterministic, so a figure
can be a gate: --min-share 0.85 fails below 85 % of what the core's multipliers could do. They say nothing about caches, and
llvm-mca's in-order models rank kernels wrongly: use inorder.py for Cortex-A53 and A55.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import objcode

# f32 multiply-accumulates per cycle: vector pipes x 4 lanes; f16 does twice, bfmmla four times as many.
PEAK = {"neoverse-n1": 8, "neoverse-n2": 8, "cortex-a710": 8, "cortex-a76": 8, "cortex-x1": 16, "neoverse-v1": 16, "neoverse-v2": 16,
        "cortex-a57": 4, "cortex-a72": 4}
TARGET = {
    "aarch64": ["-mtriple=aarch64-linux-gnu", "-mattr=+neon,+fullfp16,+dotprod,+i8mm,+bf16,+fp16fml"],
    "arm": ["-mtriple=armv8.2a-linux-gnueabihf", "-mattr=+neon,+vfp4,+dotprod,+fullfp16,+i8mm,+bf16"],
    "x86_64": ["-mtriple=x86_64-linux-gnu"],
}


def as_source(body):
    """The loop as assembly that llvm-mca reads: every branch goes to the loop's own head."""
    lines = [".Lhead:"]
    for instruction in body:
        text = re.sub(r" <[^>]*>", "", instruction.text)
        if objcode.branch_target(instruction) is not None:
            text = re.sub(r"0x[0-9a-f]+$", ".Lhead", text)
        lines.append(text)
    return "\n".join(lines) + "\n"


def cycles(source, arch, cpu, iterations, version):
    with tempfile.NamedTemporaryFile("w", suffix=".s", delete=False) as file:
        file.write(source)
    try:
        tool = objcode.llvm_tool("llvm-mca", version)
        run = subprocess.run([tool, *TARGET[arch], f"-mcpu={cpu}", f"-iterations={iterations}", file.name], capture_output=True, text=True)
    finally:
        os.unlink(file.name)
    total = re.search(r"Total Cycles:\s+(\d+)", run.stdout)
    if not total:
        raise SystemExit(f"llvm-mca cannot rate this loop on {cpu}: {(run.stderr.strip().splitlines() or ['no output'])[0]}")
    return int(total.group(1))


def steady_state(source, arch, cpu, version):
    """Cycles per turn once the loop has settled: the start is subtracted."""
    return (cycles(source, arch, cpu, 1100, version) - cycles(source, arch, cpu, 100, version)) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("object", nargs="+")
    parser.add_argument("--symbol", help="part of the mangled name of the function to look at")
    parser.add_argument("--cpus", default="neoverse-n1,cortex-a710,cortex-x1")
    parser.add_argument("--llvm", help="version of llvm-mca and llvm-objdump, such as 19 (default: the newest installed)")
    parser.add_argument("--min-share", type=float, help="fail when a core reaches less than this share of its peak")
    parser.add_argument("--dump", action="store_true", help="print the loop")
    options = parser.parse_args()

    failed = False
    for path in options.object:
        loop = objcode.hot_loop(path, options.symbol, options.llvm)
        if not loop:
            raise SystemExit(f"{path}: no loop with a multiply-accumulate")
        work, name, body = loop
        arch = objcode.architecture(path)
        print(f"{os.path.basename(path)}: {objcode.demangle([name])[0]}: {len(body)} instructions, {work} MAC a turn")
        source = as_source(body)
        if options.dump:
            print(source, end="")
        for cpu in options.cpus.split(","):
            turn = steady_state(source, arch, cpu, options.llvm)
            line = f"  {cpu}: {turn:.2f} cycles, {work / turn:.2f} MAC/cycle"
            if cpu in PEAK:
                share = work / turn / PEAK[cpu]
                line += f", {100 * share:.0f} % of {PEAK[cpu]}"
                if options.min_share and share < options.min_share:
                    line += f"  BELOW {100 * options.min_share:.0f} %"
                    failed = True
            elif options.min_share:
                raise SystemExit(f"no peak is known for {cpu}")
            print(line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
