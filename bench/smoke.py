#!/usr/bin/env python3
"""Checks what skua-bench promises a caller: names, flags, exit codes, JSON fields, a report without outside references. Argument: the program."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
bench = sys.argv[1]


def run(*arguments, code=0):
    done = subprocess.run([bench, *arguments], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}, must be {code}\n{done.stdout}{done.stderr}"
    assert "\r" not in done.stderr, "progress is for terminals"
    return done.stdout, done.stderr


assert run("--list")[1] == "", "kernels of GPUs are none of the suite kernels"
names = run("--suite", "layers,networks", "--list")[0].split()
for name in ("gemm_f32/512x512x512", "conv2d_f32/resnet50/3x3s1_56x56x64-64", "depthwise_f32/mobilenet_v1/3x3s2_112x112x64", "network_f32/mobilenet_v1", "network_f32/mobilenet_v2",
             "network_f32/mobilenet_v3_large", "network_f32/resnet18", "network_f32/resnet50", "network_f32/squeezenet_1_1", "network_f32/vgg16",
             "network_f32/googlenet", "network_f32/efficientnet_b0"):
    assert name in names, f"{name} is not a case"
assert len(names) == len(set(names)), "a name stands for two cases"

halves = run("--suite", "layers,networks", "--type", "f16,bf16", "--list")[0].split()
assert {n.replace("f16", "f32", 1) for n in halves if "bf16" not in n} == set(names) and len(halves) == len(set(halves)) == 2 * len(names), "other cases in f16 and bf16 than in f32"

assert "unknown argument" in run("--nonsense", code=2)[1]
assert "not one of" in run("--suite", "nothing", code=2)[1]
assert "not one of" in run("--peers", "nobody", code=2)[1]
assert "regular expression" in run("--filter", "(", code=2)[1]
assert "no case of these suites" in run("--filter", "no such case", code=2)[1]
assert "needs a value" in run("--json", code=2)[1]
assert "number" in run("--threads", "0", code=2)[1]
assert "number" in run("--threads", "1,x", code=2)[1]
assert "not one of" in run("--isa", "nothing", code=2)[1]
assert "not one of" in run("--type", "f8", code=2)[1]
assert "not one of" in run("--numerics", "slow", code=2)[1]
assert run("--compare", "/nonexistent.json", code=2)[1]
assert run("--json", "/nonexistent/x.json", code=2)[1]
assert "--filter" in run("--help")[0]
without = run("--without-amx", "--quick", "--suite", "layers", "--type", "s8", "--peers", "none", "--filter", "gemm_s8/64x64x64$")[0]
assert "no AMX" in without and "amx" not in without, "AMX is used although it is refused"

with tempfile.TemporaryDirectory() as folder:
    file, page = os.path.join(folder, "a.json"), os.path.join(folder, "a.html")
    run("--quick", "--suite", "machine,layers,kernels", "--filter", r"peak|bandwidth|gemm_f32/64x64x64$|gemm_f32_\dx|conv2d_f32/resnet18/1x1s2_14|binary_f32/add_8192", "--json", file, "--html", page)
    with open(file, encoding="utf-8") as f:
        result = json.load(f)
    cases = {c["name"]: c for c in result["cases"]}
    for case in result["cases"]:
        missing = {"suite", "name", "op", "type", "threads", "algorithm", "kernel", "ns", "noise", "gflops", "peak_share", "peers", "regret", "error"} - set(case)
        assert not missing, f"{case['name']} lacks {missing}"
        assert case["error"] is None or case["error"].startswith("unsupported"), f"{case['name']}: {case['error']}"
    gemm = cases["gemm_f32/64x64x64"]
    assert result["numerics"] == "default"
    assert gemm["ns"] > 0 and abs(gemm["gflops"] - 2 * 64**3 / gemm["ns"]) < 0.01 * gemm["gflops"]
    assert result["machine"]["peak_gflops"] and "DRAM" in result["machine"]["bandwidth_gb_s"]
    with open(page, encoding="utf-8") as f:
        text = f.read()
    assert "gemm_f32" in text and not re.search(r"(src|href)=|@import|url\(", text), "the report refers to something outside"
    isas = list(result["machine"]["peak_gflops"])

    # The bars: a run that meets them, and for each what misses it.
    def bars(cases, cap=None):
        with open(file + ".bars", "w", encoding="utf-8") as f:
            json.dump(dict(result, peers={"xnnpack": "", "onednn": ""}, machine=dict(result["machine"], load=0), cases=cases, isa_cap=cap), f)
        done = subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bars.py"), file + ".bars"], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def case(name, **other):
        kind = name.split("/")[0]
        return dict({"suite": "networks" if kind.startswith("network") else "layers", "name": name, "type": kind.rsplit("_", 1)[1], "threads": 1, "ns": 2e6, "peak_share": 0.96, "regret": None, "error": None,
                     "peers": {"xnnpack": 10e6, "onednn": 9e6}}, **other)

    of_bars = ["gemm_f32/128x128x128", "gemm_f32/4x128x128", "conv2d_f32/resnet18/3x3s1_14x14x64-64", "conv2d_f32/resnet18/1x1s2_14x14x64-64", "conv2d_f32/resnet18/3x3s1g2_14x14x64-64",
               "conv2d_f32/resnet18/7x7s2_224x224x3-64", "depthwise_f32/mobilenet_v1/3x3s1_14x14x64", "depthwise_f32/mobilenet_v1/3x3s2_14x14x64", "max_pool_f32/googlenet/3x3s2_112x112x64", "network_f32/vgg16",
               "gemm_s8/4x128x128", "conv2d_s8/resnet50/1x1s1_14x14x64-64", "conv2d_s8/resnet50/7x7s2_224x224x3-64", "depthwise_s8/mobilenet_v1/3x3s1_14x14x64", "depthwise_s8/mobilenet_v1/3x3s2_14x14x64",
               "network_s8/mobilenet_v2", "gemm_f32/quantized_weights/1x4096x4096_s4_quantize_a"]
    met = [case(n) for n in of_bars] + [case("gemm_f32/128x128x128", threads=2, scaling=1.9), case("gemm_f32/128x128x128", suite="regret", regret=0.02), case("network_f16/vgg16", f32_ns=2.1e6)]
    code, text = bars(met)
    assert code == 0 and re.search(r"^0 of \d+ missed", text, re.M), text
    slow_x, slow_o = {"xnnpack": 1e6, "onednn": 9e6}, {"xnnpack": 10e6, "onednn": 1e6}
    for which, change, bar in ((0, {"peers": slow_x}, "f32 products of more than 16 rows "), (0, {"peak_share": 0.5}, "f32 products of 32 rows and more, share"), (1, {"peers": slow_o}, "f32 products of 1 to 16 rows"),
                               (1, {"peers": {"xnnpack": 3e6, "onednn": 9e6}}, "f32 products of 2 to 8 rows, XNNPACK"), (2, {"peers": {"xnnpack": 5e6, "onednn": 9e6}}, "f32 3x3, XNNPACK"),
                               (3, {"peers": slow_o}, "f32 other convolutions"), (4, {"peers": slow_x}, "f32 other convolutions"), (5, {"peers": {"xnnpack": 2.2e6, "onednn": 9e6}}, "f32 first layers, XNNPACK"),
                               (6, {"peers": slow_o}, "f32 depthwise, stride 1"), (7, {"peers": slow_o}, "f32 depthwise, stride 2"), (6, {"peers": {"xnnpack": 0.1e6, "onednn": 9e6}}, "f32 depthwise, XNNPACK"),
                               (8, {"peers": slow_o, "peak_share": 0.8}, "f32 pools"), (9, {"peers": slow_x}, "f32 network vgg16"), (10, {"peers": slow_o}, "s8 products of 1 to 16 rows"), (10, {"peak_share": 0.9}, "s8 products of 3 rows and more, share"),
                               (10, {"peers": {"xnnpack": 3e6, "onednn": 9e6}}, "s8 products of 2 to 8 rows, XNNPACK"), (11, {"peers": slow_o}, "s8 convolutions of ResNet-50, oneDNN"),
                               (11, {"peers": slow_x}, "s8 convolutions of ResNet-50, XNNPACK"), (12, {"peers": slow_x}, "s8 first layers, XNNPACK"), (12, {"peers": slow_o}, "s8 first layers, oneDNN"),
                               (13, {"peers": slow_o}, "s8 depthwise, stride 1, oneDNN"), (14, {"peers": slow_o}, "s8 depthwise, stride 2, oneDNN"), (14, {"peers": slow_x}, "s8 depthwise, XNNPACK"),
                               (15, {"peers": slow_x}, "s8 network mobilenet_v2"), (16, {"peak_share": 0.5}, "s4 weights, one row of 4096x4096, share"), (16, {"peers": slow_x}, "s4 weights, one row of 4096x4096, XNNPACK"),
                               (17, {"scaling": 1.5}, "f32 layers above 1 ms, two threads"), (18, {"regret": 0.2}, "choice, 1 thread"), (19, {"f32_ns": 1.9e6}, "f16 networks"), (1, {"peers": {"xnnpack": 10e6, "onednn": 1.8e6}}, "f32 layers ")):
        code, text = bars([dict(c, **change) if i == which else c for i, c in enumerate(met)])
        assert code == 1 and any(line.startswith(bar) and "MISSED" in line for line in text.split("\n")), f"{bar} is met by {change}\n{text}"
    code, text = bars(met + [case("gemm_f32/1x1x1", error="wrong result: of a test")])
    assert code == 1 and "FAILED: gemm_f32/1x1x1" in text
    code, text = bars(met, "avx2")
    assert code == 0 and "AVX2: f32 depthwise" in text and "f32 depthwise, stride 1" not in text.split("no case of")[0], text
    far = {"xnnpack": 10e6, "onednn": 0.1e6}
    for which, change, bar in ((2, {"peers": slow_o}, "AVX2: f32 3x3"), (6, {"peers": far}, "AVX2: f32 depthwise"), (13, {"peers": far}, "AVX2: s8 depthwise"),
                               (len(met), {"peak_share": 0.8}, "AVX2: s8 products of 6 rows")):
        code, text = bars([dict(c, **change) if i == which else c for i, c in enumerate(met + [case("gemm_s8/8x128x128")])], "avx2")
        assert code == 1 and any(line.startswith(bar) and "MISSED" in line for line in text.split("\n")), f"{bar} is met by {change}\n{text}"
    assert bars(met, "avx512vnni")[0] == 1, "no bar is of that cap"
    code, text = bars([dict(c, peak_share=float("nan")) if i == 0 else c for i, c in enumerate(met)])
    assert code == 1, text
    assert bars([])[0] == 1 and bars(None)[0] == 2 and bars([1])[0] == 2

    out, _ = run("--quick", "--suite", "layers", "--filter", "gemm_f32/64x64x64$", "--threads", "1,2", "--isa", isas[0], "--json", page)
    assert "scaling" in out
    with open(page, encoding="utf-8") as f:
        capped = json.load(f)
    assert capped["machine"]["isa"] == isas[0] and capped["isa_cap"] == (isas[0] if len(isas) > 1 else None)
    assert [c["threads"] for c in capped["cases"]] == [1, 2] and capped["cases"][1]["scaling"] > 0
    assert all(c["kernel"].endswith(isas[0]) for c in capped["cases"]), "a kernel above the cap"
    run("--quick", "--suite", "layers,kernels", "--type", "f16,bf16", "--filter", r"gemm_b?f16/64x64x64$|(add|relu)_b?f16_|binary_b?f16/add_8192", "--json", file + ".half", "--html", page)
    with open(file + ".half", encoding="utf-8") as f:
        for case in json.load(f)["cases"]:
            assert case["type"] in ("f16", "bf16") and f"_{case['type']}" in case["name"], case
            assert case["error"] is None or case["error"].startswith("unsupported"), f"{case['name']}: {case['error']}"
            assert case["error"] or case["suite"] == "kernels" or case["f32_ns"] > 0, f"{case['name']} is not compared with f32"
    for numerics, winograd in (("fast", True), ("strict", False)):
        out, _ = run("--quick", "--suite", "layers", "--type", "f16,f32", "--numerics", numerics, "--peers", "none", "--filter", "resnet18/3x3s1_28x28|gemm_f16/64x64x64$", "--json", page)
        assert f"numerics  {numerics}" in out
        with open(page, encoding="utf-8") as f:
            traded = json.load(f)
        assert traded["numerics"] == numerics and len(traded["cases"]) == 3 and all(c["error"] is None for c in traded["cases"]), traded["cases"]
        assert winograd or not any(c["algorithm"].startswith("winograd") for c in traded["cases"]), "STRICT is direct"
        if winograd and "avx512" in isas:
            assert any(c["algorithm"].startswith("winograd") for c in traded["cases"]), traded["cases"]
    run("--quick", "--suite", "layers", "--type", "s8", "--peers", "none", "--filter", r"v3_large/(1x1s1_1x1x24-72|1x1s1_7x7x160-960|mul_7x7x672)|b0/1x1s1_1x1x8-32", "--json", page)
    with open(page, encoding="utf-8") as f:
        bytes_ = json.load(f)["cases"]
    assert len(bytes_) >= 3 and all(c["error"] is None for c in bytes_), [(c["name"], c["error"]) for c in bytes_]
    out, _ = run("--quick", "--suite", "networks", "--filter", "squeezenet", "--peers", "none", "--json", page)
    assert "kernel: what is left" in out or "no sampling here" in out
    with open(page, encoding="utf-8") as f:
        steps = json.load(f)["cases"][0]["steps"]
    for step in steps:
        loss = step["loss"]
        assert abs(sum(v for k, v in loss.items() if k != "samples" and v is not None) - 1) < 0.01, step
    out, _ = run("--quick", "--suite", "regret", "--filter", "gemm_f32/64x64x64$|conv2d_f32/resnet18/3x3s1_7x7", "--json", page)
    assert "regret, 1 thread: " in out and "worst" in out
    with open(page, encoding="utf-8") as f:
        for case in json.load(f)["cases"]:
            assert case["error"] is None and case["regret"] >= 0 and case["best_forced"] and "regret_tuned" in case, case
    out, _ = run("--quick", "--suite", "steps", "--filter", r"gemm_f32/1\.\.24x64x96", "--json", file + ".steps", "--html", page)
    assert re.search(r"^steps, f32, 1 thread: \d+ of 24 layers in 1 series", out, re.M), out
    with open(file + ".steps", encoding="utf-8") as f:
        members = json.load(f)["cases"][0]["steps"]
    assert [m["name"] for m in members] == [f"{n}x64x96" for n in range(1, 25)] and all(m["ns"] > 0 and (m["longer"] > 0.1) == bool(m["larger"]) for m in members), members
    with open(page, encoding="utf-8") as f:
        assert "<polyline" in f.read(), "no curve of the series"
    own = os.path.join(folder, "own.txt")
    with open(own, "w", encoding="utf-8") as f:
        f.write("conv 3x3 8 in=6x6x8 pad=1  # ours\n1..3 gemm ?x8x8\n")
    assert run("--shapes", own, "--suite", "layers,steps,networks", "--list")[0].split() == ["conv2d_f32/own.txt/3x3s1_6x6x8-8", "gemm_f32/1..3x8x8"]
    for text, why in (("1..3 gemm 2x8x8", "a series is"), ("1..3 name a?", "of layers"), ("1..9999 gemm ?x8x8", "1000"), ("gemm 8", "gemm MxNxK"), ("", "no layer")):
        with open(own, "w", encoding="utf-8") as f:
            f.write(f"name x\n{text}\n")
        assert why in run("--shapes", own, "--list", code=2)[1], text
    assert "No such file" in run("--shapes", own + "x", "--list", code=2)[1]
    out, err = run("--quick", "--suite", "layers", "--filter", "gemm_f32/64x64x64$", "--peers", "none", "--compare", file)
    assert "geometric mean" in out and "of both and of the code" not in err
    out, err = run("--quick", "--suite", "layers", "--filter", "gemm_f32/64x64x64$", "--peers", "none", "--numerics", "fast", "--compare", file)
    assert "of both and of the code" in err
    with open(file, "w", encoding="utf-8") as f:
        f.write("{")
    assert "not a result file" in run("--compare", file, code=2)[1]
# engines.py reads the same networks; the engines themselves are not installed for this.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import engines  # noqa: E402

for network in engines.NETWORKS:
    assert f"network_f32/{network}" in names, network
    steps, shape = engines.parse(os.path.join(engines.here, "shapes", network + ".txt"))
    assert shape[steps[-1]["output"]] == (1, 1, 1000), f"{network} ends with {shape[steps[-1]['output']]}"
script = [sys.executable, os.path.join(engines.here, "engines.py")]
assert subprocess.run([*script, "--networks", "nothing"], capture_output=True).returncode == 2
assert subprocess.run([*script, "--help"], capture_output=True).returncode == 0
print("skua-bench keeps its promises")
