#!/usr/bin/env python3
"""The networks of bench/shapes on whole engines (ONNX Runtime, ncnn, MNN from PyPI), beside skua-bench's own times.

    skua-bench --suite networks --threads 1,2 --json skua.json
    bench/engines.py --skua skua.json

Every engine gets the same network with the same random weights in its own format: ONNX (and MNN converted from it), ncnn's param and bin files. Their results must
agree. Engines take turns, the median counts; with one thread it is the processor time of the process, pinned to a core, with several it is wall time, with a pause between turns in
which idle workers stop spinning. The packages go to a virtual environment in build/engines (--venv)."""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
ENGINES = {"onnxruntime": ["onnxruntime", "onnx"], "ncnn": ["ncnn"], "mnn": ["MNN", "onnx"]}
NETWORKS = ["mobilenet_v1", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "resnet18", "resnet50", "googlenet", "squeezenet_1_1", "vgg16"]


# ---- the network, as skua-bench reads it -------------------------------------------------------------------------------------------
def pair(text):
    parts = [int(v) for v in text.replace(",", "x").split("x")]
    return parts[0], parts[-1]


def parse(path):
    """Steps: dicts with op, inputs, output, sizes. Tensors are numbers; shape[t] = (h, w, c)."""
    steps, shape, names, last = [], [], {}, None
    activations = {"relu", "relu6", "hard_swish", "hard_sigmoid", "sigmoid", "silu"}

    def tensor(h, w, c):
        shape.append((h, w, c))
        return len(shape) - 1

    with open(path, encoding="utf-8") as f:
        lines = [line.split("#")[0].split() for line in f]
    for words in lines:
        if not words or words[0] in ("name", "source"):
            continue
        verb, keys = words[0], dict(w.split("=", 1) for w in words[1:] if "=" in w)
        plain = [w for w in words[1:] if "=" not in w]
        if verb == "input":
            last = tensor(*[int(v) for v in plain[0].split("x")])
            continue
        if verb == "concat":
            parts = [names[p] for p in plain]
            out = tensor(*shape[parts[0]][:2], sum(shape[p][2] for p in parts))
            steps.append({"op": "concat", "inputs": parts, "output": out})
        else:
            x = names[keys["in"]] if "in" in keys else last
            h, w, c = shape[x]
            s = {"op": verb, "inputs": [x], "act": next((p for p in plain if p in activations), None)}
            if verb in ("conv", "depthwise", "max_pool", "average_pool"):
                kh, kw = pair(plain[0])
                (sh, sw), (dh, dw) = pair(keys.get("stride", "1")), pair(keys.get("dilation", "1"))
                pad = keys.get("pad", "0")
                if pad == "same":
                    ph, pw = (max((math.ceil(n / st) - 1) * st + d * (k - 1) + 1 - n, 0) for n, st, k, d in ((h, sh, kh, dh), (w, sw, kw, dw)))
                    pads = [ph // 2, pw // 2, ph - ph // 2, pw - pw // 2]
                else:
                    pads = [int(v) for v in pad.split(",")]
                    pads = pads * 4 if len(pads) == 1 else pads
                ceil = "ceil" in plain
                oh, ow = ((math.ceil if ceil else math.floor)((n + pads[i] + pads[i + 2] - d * (k - 1) - 1) / st) + 1 for i, (n, st, k, d) in enumerate(((h, sh, kh, dh), (w, sw, kw, dw))))
                groups = c if verb == "depthwise" else int(keys.get("groups", 1))
                oc = int(plain[1]) if verb == "conv" else c
                s.update(kernel=(kh, kw), stride=(sh, sw), dilation=(dh, dw), pads=pads, ceil=ceil, groups=groups, out=oc)
                out = tensor(oh, ow, oc)
                if "add" in keys:
                    s["inputs"].append(names[keys["add"]])
            elif verb == "fc":
                s["out"] = int(plain[0])
                out = tensor(1, 1, s["out"])
            elif verb == "global_pool":
                out = tensor(1, 1, c)
            elif verb == "binary":
                s.update(kind=plain[0])
                s["inputs"].append(names[plain[1]])
                out = tensor(*max(shape[x], shape[names[plain[1]]]))
            elif verb == "softmax":
                out = tensor(h, w, c)
            else:
                sys.exit(f"{path}: {verb} is not an operator of engines.py")
            s["output"] = out
            steps.append(s)
        last = steps[-1]["output"]
        if "name" in keys:
            names[keys["name"]] = last
    return steps, shape


def add_weights(steps, shape, np):
    random = np.random.default_rng(1)
    for s in steps:
        if s["op"] not in ("conv", "depthwise", "fc"):
            continue
        h, w, c = shape[s["inputs"][0]]
        size = (s["out"], c // s["groups"], *s["kernel"]) if s["op"] != "fc" else (s["out"], h * w * c)
        limit = math.sqrt((6 if s["act"] else 3) / (np.prod(size[1:])))
        s["weights"] = random.uniform(-limit, limit, size).astype(np.float32)
        s["bias"] = random.uniform(-0.1, 0.1, s["out"]).astype(np.float32)


# ---- ONNX --------------------------------------------------------------------------------------------------------------------------
def write_onnx(steps, shape, path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants = [], []

    def constant(array, name):
        constants.append(numpy_helper.from_array(array, name))
        return name

    for i, s in enumerate(steps):
        inputs, out = [f"t{t}" for t in s["inputs"]], f"t{s['output']}"
        count = 0

        def node(kind, ins, final, **attributes):
            nonlocal count
            count += 1
            to = out if final else f"{out}_{count}"
            nodes.append(helper.make_node(kind, ins, [to], **attributes))
            return to

        act, op = s.get("act"), s["op"]
        add = op in ("conv", "depthwise") and len(inputs) > 1
        if op in ("conv", "depthwise"):
            at = node("Conv", [inputs[0], constant(s["weights"], f"w{i}"), constant(s["bias"], f"b{i}")], not act and not add, kernel_shape=s["kernel"], strides=s["stride"],
                      dilations=s["dilation"], pads=s["pads"], group=s["groups"])
            if add:
                at = node("Add", [at, inputs[1]], not act)
        elif op == "fc":
            flat = node("Flatten", [inputs[0]], False)
            at = node("Gemm", [flat, constant(s["weights"], f"w{i}"), constant(s["bias"], f"b{i}")], not act, transB=1)
        elif op in ("max_pool", "average_pool"):
            at = node("MaxPool" if op == "max_pool" else "AveragePool", inputs, True, kernel_shape=s["kernel"], strides=s["stride"], pads=s["pads"], ceil_mode=int(s["ceil"]))
        elif op == "global_pool":
            at = node("GlobalAveragePool", inputs, True)
        elif op == "concat":
            at = node("Concat", inputs, True, axis=1)
        elif op == "binary":
            at = node({"add": "Add", "mul": "Mul"}[s["kind"]], inputs, True)
        elif op == "softmax":
            at = node("Softmax", [node("Flatten", inputs, False)], True, axis=1)
        if act == "relu":
            node("Relu", [at], True)
        elif act == "relu6":
            node("Clip", [at, constant(helper_float(0), f"{out}_low"), constant(helper_float(6), f"{out}_high")], True)
        elif act == "hard_swish":
            node("HardSwish", [at], True)
        elif act == "hard_sigmoid":
            node("HardSigmoid", [at], True, alpha=1 / 6, beta=0.5)
        elif act == "sigmoid":
            node("Sigmoid", [at], True)
        elif act == "silu":
            node("Mul", [at, node("Sigmoid", [at], False)], True)
    h, w, c = shape[0]
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("t0", TensorProto.FLOAT, [1, c, h, w])],
                              [helper.make_tensor_value_info(f"t{steps[-1]['output']}", TensorProto.FLOAT, None)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def helper_float(value):
    import numpy as np

    return np.array(value, np.float32)


# ---- ncnn --------------------------------------------------------------------------------------------------------------------------
def write_ncnn(steps, shape, base):
    users = {}
    for s in steps:
        for t in s["inputs"]:
            users[t] = users.get(t, 0) + 1
    layers, blobs = [], set()
    bottoms = {}  # tensor -> names, one for each use

    def layer(kind, ins, outs, text=""):
        blobs.update(outs)
        layers.append(f"{kind} l{len(layers)} {len(ins)} {len(outs)} {' '.join(ins + outs)} {text}".rstrip())

    def made(t):
        n = users.get(t, 0)
        bottoms[t] = [f"t{t}"] if n < 2 else [f"t{t}_{i}" for i in range(n)]
        if n > 1:
            layer("Split", [f"t{t}"], bottoms[t])

    fused = {None: "", "relu": " 9=1", "relu6": " 9=3 -23310=2,0.0,6.0", "sigmoid": " 9=4", "hard_swish": " 9=6 -23310=2,0.16666667,0.5"}
    own = {"relu": ("ReLU", ""), "relu6": ("Clip", "0=0.0 1=6.0"), "hard_swish": ("HardSwish", "0=0.16666667 1=0.5"), "hard_sigmoid": ("HardSigmoid", "0=0.16666667 1=0.5"),
           "silu": ("Swish", "")}
    layer("Input", [], ["t0"])
    made(0)
    with open(base + ".bin", "wb") as f:
        for s in steps:
            ins, out = [bottoms[t].pop(0) for t in s["inputs"]], f"t{s['output']}"
            op, act = s["op"], s.get("act")
            if op in ("conv", "depthwise", "fc"):
                after = act if act not in fused or len(ins) > 1 else None
                first = out if not after and len(ins) == 1 else out + "_a"
                text = f"0={s['out']} "
                vector = op == "fc" or (shape[s["inputs"][0]][:2] == (1, 1) and s["groups"] == 1)  # its own converters make the same of it
                if vector:
                    text += f"1=1 2={s['weights'].size}" + fused[None if after else act]
                else:
                    (kh, kw), (sh, sw), (dh, dw), p = s["kernel"], s["stride"], s["dilation"], s["pads"]
                    text += f"1={kw} 11={kh} 2={dw} 12={dh} 3={sw} 13={sh} 4={p[1]} 14={p[0]} 15={p[3]} 16={p[2]} 5=1 6={s['weights'].size}"
                    text += (f" 7={s['groups']}" if s["groups"] > 1 else "") + fused[None if after else act]
                layer("InnerProduct" if vector else "ConvolutionDepthWise" if s["groups"] > 1 else "Convolution", ins[:1], [first], text)
                f.write(bytes(4))  # the weights are plain f32
                f.write(s["weights"].tobytes())
                f.write(s["bias"].tobytes())
                if len(ins) > 1:
                    layer("BinaryOp", [first, ins[1]], [out if not after else out + "_b"], "0=0")
                    first = out + "_b"
                if after:
                    layer(own[after][0], [first], [out], own[after][1])
            elif op in ("max_pool", "average_pool"):
                p = s["pads"]
                layer("Pooling", ins, [out], f"0={int(op != 'max_pool')} 1={s['kernel'][1]} 11={s['kernel'][0]} 2={s['stride'][1]} 12={s['stride'][0]} 3={p[1]} 13={p[0]} 14={p[3]} 15={p[2]} "
                      f"5={0 if s['ceil'] else 1}")
            elif op == "global_pool":
                layer("Pooling", ins, [out], "0=1 4=1")
            elif op == "concat":
                layer("Concat", ins, [out], "0=0")
            elif op == "binary":
                big_first = sorted(zip(ins, s["inputs"]), key=lambda p: -shape[p[1]][0])
                layer("BinaryOp", [p[0] for p in big_first], [out], f"0={dict(add=0, mul=2)[s['kind']]}")
            elif op == "softmax":
                layer("Softmax", ins, [out], "0=0")
            made(s["output"])
    with open(base + ".param", "w", encoding="utf-8") as f:
        f.write(f"7767517\n{len(layers)} {len(blobs)}\n" + "\n".join(layers) + "\n")


# ---- engines: each gives run() -> result -------------------------------------------------------------------------------------------
def make_onnxruntime(files, x, output, threads):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(files["onnx"], options, providers=["CPUExecutionProvider"])
    feed = {"t0": x}
    return lambda: session.run(None, feed)[0]


def make_ncnn(files, x, output, threads):
    import ncnn
    import numpy as np

    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_vulkan_compute = False
    if net.load_param(files["ncnn"] + ".param") or net.load_model(files["ncnn"] + ".bin"):
        raise RuntimeError("ncnn does not read its files")
    mat = ncnn.Mat(x[0]).clone()

    def run():
        extractor = net.create_extractor()
        extractor.input("t0", mat)
        return np.array(extractor.extract(output)[1])

    return run


def make_mnn(files, x, output, threads):
    import MNN
    import numpy as np

    interpreter = MNN.Interpreter(files["mnn"])
    session = interpreter.createSession({"numThread": threads, "backend": "CPU", "precision": "high"})
    source = interpreter.getSessionInput(session)
    host = MNN.Tensor(x.shape, MNN.Halide_Type_Float, x, MNN.Tensor_DimensionType_Caffe)

    def run():
        source.copyFrom(host)
        interpreter.runSession(session)
        return np.array(interpreter.getSessionOutput(session, output).getData())

    return run


MAKE = {"onnxruntime": make_onnxruntime, "ncnn": make_ncnn, "mnn": make_mnn}


def measure(network, threads, engines, seconds):
    """In a process of its own: prints {engine: nanoseconds} as JSON."""
    import numpy as np

    cores = sorted(os.sched_getaffinity(0))
    if threads == 1:
        os.sched_setaffinity(0, cores[-1:])
    steps, shape = parse(os.path.join(here, "shapes", network + ".txt"))
    add_weights(steps, shape, np)
    h, w, c = shape[0]
    x = np.random.default_rng(2).uniform(-1, 1, (1, c, h, w)).astype(np.float32)
    output = f"t{steps[-1]['output']}"
    runs, results = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        files = {"onnx": os.path.join(folder, "n.onnx"), "ncnn": os.path.join(folder, "n"), "mnn": os.path.join(folder, "n.mnn")}
        if {"onnxruntime", "mnn"} & set(engines):
            write_onnx(steps, shape, files["onnx"])
        if "ncnn" in engines:
            write_ncnn(steps, shape, files["ncnn"])
        if "mnn" in engines:
            done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "mnnconvert"), "-f", "ONNX", "--modelFile", files["onnx"], "--MNNModel", files["mnn"], "--bizCode", "bench"],
                                  capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)
        for e in engines:
            runs[e] = MAKE[e](files, x, output, threads)
            results[e] = np.array(runs[e](), np.float32).ravel()
    first = engines[0]
    for e in engines[1:]:
        worst = float(np.abs(results[e] - results[first]).max()) / float(np.abs(results[first]).max())
        if results[e].shape != results[first].shape or not worst < 2e-2:
            sys.exit(f"{network}: {e} and {first} differ by {worst:.2g} of the largest value")
    clock = time.process_time_ns if threads == 1 else time.perf_counter_ns
    samples = {e: [] for e in engines}
    until = time.monotonic() + seconds * len(engines)
    while min(map(len, samples.values())) < 5 or (time.monotonic() < until and len(samples[first]) < 200):
        for e in engines:
            if threads > 1:
                time.sleep(0.05)  # idle workers stop spinning
            runs[e]()
            for _ in range(3):
                start = clock()
                runs[e]()
                samples[e].append(clock() - start)
    print(json.dumps({e: statistics.median(s) for e, s in samples.items()}))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--skua", help="skua-bench's --json, for the comparison")
    p.add_argument("--networks", default=",".join(NETWORKS))
    p.add_argument("--engines", default=",".join(ENGINES))
    p.add_argument("--threads", default="1,2")
    p.add_argument("--seconds", type=float, default=1.5, help="for each engine and network")
    p.add_argument("--venv", default=os.path.join(os.path.dirname(here), "build", "engines"), help="the virtual environment, made where it is not there")
    p.add_argument("--json", help="where the times go, too")
    p.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    engines = a.engines.split(",")
    for name in [e for e in engines if e not in ENGINES] + [n for n in a.networks.split(",") if n not in NETWORKS]:
        p.error(f"{name}: not one of {', '.join(ENGINES)}; {', '.join(NETWORKS)}")
    if a.one:
        return measure(a.one[0], int(a.one[1]), engines, a.seconds)
    python = os.path.join(a.venv, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", a.venv], check=True)
    packages = sorted({name for e in engines for name in ENGINES[e]} | {"numpy"})
    if subprocess.run([python, "-c", "import " + ", ".join(packages)], capture_output=True).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    ours = {}
    if a.skua:
        with open(a.skua, encoding="utf-8") as f:
            ours = {(c["name"].split("/")[1], c["threads"]): c["ns"] for c in json.load(f)["cases"] if c["suite"] == "networks"}
    times = []
    logs = {}
    print(f"{'network':20} {'threads':>7} {'skua':>10}" + "".join(f" {e:>21}" for e in engines))
    for network in a.networks.split(","):
        for threads in map(int, a.threads.split(",")):
            done = subprocess.run([python, __file__, "--one", network, str(threads), "--engines", a.engines, "--seconds", str(a.seconds)], capture_output=True, text=True)
            if done.returncode:
                print(f"{network:20} {threads:7} " + (done.stderr.strip().splitlines() or ["failed"])[-1])
                continue
            found = json.loads(done.stdout.strip().splitlines()[-1])
            mine = ours.get((network, threads))
            line = f"{network:20} {threads:7} " + (f"{mine / 1e6:7.2f} ms" if mine else f"{'-':>10}")
            for e in engines:
                line += f" {found[e] / 1e6:10.2f} ms" + (f" {found[e] / mine:6.2f}x" if mine else f"{'':8}")
                if mine:
                    logs.setdefault((threads, e), []).append(math.log(found[e] / mine))
            print(line, flush=True)
            times.append({"network": network, "threads": threads, "skua": mine, **found})
    for (threads, e), values in sorted(logs.items()):
        print(f"{e} over skua, {threads} thread{'s' if threads > 1 else ''}: {math.exp(sum(values) / len(values)):.2f}x (geometric mean of {len(values)})")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(times, f, indent=1)
    return 0 if times else 1


if __name__ == "__main__":
    sys.exit(main())
