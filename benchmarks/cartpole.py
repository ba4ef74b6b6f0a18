"""DQN on CartPole-v1 with the shipped preset: greedy returns over 100 episodes, some seeds on each build.

python benchmarks/cartpole.py [--seeds 5] [--only numpy-eager,...] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ[_name] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import rlcore

BUILDS = ("numpy-eager", "torch-eager", "torch-static", "tf-static")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default=",".join(BUILDS))
    parser.add_argument("--json")
    arguments = parser.parse_args()
    print("| build | seed | before | after | seconds |\n|---|---:|---:|---:|---:|")
    rows = []
    for build in arguments.only.split(","):
        backend, mode = build.split("-")
        for seed in range(arguments.seeds):
            with tempfile.TemporaryDirectory() as folder:
                r = rlcore.train("dqn", env="CartPole-v1", backend=backend, mode=mode, seed=seed, run_dir=folder)
            rows.append(
                {"build": build, "seed": seed, "before": r.before.mean, "after": r.after.mean, "seconds": r.seconds}
            )
            print("| {build} | {seed} | {before:.1f} | {after:.1f} | {seconds:.0f} |".format(**rows[-1]), flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
