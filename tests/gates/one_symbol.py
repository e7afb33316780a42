#!/usr/bin/env python3
"""Gate: an instruction-set unit shows the linker its table of kernels and nothing else.

  one_symbol.py --build DIR        every unit of a build tree, and the start-up code and C++ runtime of the whole library
  one_symbol.py --unit OBJECT ...  these objects, as units

An inline function that a unit compiled for a newer core and left as a weak symbol may be the copy the linker keeps for everyone, and
the program dies on older cores. Start-up code would run before the CPU is known, and keeps unused kernels alive.
"""
import argparse
import os
import re
import sys

import units
import objcode

# What a compiler may call on its own, whatever the source says.
COMPILER_CALLS = re.compile(r"^(mem(cpy|move|set|cmp)|_GLOBAL_OFFSET_TABLE_|__stack_chk_\w+|__aeabi_\w+)$")
STARTUP = re.compile(r"^\.(init_array|fini_array|preinit_array|ctors|dtors)")
RUNTIME = re.compile(r"^(__cxa_|__gxx_|_ZSt|_ZNSt|_ZNKSt|_Zn[wa]|_Zd[la]|_ZTV|_ZTI|__gcc_personality|_Unwind_|__emutls)")


def startup_code(path):
    return [f"{name}: code that runs before main" for name, _ in objcode.sections(path) if STARTUP.match(name)]


def check_unit(path):
    """What is wrong with one unit, as sentences."""
    wrong = startup_code(path)
    exported = []
    for symbol in objcode.symbols(path):
        if symbol.binding == "LOCAL":
            continue
        name = objcode.demangle([symbol.name])[0]
        if not symbol.defined:
            if not COMPILER_CALLS.match(symbol.name):
                wrong.append(f"{name}: called from outside the unit")
        elif symbol.binding != "GLOBAL":
            wrong.append(f"{name}: weak symbol")
        elif symbol.kind != "OBJECT":
            wrong.append(f"{name}: exported function")
        else:
            exported.append(name)
    if len(exported) != 1:
        wrong.append(f"exports {len(exported)} tables instead of one: {', '.join(exported)}")
    wrong += [f"{name}: COMDAT group" for name, kind in objcode.sections(path) if kind == "GROUP"]
    return wrong


def check_library(path):
    """What is wrong with one object outside the units."""
    wrong = startup_code(path)
    for symbol in objcode.symbols(path):
        if not symbol.defined and RUNTIME.match(symbol.name):
            wrong.append(f"{objcode.demangle([symbol.name])[0]}: needs the C++ runtime")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build")
    parser.add_argument("--unit", nargs="*", default=[])
    options = parser.parse_args()
    found, rest = units.objects(options.build) if options.build else ({path: "" for path in options.unit}, [])
    failures = 0
    for path, check in [(p, check_unit) for p in found] + [(p, check_library) for p in rest]:
        for sentence in check(path):
            failures += 1
            print(f"{os.path.relpath(path, options.build or '.')}: {sentence}")
    print(f"{len(found)} instruction-set units and {len(rest)} other objects, {failures} faults")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
