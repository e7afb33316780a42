#!/usr/bin/env python3
"""Networks resident on every device of this machine, against the CPU's: scores, programs, what recording and starting cost. Arguments: skua-bench, devices (opencl:0 vulkan:0).

SKUA_TEST_GPU=required: a device that is missing is a failure, else it is passed over. Speed is not looked at: the drivers that tests find compute on the CPU."""
import json
import os
import subprocess
import sys
import tempfile

bench, *devices = sys.argv[1:]
os.environ.pop("VK_INSTANCE_LAYERS", None)  # the host's work is timed, and gpu_*_test run under the validation layer
checked = 0
for device in devices:
    with tempfile.TemporaryDirectory() as folder:
        file, page = os.path.join(folder, "a.json"), os.path.join(folder, "a.html")
        # A driver that compiles for the CPU takes a minute for ResNet-50's kernels: one device has them.
        both, networks_of_both = ("mobilenet_v2|resnet50", 2) if device == devices[0] else ("mobilenet_v2", 1)
        for types, networks, numerics, count in (("f32,f16", both, "default", 2 * networks_of_both), ("f16", "mobilenet_v2", "fast", 1), ("s8", both, "default", networks_of_both)):
            done = subprocess.run([bench, "--device", device, "--suite", "networks", "--filter", networks, "--type", types, "--numerics", numerics, "--resolution", "64", "--quick", "--json", file, "--html", page], capture_output=True, text=True)
            print(done.stdout + done.stderr)
            if done.returncode == 3:
                assert os.environ.get("SKUA_TEST_GPU") != "required", f"{device} is missing"
                continue
            assert done.returncode == 0, f"{device}: exit {done.returncode}"
            with open(file, encoding="utf-8") as f:
                result = json.load(f)
            assert result["device"]["api"] == device.split(":")[0] and result["machine"]["peak_gflops"]
            assert result["numerics"] == numerics and len(result["cases"]) == count, [c["name"] for c in result["cases"]]
            if "peak_gflops_f16" in result["machine"] and result["machine"]["peak_gflops_f16"]:
                assert any("_f16_h4" in step["kernel"] for step in result["cases"][0]["steps"]), "the device multiplies f16, and FAST did not ask it to"
            for case in result["cases"]:
                name = f"{device} {case['name']}"
                assert case["error"] is None, f"{name}: {case['error']}"  # scores further away than docs/numerics.md says, too
                assert 0 < case["programs"] <= 30, f"{name}: {case['programs']} programs"
                assert case["cpu_distance"] >= 0 and case["peers"]["cpu"] > 0 and len(case["steps"]) > 50
                # The bars are 5 us and 300 ms; CI shares its cores.
                assert case["record_ns"] < 50e3, f"{name}: {case['record_ns']:.0f} ns to record an operator"
                warm = case["warm_start"]["plans_ns"] + case["warm_start"]["first_run_ns"]
                assert warm < 3e9, f"{name}: {warm / 1e6:.0f} ms to start with a program cache"
                checked += 1
            with open(page, encoding="utf-8") as f:
                assert "programs" in f.read()
print(f"{checked} networks agree")
