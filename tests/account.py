#!/usr/bin/env python3
"""The coverage account: every registered kernel was executed by some test, or the suite fails.

  account.py FOLDER

Adds up the files that test programs left in FOLDER (tests/support/account.cc writes them). A kernel for an instruction set that no
machine of this run had, emulated ones included, could not run: it is listed and counted, and does not fail the account.

Programs that ran under SKUA_TEST_GPU_PAIRS leave out a GPU kernel in some type on some device. It is accounted for where that kernel was
executed in that type on the other API's device and in another type on this API's.
"""
import collections
import os
import re
import sys

GPU_KERNEL = re.compile(r"([a-z0-9]+(?:_[a-z0-9]+)*?)_(f32|f16|bf16)_([a-z0-9_]+)_(opencl|vulkan)")


def read(folder):
    calls, isa_of, has, skips = collections.Counter(), {}, collections.Counter(), collections.Counter()
    pairs = False
    files = [f for f in os.listdir(folder) if f.startswith("account.")]
    for name in files:
        with open(os.path.join(folder, name), errors="replace") as file:
            for line in file:
                kind, _, rest = line.rstrip("\n").partition(" ")
                if kind == "isa":
                    isa, detected = rest.split()
                    has[isa] += int(detected)
                elif kind == "kernel":
                    kernel, isa, count = rest.split()
                    calls[kernel] += int(count)
                    isa_of[kernel] = isa
                elif kind == "pairs":
                    pairs = True
                elif kind == "skip":
                    test, _, reason = rest.partition(" ")
                    skips[reason.strip() or "no reason given"] += 1
    return files, calls, isa_of, has, skips, pairs


def by_pairs(idle, calls):
    """Of the idle kernels those whose type was executed on another API's device, and in another type on this one's."""
    types, apis = collections.defaultdict(set), collections.defaultdict(set)
    for kernel, n in calls.items():
        if n and (m := GPU_KERNEL.fullmatch(kernel)):
            name, kind, form, api = m.groups()
            types[name, form, api].add(kind)
            apis[name, form, kind].add(api)
    found = set()
    for kernel in idle:
        if m := GPU_KERNEL.fullmatch(kernel):
            name, kind, form, api = m.groups()
            if types[name, form, api] and apis[name, form, kind]:
                found.add(kernel)
    return found


def main():
    folder = sys.argv[1]
    files, calls, isa_of, has, skips, pairs = read(folder)
    if not files or not calls:
        raise SystemExit(f"{folder}: no test program left an account")
    idle = sorted(k for k, n in calls.items() if not n)
    impossible = [k for k in idle if not has[isa_of[k]] and isa_of[k] != "scalar"]
    paired = by_pairs(idle, calls) if pairs else set()
    missed = [k for k in idle if k not in paired | set(impossible)]
    for kernel in missed:
        print(f"executed by no test: {kernel}")
    if impossible:
        names = sorted({isa_of[k] for k in impossible})
        print(f"no machine of this run has {', '.join(names)}: {len(impossible)} kernels not executed")
    if paired:
        print(f"in another type on this API and in this type on the other one: {len(paired)} kernels of GPUs")
    per_isa = collections.Counter(isa_of[k] for k, n in calls.items() if n)
    print(f"{len(calls) - len(idle)} of {len(calls)} kernels executed by {len(files)} test programs: "
          + ", ".join(f"{isa} {n}" for isa, n in sorted(per_isa.items())))
    unexplained = skips.pop("no reason given", 0)
    for reason, count in skips.most_common():
        print(f"skipped {count}: {reason}")
    if unexplained:
        print(f"skipped without a reason: {unexplained}")
    return 1 if missed or unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
