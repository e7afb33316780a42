#!/usr/bin/env python3
"""Applies the examples of docs/adding-a-kernel.md to a copy of the tree, builds it and runs the tests of matrix products.

follow_page.py SOURCE WORK CMAKE"""
import pathlib
import re
import shutil
import subprocess
import sys

source, work, cmake = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
copy, build = work / "source", work / "build"
shutil.rmtree(copy, ignore_errors=True)
shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build", ".git"))

page = (source / "docs/adding-a-kernel.md").read_text()
steps = re.findall(r"<!-- (insert into|append to) (\S+)(?: after \"(.*?)\")? -->\n```cpp\n(.*?)```", page, re.S)
if len(steps) < 3:
    sys.exit("the page has no steps to follow")
names = []
for verb, name, after, text in steps:
    path = copy / name
    old = path.read_text()
    if after:
        if old.count(after) != 1:
            sys.exit(f'{name} does not have "{after}" once')
        new = old.replace(after, after + "\n" + text.rstrip("\n"))
    else:
        new = old + text
    path.write_text(new)
    for rows, columns, body in re.findall(r"SKUA_TILE(?:_BY_HAND)?\((\d+), (\d+), (?:(\w+), )?\"", text):
        names.append(f"gemm_f32_{rows}x{columns}_{body + '_' if body else ''}avx2")


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, text=True, **options)


run(cmake, "-S", copy, "-B", build, "-DSKUA_ISAS=avx2", "-DSKUA_OPS=gemm", "-DSKUA_TYPES=f32", "-DSKUA_GPU=OFF", "-DSKUA_BUILD_EXAMPLES=OFF", "-DSKUA_BUILD_BENCH=OFF", "-G", "Ninja", stdout=subprocess.DEVNULL)
run(cmake, "--build", build, "--target", "gemm_test", stdout=subprocess.DEVNULL)
account = work / "account"
shutil.rmtree(account, ignore_errors=True)
account.mkdir()
run(build / "tests/gemm_test", "--gtest_brief=1", env={"SKUA_TEST_ACCOUNT": str(account), "SKUA_MAX_ISA": "avx2", "SKUA_TEST_SMALL": "1"})
calls = {}
for path in account.iterdir():
    for line in path.read_text().splitlines():
        if line.startswith("kernel "):
            _, name, _, count = line.split()
            calls[name] = int(count)
for name in names:
    if not calls.get(name):
        sys.exit(f"{name} is " + ("registered but was not executed" if name in calls else "not in the registry"))
print("executed: " + ", ".join(names))
