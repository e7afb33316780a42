#!/usr/bin/env python3
"""Gate: no line of C, C++ or a kernel's text is wider than .clang-format allows.

  columns.py [FOLDER]    the tree by default; build trees and hidden folders are left out
"""
import os
import re
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
LANGUAGES = (".cc", ".h", ".inl", ".def", ".c", ".k")
# (file, lines, why they may be wider)
EXCEPTIONS = [
    ("dispatch/isa.def", r"SKUA_ISA_ENTRY\(", "CMake and the gates read an entry as one line"),
]


def limit():
    with open(os.path.join(ROOT, ".clang-format")) as file:
        return int(re.search(r"^ColumnLimit: (\d+)$", file.read(), re.M).group(1))


def sources(folder):
    """Every source below a folder, as a path from there."""
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".")
                            and not (at == folder and name == "build")
                            and not os.path.exists(os.path.join(at, name, "CMakeCache.txt")))
        for name in sorted(names):
            if name.endswith(LANGUAGES):
                yield os.path.relpath(os.path.join(at, name), folder)


def check(folder, columns):
    """(number of files, sentences about lines that are too wide, exceptions that such lines make use of)."""
    count, said, used = 0, [], set()
    for path in sources(folder):
        count += 1
        with open(os.path.join(folder, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                width = len(line.rstrip("\n"))
                if width <= columns:
                    continue
                excepted = {e for e in EXCEPTIONS if e[0] == path and re.match(e[1], line)}
                used |= excepted
                if not excepted:
                    said.append(f"{path}:{number}: {width} columns")
    return count, said, used


def canary(columns):
    """What the gate does not say of a folder in which it must."""
    with tempfile.TemporaryDirectory() as folder:
        excepted, pattern, _ = EXCEPTIONS[0]
        entry = pattern.replace("\\", "") + "x" * columns + ")\n"
        texts = {
            "wide.cc": "// ä" + "x" * (columns - 4) + "\n// ä" + "x" * (columns - 3) + "\n",
            "macro.h": "#define X" + " " * (columns - 9) + "\\\n  0\n",
            excepted: entry,
            "inner/" + excepted: entry,
            "build/made.cc": "x" * (columns + 1) + "\n",
            "made/CMakeCache.txt": "",
            "made/made.c": "x" * (columns + 1) + "\n",
        }
        for path, text in texts.items():
            path = os.path.join(folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        count, said, used = check(folder, columns)
    expected = [f"inner/{excepted}:1: {len(entry) - 1} columns", f"macro.h:1: {columns + 1} columns",
                f"wide.cc:2: {columns + 1} columns"]
    if count != 4 or sorted(said) != expected or used != {EXCEPTIONS[0]}:
        return [f"the canary: {count} files, {said}, {used}"]
    return []


def main():
    columns, folder = limit(), os.path.abspath((sys.argv[1:] or [ROOT])[0])
    count, said, used = check(folder, columns)
    if folder == ROOT:
        said += [f"{e[0]}: no line is wider any more, the exception can go" for e in EXCEPTIONS if e not in used]
    said += canary(columns)
    for sentence in said:
        print(sentence)
    print(f"{count} files of {columns} columns, {len(said)} complaints")
    return 1 if said or not count else 0


if __name__ == "__main__":
    sys.exit(main())
