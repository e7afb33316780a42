"""Reads object files: symbols, sections and disassembly, for the gates and the processor models.

Symbols and sections come from readelf, which reads every architecture; the disassembly from llvm-objdump, which does too.
"""
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache

# What llvm-objdump may decode: everything, so that a kernel's own instructions are seen whatever its instruction set.
EVERYTHING = {
    "aarch64": ["--triple=aarch64-linux-gnu", "--mattr=+all"],
    "arm": ["--triple=armv8.2a-linux-gnueabihf", "--mattr=+neon,+vfp4,+dotprod,+fullfp16,+i8mm,+bf16"],
    "x86_64": ["--triple=x86_64-linux-gnu"],
}


@lru_cache
def llvm_tool(name, version=None):
    """The path of an LLVM tool; the newest of the versions Debian has unless one is asked for."""
    names = [f"{name}-{version}"] if version else [f"{name}-{v}" for v in (22, 21, 20, 19)]
    for candidate in names:
        if path := shutil.which(candidate):
            return path
    raise SystemExit(f"none of {', '.join(names)} is installed")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@lru_cache
def architecture(path):
    machine = re.search(r"Machine:\s+(.*)", output_of("readelf", "-h", path)).group(1)
    return {"AArch64": "aarch64", "ARM": "arm"}.get(machine, "x86_64")


@dataclass
class Symbol:
    name: str
    binding: str  # LOCAL, GLOBAL, WEAK, UNIQUE
    kind: str     # FUNC, OBJECT, NOTYPE, ...
    defined: bool
    visibility: str


def symbols(path):
    found = []
    for line in output_of("readelf", "-sW", path).splitlines():
        part = line.split()
        if len(part) < 8 or not part[0].rstrip(":").isdigit() or part[3] in ("FILE", "SECTION"):
            continue
        # readelf may insert [<other>: 88] between section and name; the name is always last.
        found.append(Symbol(part[-1], part[4], part[3], part[6] != "UND", part[5]))
    return found


def sections(path):
    """Name and type of every section."""
    rows = re.findall(r"^\s*\[\s*\d+\]\s+(\S+)\s+([A-Z_]+)\s", output_of("readelf", "-SW", path), re.M)
    return [(name, kind) for name, kind in rows if name != "NULL"]


@dataclass
class Instruction:
    address: int
    code: bytes  # as stored; empty unless asked for
    text: str    # "fmla v0.4s, v1.4s, v2.s[0]"

    @property
    def mnemonic(self):
        return self.text.split(None, 1)[0]


@dataclass
class Function:
    name: str
    instructions: list = field(default_factory=list)


def disassemble(path, options=None, code=False, version=None):
    """The functions of one object file."""
    command = [llvm_tool("llvm-objdump", version), "-d", *(options or EVERYTHING[architecture(path)])]
    if not code:
        command.append("--no-show-raw-insn")
    functions, current = [], None
    for line in output_of(*command, path).splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            # Arm mapping symbols and local labels do not begin a function.
            if current is None or not head.group(1).startswith((".L", "$")):
                current = Function(head.group(1))
                functions.append(current)
        elif current and (row := re.match(r"^\s*([0-9a-f]+):\s+(\S.*)$", line)):
            raw, text = b"", row.group(2)
            if code:
                raw_hex, _, text = text.partition("\t")
                raw = bytes.fromhex(raw_hex.replace(" ", ""))
            text = re.sub(r"\s+", " ", re.split(r"//| @ |\s# ", text)[0].strip())
            current.instructions.append(Instruction(int(row.group(1), 16), raw, text or "<nothing>"))
    return functions


BRANCH = re.compile(r"^(?:b|b\.?(?:eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)(?:\.[nw])?|cbn?z|tbn?z|j[a-z]+)\s(?:.*?)0x([0-9a-f]+)")


def branch_target(instruction):
    """Where a direct jump inside a function goes, else None."""
    match = BRANCH.match(instruction.text)
    return int(match.group(1), 16) if match else None


def innermost_loops(function):
    """The instructions of each loop that holds no other: from the target of a backward branch to the branch."""
    if not function.instructions:
        return []
    first = function.instructions[0].address
    spans = set()
    for instruction in function.instructions:
        target = branch_target(instruction)
        if target is not None and first <= target <= instruction.address:
            spans.add((target, instruction.address))
    inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    return [[i for i in function.instructions if begin <= i.address <= end] for begin, end in sorted(inner)]


def demangle(names):
    """Readable names, in order."""
    filt = shutil.which("c++filt")
    if not filt or not names:
        return list(names)
    done = subprocess.run([filt], input="\n".join(names), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


X86_LANES = {"xmm": 4, "ymm": 8, "zmm": 16}


def macs(instruction, arch):
    """Multiply-accumulates one instruction does; 0 for everything else. x86 counts f32, halves and bytes."""
    op, _, args = instruction.text.removeprefix("{vex} ").partition(" ")
    if arch == "x86_64":
        if fused := re.match(r"vfn?m(?:add|sub)(?:132|213|231)p([sh])$", op):
            return X86_LANES.get(re.sub(r"\d", "", args.rsplit("%", 1)[-1].split("{")[0].strip()), 0) * (2 if fused.group(1) == "h" else 1)
        if product := re.match(r"v?(pdpbusd|pdpwssd|pmaddwd)$", op):
            return X86_LANES.get(re.sub(r"\d", "", args.rsplit("%", 1)[-1].split("{")[0].strip()), 0) * (4 if product.group(1) == "pdpbusd" else 2)
        if op == "vdpbf16ps":
            return 2 * X86_LANES.get(re.sub(r"\d", "", args.rsplit("%", 1)[-1].split("{")[0].strip()), 0)
        return 4 if op == "mulps" else 0
    if arch == "aarch64":
        shape = re.match(r"v\d+\.(\d+)([bhsd])", args)
        n = int(shape.group(1)) if shape else 0
        per_lane = {"fmla": 1, "fmls": 1, "sdot": 4, "udot": 4, "usdot": 4, "sudot": 4, "smmla": 8, "ummla": 8, "usmmla": 8,
                    "bfdot": 2, "bfmmla": 4}
        if op in per_lane:
            return per_lane[op] * n
        return n if re.match(r"(bfmlal[bt]|fmlal2?|[su]mlal2?|[su]mull2?)$", op) else 0
    quad = args.startswith("q")
    if re.match(r"vm(ul|la)l\.[su]8", op):
        return 8
    for pattern, lanes in ((r"v(fma|mla)\.f32", 2), (r"v(fma|mla)\.f16", 4), (r"v[su]dot", 8), (r"vml?al\.[su]16", 4)):
        if re.match(pattern, op):
            return lanes * (2 if quad and lanes != 4 or quad and op.endswith("f16") else 1)
    return 0


def hot_loop(path, symbol=None, version=None):
    """(multiply-accumulates per turn, function name, instructions) of the innermost loop that does the most of them."""
    arch, best = architecture(path), None
    for function in disassemble(path, version=version):
        if symbol and symbol not in function.name:
            continue
        for body in innermost_loops(function):
            work = sum(macs(i, arch) for i in body)
            if work and (best is None or work > best[0]):
                best = (work, function.name, body)
    return best
