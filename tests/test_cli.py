"""The command line as a user meets it: real processes."""

import os
import subprocess
import sys

import pytest
import yaml


def rlcore(*args, cwd):
    code = "from rlcore.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        env={**os.environ, "COLUMNS": "120"},
    )


SMALL = [
    "--steps",
    "300",
    "--evaluation-episodes",
    "2",
    "--set",
    "hidden=[8]",
    "--set",
    "learning_starts_env_steps=100",
]


def test_train_leaves_a_run(tmp_path):
    done = rlcore(
        "train", "dqn", "--env", "CartPole-v1", "--backend", "numpy", "--seed", "1", "--set", "learning_rate=1e-3",
        *SMALL, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "evaluation before training" in done.stdout and "evaluation after training" in done.stdout
    [run] = (tmp_path / "runs").iterdir()
    assert run.name in done.stdout.replace("\n", "")
    assert {p.name for p in run.iterdir()} == {
        "config.yaml", "manifest.json", "metrics.csv", "result.json", "weights.safetensors",
    }  # fmt: skip
    config = yaml.safe_load((run / "config.yaml").read_text())
    assert config["config"]["learning_rate"] == 1e-3 and config["config"]["hidden"] == [8]
    assert config["steps"] == 300 and config["seed"] == 1 and config["env"] == "CartPole-v1"
    rows = (run / "metrics.csv").read_text().splitlines()
    assert rows[-1].startswith("300,") and len(rows) > 2


TRAIN = ["train", "dqn", "--env", "CartPole-v1", "--backend", "numpy"]


@pytest.mark.parametrize(
    "args,says",
    [
        (["train", "dqm", "--env", "CartPole-v1"], "unknown agent 'dqm'. Did you mean 'dqn'?"),
        (["train", "dqn", "--env", "CartPol-v1", "--backend", "numpy"], "Did you mean 'CartPole-v1'?"),
        (["train", "dqn", "--env", "CartPole-v1", "--backend", "trch"], "Did you mean 'torch'?"),
        (["train", "dqn", "--env", "CartPole-v1", "--backend", "ray"], "'ray' is an executor, not a graph builder"),
        ([*TRAIN, "--executor", "locl"], "Did you mean 'local'?"),
        ([*TRAIN, "--mode", "statc"], "backend 'numpy' has no mode 'statc'. It has: eager"),
        ([*TRAIN, "--set", "lerning_rate=1"], "unknown setting 'lerning_rate'. Did you mean 'learning_rate'?"),
        ([*TRAIN, "--set", "gamma=1.5"], "setting 'gamma': input should be less than or equal to 1, got 1.5"),
        ([*TRAIN, "--set", "batch_size=many"], "setting 'batch_size'"),
        ([*TRAIN, "--set", "learning_rate=[1,2,3,4]"], "setting 'learning_rate': schedule"),
        ([*TRAIN, "--set", "optimizer=adm"], "Did you mean 'adam'?"),
        ([*TRAIN, "--set", "activation=rellu"], "Did you mean 'relu'?"),
        ([*TRAIN, "--set", "gamma"], "write it as key=value"),
        ([*TRAIN, "--steps", "0"], "setting 'steps'"),
        ([*TRAIN, "--seed", "-1"], "setting 'seed'"),
        ([*TRAIN, "--num-envs", "0"], "setting 'num_envs'"),
        ([*TRAIN, "--actor-backend", "nump"], "Did you mean 'numpy'?"),
        (["train", "dqn", "--env", "Pendulum-v1", "--backend", "numpy"], "DQN needs a Discrete action space"),
        (["graph", "dqn", "--env", "CartPole-v1", "--out", "x.pdf"], ".html"),
        ([*TRAIN, "--device", "tpu"], "backend 'numpy' has no device 'tpu'"),
        ([*TRAIN, "--evaluation-episodes", "0"], "setting 'evaluation_episodes'"),
        ([*TRAIN, "--steps", "10", "--run-dir", f"{os.devnull}/x"], "Not a directory"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(args, says, tmp_path):
    done = rlcore(*args, cwd=tmp_path)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert says in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_run_dir_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "kept.txt").write_text("precious")
    done = rlcore(*TRAIN, "--run-dir", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2 and "is not empty" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]


def test_graph_prints_a_tree_and_writes_all_formats(tmp_path):
    done = rlcore("graph", "dqn", "--env", "CartPole-v1", "--out", "drawn", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "q_network" in done.stdout and "float32[B, 4]" in done.stdout and "target_network" in done.stdout
    assert {p.name for p in (tmp_path / "drawn").iterdir()} == {"dqn.mmd", "dqn.dot", "dqn.html", "dqn.json"}
    assert "<svg" in (tmp_path / "drawn" / "dqn.html").read_text()


def test_help_names_the_commands(tmp_path):
    done = rlcore("--help", cwd=tmp_path)
    assert done.returncode == 0 and "train" in done.stdout and "graph" in done.stdout
