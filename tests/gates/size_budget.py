#!/usr/bin/env python3
"""Gate: code and data stay within a budget, in KiB.

  size_budget.py --archive libskua.a --limit 1024
  size_budget.py --program one_operator --empty nothing --limit 300

Counts text + data as `size` does (uninitialised data is left out). A program counts for what it has more than --empty, a program linked
the same way that does nothing: that is what the library adds.
"""
import argparse
import re
import subprocess
import sys


def text_and_data(path):
    """Bytes that occupy storage: every allocated section with contents, of a program or of all members of an archive."""
    listing = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    total = 0
    for line in listing.splitlines():
        row = re.match(r"^\s*\[\s*\d+\]\s+\S+\s+([A-Z_0-9]+)\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([A-Z]*)", line)
        if row and row.group(1) != "NOBITS" and "A" in row.group(3):
            total += int(row.group(2), 16)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--archive")
    what.add_argument("--program")
    parser.add_argument("--empty")
    parser.add_argument("--limit", type=float, required=True)
    options = parser.parse_args()
    size = text_and_data(options.archive or options.program)
    if size == 0:
        raise SystemExit("nothing to measure")
    if options.empty:
        size -= text_and_data(options.empty)
    over = size > options.limit * 1024
    print(f"{options.archive or options.program}: {size / 1024:.1f} KiB of {options.limit:.0f}{'  OVER THE BUDGET' if over else ''}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
