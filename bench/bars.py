#!/usr/bin/env python3
"""What a run of skua-bench reaches of the project's bars on x86, each beside its peers, and the layer that is furthest from it.

    skua-bench --suite layers,networks,regret,overhead --type f32,s8 --threads 1,2 --quick --json run.json
    bench/bars.py run.json [more.json]

A ratio is a peer's time over ours, a share the roofline's. A bar is of a mean (geometric), of every layer, or of both; those that the run has no case of are named at the end. Exit status 1: some
are missed, none was judged, or cases failed; 2: a file holds no results, or a case of another. A run with --isa avx2 (or less) has rows of its own."""
import json
import math
import re
import sys


class Case:
    def __init__(self, raw, cap):
        self.__dict__.update(raw)
        self.cap = cap
        parts = self.name.split("/")
        self.kind, self.label = re.sub(r"_(f32|f16|bf16|s8)$", "", parts[0]), parts[-1]
        self.corpus = parts[1] if len(parts) > 2 else ""
        window = re.match(r"(\d+)x(\d+)s(\d+)", self.label)
        self.window = window.group(1) + "x" + window.group(2) if window else ""
        self.stride = int(window.group(3)) if window else 0
        channels = re.search(r"x(\d+)-(\d+)", self.label)
        self.inputs = int(channels.group(1)) if channels and self.kind.startswith("conv2d") else 0
        product = re.match(r"(\d+)x(\d+)x(\d+)(_|$)", self.label)
        self.rows = int(product.group(1)) if product and self.kind == "gemm" else 0
        self.weights = self.kind == "gemm" and bool(re.search(r"_(s8|s4)\b|_(s8|s4)_", self.label))

    def against(self, *names):
        times = [t for n, t in self.peers.items() if not names or n in names]
        return min(times) / self.ns if times and self.ns else None


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if min(values) > 0 else 0.0


best = lambda c: c.against()
xnnpack = lambda c: c.against("xnnpack")
onednn = lambda c: c.against("onednn")
share = lambda c: c.peak_share
faster_or_bound = lambda c: 1 if (c.peak_share or 0) >= 0.85 and (c.against() or 0) < 1 else c.against()
regret = lambda c: None if c.regret is None else 1 + c.regret
scaling = lambda c: getattr(c, "scaling", None) if c.ns > 0.5e6 and (getattr(c, "scaling", None) or 0) * c.ns > 1e6 else None

def layer(t, test, threads=1, cap=None):
    return lambda c: c.suite == "layers" and c.type == t and c.threads == threads and c.cap == cap and test(c)


def network(t, name):
    return lambda c: c.suite == "networks" and c.type == t and c.threads == 1 and not c.cap and name in c.name


simple = ("max_pool", "average_pool", "global_pool", "resize", "softmax", "unary", "binary")
conv = lambda c: c.kind.startswith("conv2d")
plain = lambda c: not re.search(r"[gd]\d", c.label.split("_")[0])  # neither groups nor dilation
winograd = lambda c: c.kind == "conv2d" and c.window == "3x3" and c.stride == 1 and c.inputs >= 16 and plain(c)
first = lambda c: conv(c) and 0 < c.inputs <= 4
few, two_to_eight = lambda c: c.kind == "gemm" and not c.weights and c.rows <= 16, lambda c: c.kind == "gemm" and not c.weights and 2 <= c.rows <= 8
many = lambda c: c.kind == "gemm" and not c.weights and c.rows > 16
depthwise = lambda stride: lambda c: c.kind == "depthwise" and c.stride == stride and plain(c)
s4_row = lambda c: c.label.startswith("1x4096x4096_s4") and "quantize_a" in c.label

# what it is of, which cases, their figure, the least mean and the least of each (None: no such bar)
BARS = [
    ("f32 layers", layer("f32", lambda c: True), best, 1.35, 0.95),
    ("f32 layers, XNNPACK", layer("f32", lambda c: True), xnnpack, 1.70, None),
    ("f32 products of 32 rows and more, share", layer("f32", lambda c: many(c) and c.rows >= 32), share, 0.95, None),
    ("f32 products of more than 16 rows", layer("f32", many), best, None, 0.98),
    ("f32 products of 1 to 16 rows", layer("f32", few), best, None, 1.0),
    ("f32 products of 2 to 8 rows, XNNPACK", layer("f32", two_to_eight), xnnpack, None, 1.7),
    ("f32 3x3, XNNPACK (direct)", layer("f32", winograd), xnnpack, 3.0, 1.9),
    ("f32 other convolutions", layer("f32", lambda c: conv(c) and not winograd(c)), best, None, 0.98),
    ("f32 first layers, XNNPACK", layer("f32", first), xnnpack, None, 1.2),
    ("f32 depthwise, stride 1", layer("f32", depthwise(1)), best, 1.25, None),
    ("f32 depthwise, stride 2", layer("f32", depthwise(2)), best, 1.15, None),
    ("f32 depthwise, XNNPACK", layer("f32", lambda c: c.kind == "depthwise"), xnnpack, 1.8, None),
    ("f32 pools, resize, softmax, elementwise, or 85% of the bandwidth", layer("f32", lambda c: c.kind in simple), faster_or_bound, None, 1.0),
    ("f32 layers above 1 ms, two threads over one", layer("f32", lambda c: True, 2), scaling, None, 1.85),
    *[("f32 network " + n, network("f32", n), best, b, None) for n, b in
      (("mobilenet_v1", 1.08), ("mobilenet_v2", 1.12), ("mobilenet_v3_large", 1.15), ("resnet18", 1.4), ("resnet50", 1.2), ("vgg16", 1.2))],
    ("f16 networks, our f32", network("f16", ""), lambda c: c.f32_ns / c.ns if getattr(c, "f32_ns", None) else None, None, 1.0),
    ("s8 depthwise, stride 1, oneDNN", layer("s8", depthwise(1)), onednn, 2.0, None),
    ("s8 depthwise, stride 2, oneDNN", layer("s8", depthwise(2)), onednn, 1.5, None),
    ("s8 depthwise, XNNPACK", layer("s8", lambda c: c.kind == "depthwise"), xnnpack, 3.0, None),
    ("s8 convolutions of ResNet-50, oneDNN", layer("s8", lambda c: conv(c) and c.corpus == "resnet50"), onednn, None, 1.0),
    ("s8 convolutions of ResNet-50, XNNPACK", layer("s8", lambda c: conv(c) and c.corpus == "resnet50"), xnnpack, None, 1.07),
    ("s8 products of 3 rows and more, share", layer("s8", lambda c: c.rows >= 3), share, 0.95, None),
    ("s8 products of 1 to 16 rows", layer("s8", few), best, None, 1.05),
    ("s8 products of 2 to 8 rows, XNNPACK", layer("s8", two_to_eight), xnnpack, None, 1.8),
    ("s8 first layers, XNNPACK", layer("s8", first), xnnpack, 2.0, None),
    ("s8 first layers, oneDNN", layer("s8", first), onednn, 1.1, None),
    ("s8 network mobilenet_v2, XNNPACK", network("s8", "mobilenet_v2"), xnnpack, 1.1, None),
    ("s4 weights, one row of 4096x4096, share", layer("f32", s4_row), share, None, 0.8),
    ("s4 weights, one row of 4096x4096, XNNPACK", layer("f32", s4_row), xnnpack, None, 1.5),
    ("s4 weights, packing, GB/s", lambda c: c.suite == "overhead" and c.threads == 1 and not c.cap and c.name.startswith("create_gemm") and "_s4" in c.name, lambda c: c.gb_s, None, 2.0),
    ("AVX2: f32 layers", layer("f32", lambda c: True, cap="avx2"), best, None, None),
    ("AVX2: f32 3x3, oneDNN (direct)", layer("f32", winograd, cap="avx2"), onednn, 2.5, 1.9),
    ("AVX2: f32 depthwise", layer("f32", lambda c: c.kind == "depthwise", cap="avx2"), best, 1.15, None),
    ("AVX2: s8 layers (oneDNN's products saturate)", layer("s8", lambda c: True, cap="avx2"), best, None, None),
    ("AVX2: s8 depthwise", layer("s8", lambda c: c.kind == "depthwise", cap="avx2"), best, 1.2, None),
    ("AVX2: s8 products of 6 rows and more, share", layer("s8", lambda c: c.rows >= 6, cap="avx2"), share, None, 0.87),
    ("SSE4.1: f32 layers", layer("f32", lambda c: True, cap="sse41"), best, None, None),
    ("SSE4.1: f32 products of 32 rows and more, share", layer("f32", lambda c: many(c) and c.rows >= 32, cap="sse41"),
     share, None, None),
    ("SSE2: f32 layers", layer("f32", lambda c: True, cap="sse2"), best, None, None),
    ("SSE2: f32 products of 32 rows and more, share", layer("f32", lambda c: many(c) and c.rows >= 32, cap="sse2"),
     share, None, None),
]
REGRET = [("choice, %d thread%s: regret at most" % (t, "s" if t > 1 else ""), lambda c, t=t: c.suite == "regret" and c.threads == t and not c.cap, regret, 1.03, 1.15) for t in (1, 2)]
ROW = "run_gemm_f32/1x1x4096_s8_quantize_a"  # hardly more than the quantisation of its row
REGRET.append(("a row of 4096 quantised and multiplied by 4096 columns over the latter", layer("f32", lambda c: re.match(r"1x4096x4096_s[48]_quantize_a$", c.label)),
               lambda c: 1 + c.row_ns / (c.ns - c.row_ns) if c.row_ns else None, None, 1.03))


def read(path):
    with open(path, encoding="utf-8") as f:
        run = json.load(f)
    machine, peers = run["machine"], run["peers"]
    cap = run.get("isa_cap") or None
    lacking = [p for p in ("xnnpack", "onednn") if p not in peers and not (cap and p == "xnnpack")]  # it has no cap
    doubts = [text for text, on in (("numerics are %s" % run.get("numerics"), run.get("numerics", "default") != "default"), ("on a device", run.get("device")),
                                    ("the machine was busy", (machine.get("load") or 0) > 0.5), ("without " + " and ".join(lacking), lacking)) if on]
    if doubts:
        print("%s does not compare: %s" % (path, "; ".join(doubts)))
    print("%s: %s, %s; peers %s" % (path, machine["cpu"], "capped at " + cap if cap else machine["isa"], ", ".join("%s %s" % p for p in peers.items()) or "none"))
    failed = [c["name"] for c in run["cases"] if c["error"] and not c["error"].startswith("unsupported")]
    return [Case(c, cap) for c in run["cases"] if not c["error"]], failed


def main(paths):
    cases, failed = [], []
    for path in paths:
        try:
            of_path = read(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            print("%s: no results of skua-bench --json (%s: %s)" % (path, type(e).__name__, e), file=sys.stderr)
            return 2
        here = {(c.suite, c.name, c.threads, c.cap) for c in of_path[0]}
        again = here & {(c.suite, c.name, c.threads, c.cap) for c in cases}
        if again:
            print("%s: %d cases are in another file too, such as %s" % (path, len(again), min(again)[1]), file=sys.stderr)
            return 2
        cases += of_path[0]
        failed += of_path[1]
    rows = {(c.cap, c.threads): c.ns for c in cases if c.name == ROW}
    for c in cases:
        c.row_ns = rows.get((c.cap, c.threads))
    missed, absent = 0, []
    print("%-66s %6s %15s %15s  %s" % ("", "cases", "mean (bar)", "worst (bar)", "the worst"))
    for bars, most in ((BARS, False), (REGRET, True)):
        for what, wanted, figure, of_mean, of_each in bars:
            values = sorted(((figure(c), c.name) for c in cases if wanted(c) and figure(c) is not None), reverse=most)
            if not values:
                absent.append(what)
                continue
            m, worst = mean([v for v, _ in values]), values[0]
            beyond = (lambda v, bar: not v <= bar) if most else (lambda v, bar: not v >= bar)  # NaN is beyond
            behind = sum(beyond(v, of_each) for v, _ in values) if of_each else 0
            of_all = bool(of_mean and beyond(m, of_mean))
            miss = of_all or bool(behind)
            missed += miss
            bar = lambda b: "(%.2f)" % b if b else ""
            print("%-66s %6d %6.2f %8s %6.2f %8s  %s" % (what, len(values), m, bar(of_mean), worst[0], bar(of_each), ("MISSED " + " and ".join(["in the mean"] * of_all + ["by %d" % behind] * bool(behind)) + ": " if miss else "") + worst[1]))
    print("%d of %d missed" % (missed, len(BARS) + len(REGRET) - len(absent)) + ("; no case of: " + "; ".join(absent) if absent else ""))
    if failed:
        print("%d cases FAILED: %s" % (len(failed), ", ".join(failed[:5])))
    judged = len(BARS) + len(REGRET) - len(absent)
    if not judged:
        print("no bar is of these cases")
    return 1 if missed or failed or not judged else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    sys.exit(main(sys.argv[1:]))
