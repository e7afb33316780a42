#!/usr/bin/env python3
"""What the model chooses for layers of the corpus on chips that were measured, whatever machine this is: compared with choices/CAP.txt, so that no choice changes unseen.

choices.py PROGRAM CAP [--update]    PROGRAM: skua-bench. --update writes the file anew: look at its diff, and say in the commit what the layers gained.
"""
import os
import subprocess
import sys

# For each cap chips of SKUA_CORE, types, and sets that some CPUs leave out below it.
CAPS = {
    "avx2": (("zen3", "zen5", "sapphire-rapids"), "f32,s8", ()),
    "avx512vnni": (("zen5", "zen4", "sapphire-rapids"), "f32,s8", ("avxvnni",)),
    "amx_int8": (("sapphire-rapids",), "f16,bf16,s8", ("avx512fp16", "amx_bf16")),
}
LAYERS = r"^(conv2d|depthwise).*/(resnet50|mobilenet_v|efficientnet|googlenet|squeezenet|convolutions|other_networks)|^gemm_(f32|s8)/[0-9x]+$"  # seconds; not those of 100 MB of weights
NO_SUCH_SET = 77

program, cap = sys.argv[1:3]
CHIPS, types, also = CAPS[cap]
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "choices", cap + ".txt")


def choices(chip, isa=cap, layers=LAYERS):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SKUA_")} | {"SKUA_CORE": chip}
    done = subprocess.run([program, "--choices", "--isa", isa, "--type", types, "--filter", layers], capture_output=True, text=True, env=environment, check=False)
    if f'"{isa}" is not one of' in done.stderr:  # what this CPU has
        print(done.stderr, end="")
        sys.exit(NO_SUCH_SET)
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


for isa in also:
    choices(CHIPS[0], isa, "^gemm_s8/512x512x512$")
of = {chip: choices(chip) for chip in CHIPS}
first = of[CHIPS[0]]
assert len(first) > 500 and all(list(c) == list(first) for c in of.values()), "not the layers that were asked for"
lines = []
for layer, chosen in first.items():
    lines.append(f"{layer}: {chosen}")
    lines += [f"  {chip}: {of[chip][layer]}" for chip in CHIPS[1:] if of[chip][layer] != chosen]

if "--update" in sys.argv[3:]:
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"# {CHIPS[0]}, and below a layer the chips that take something else. By bench/choices.py --update\n" + "\n".join(lines) + "\n")
    sys.exit(0)
with open(path, encoding="utf-8") as f:
    expected = f.read().splitlines()[1:]


def by_chip(text):
    result, layer = {}, ""
    for line in text:
        name, chosen = line.split(": ", 1)
        if not line.startswith(" "):
            layer = name
            result |= {(layer, chip): chosen for chip in CHIPS}
        else:
            result[layer, name.strip()] = chosen
    return result


was, now = by_chip(expected), by_chip(lines)
changed = [key for key in {**was, **now} if was.get(key) != now.get(key)]
for layer, chip in changed:
    key = (layer, chip)
    print(f"{layer} on {chip}: {was.get(key, 'no such layer')} -> {now.get(key, 'no such layer')}")
print(f"{len(first)} layers on {len(CHIPS)} chips, {len(changed)} choices changed" + ("; where that is meant: bench/choices.py PROGRAM " + cap + " --update" if changed else ""))
sys.exit(1 if changed else 0)
