"""Finds the object files of a build tree and says which are instruction-set units and which must run on any core."""
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "bench", "arm")]


def isa_names():
    """Every instruction set dispatch/isa.def lists."""
    with open(os.path.join(ROOT, "dispatch", "isa.def")) as file:
        names = re.findall(r"^\s*SKUA_ISA\w*\(\s*(\w+)", file.read(), re.M)
    if not names:
        raise SystemExit("dispatch/isa.def lists no instruction set")
    return names


def unit_objects(build, family, isa):
    """The object files of one unit."""
    folder = f"/skua_{family}_{isa}.dir/"
    found = [os.path.join(at, name) for at, _, names in os.walk(build) for name in names if name.endswith(".o") and folder in at + "/"]
    if not found:
        raise SystemExit(f"{build}: no object of skua_{family}_{isa}")
    return sorted(found)


def objects(build):
    """({object: instruction set} of the units skua_<family>_<isa>, [objects of the library outside them])."""
    isas, units, baseline = set(isa_names()), {}, []
    for folder, _, files in os.walk(build):
        target = re.search(r"/CMakeFiles/skua(?:_([a-z0-9_]+))?\.dir(?:/|$)", folder + "/")
        if not target:
            continue
        isa = None
        if target.group(1) and target.group(1) != "gpu_texts":
            # The longest name wins: skua_gemm_neon_fp16 is a unit of neon_fp16.
            tails = [name for name in isas if target.group(1).endswith("_" + name)]
            if not tails:
                continue
            isa = max(tails, key=len)
        for name in files:
            if name.endswith(".o"):
                path = os.path.join(folder, name)
                if isa:
                    units[path] = isa
                else:
                    baseline.append(path)
    if not units or not baseline:
        raise SystemExit(f"{build}: {len(units)} instruction-set objects and {len(baseline)} others: nothing to check")
    archive = os.path.join(build, "libskua.a")
    if os.path.exists(archive):
        members = len(subprocess.run(["ar", "t", archive], check=True, capture_output=True, text=True).stdout.split())
        if members != len(units) + len(baseline):
            raise SystemExit(f"{archive} has {members} objects, {len(units)} units and {len(baseline)} others were found beside it")
    return units, sorted(baseline)
