#!/usr/bin/env python3
"""Runs a libFuzzer target on its kept corpus and then on new inputs for a while.

  run.py TARGET_BINARY [--seconds N]   fails if an input crashes, hangs, or breaks what the target checks
  run.py TARGET_BINARY --keep          adds to tests/fuzz/corpus/<target>.txt what a longer run found (one input a line, in hexadecimal)
"""
import argparse
import os
import subprocess
import sys
import tempfile

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    name = os.path.basename(options.target)
    kept = os.path.join(CORPUS, name + ".txt")
    environment = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1", UBSAN_OPTIONS="print_stacktrace=1")
    with tempfile.TemporaryDirectory() as work:
        grown, merged = os.path.join(work, "corpus"), os.path.join(work, "merged")
        os.mkdir(grown)
        os.mkdir(merged)
        with open(kept) as file:
            for number, line in enumerate(file):
                with open(os.path.join(grown, f"kept{number:04}"), "wb") as seed:
                    seed.write(bytes.fromhex(line))
        status = subprocess.run([options.target, f"-max_total_time={options.seconds}", "-max_len=128", "-timeout=20", "-rss_limit_mb=3000",
                                 "-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={work}/", grown], env=environment).returncode
        for artifact in os.listdir(work):
            if artifact.startswith(("crash", "timeout", "oom", "leak")):
                with open(os.path.join(work, artifact), "rb") as file:
                    print(f"{artifact.split('-')[0]}: add this line to {os.path.relpath(kept)} with the repair: {file.read().hex()}")
        if status == 0 and options.keep:
            subprocess.run([options.target, "-merge=1", "-max_len=128", merged, grown], env=environment, check=True, stderr=subprocess.DEVNULL)
            inputs = []
            for entry in os.listdir(merged):
                with open(os.path.join(merged, entry), "rb") as file:
                    inputs.append(file.read().hex())
            with open(kept, "w") as file:
                file.write("".join(line + "\n" for line in sorted(inputs, key=lambda text: (len(text), text))))
            print(f"{kept}: {len(inputs)} inputs")
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
