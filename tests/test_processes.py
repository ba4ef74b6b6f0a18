"""What only a fresh process shows: imports, determinism, an actor without the learner's framework."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

HEAVY = ("torch", "tensorflow", "ray", "horovod", "pandas")


def python(code, *args, **env):
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, env={**os.environ, **env}, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.public_bug("PX-03")
def test_import_is_light():
    code = f"""
import sys, json, rlcore
print(json.dumps([m for m in {HEAVY + ("numpy", "gymnasium", "stevedore", "pydantic")} if m in sys.modules]))"""
    assert json.loads(python(code)) == []


def test_import_time():
    """Under 150 ms: the best of five, as other processes share the machine."""
    code = "import time; t = time.perf_counter(); import rlcore; print(time.perf_counter() - t)"
    assert min(float(python(code)) for _ in range(5)) < 0.15


@pytest.mark.public_bug("PX-03")
def test_using_the_numpy_backend_imports_no_framework():
    code = f"""
import sys, json, numpy, rlcore
agent = rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", config={{"hidden": [8]}})
agent.act(numpy.zeros(4, "float32"))
print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"""
    assert json.loads(python(code)) == []


@pytest.mark.parametrize("backend", ["torch", "tf"])
def test_a_plugin_module_imports_without_its_framework(backend):
    code = f"""
import sys, json, importlib.metadata as m
[e] = m.entry_points(group="rlcore.graph_builders", name="{backend}")
e.load()
print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"""
    assert json.loads(python(code)) == []


@pytest.mark.public_bug("PX-05")
@pytest.mark.parametrize("first,second", [("torch", "tf"), ("tf", "torch")])
def test_both_import_orders(first, second):
    code = f"""
import json, numpy as np, rlcore
observations = np.random.default_rng(0).standard_normal((16, 4)).astype("float32")
values = []
for backend in ("{first}", "{second}"):
    for mode in ("eager", "static"):
        agent = rlcore.make_agent("dqn", env="CartPole-v1", backend=backend, mode=mode, config={{"hidden": [8]}})
        values.append(agent.executable("q_values", observations).tolist())
print(json.dumps(values))"""
    values = np.array(json.loads(python(code)))
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], rtol=1e-5, atol=1e-6)


@pytest.mark.public_bug("DT-04")
@pytest.mark.parametrize(
    "backend,mode", [("numpy", "eager"), ("torch", "eager"), ("torch", "static"), ("tf", "eager"), ("tf", "static")]
)
def test_two_fresh_processes_end_bit_equal(backend, mode, tmp_path):
    code = """
import sys, hashlib, rlcore
backend, mode, path = sys.argv[1:]
result = rlcore.train("dqn", env="CartPole-v1", backend=backend, mode=mode, steps=600, seed=3, num_envs=2,
    evaluation_episodes=2, run_dir=path, config={"hidden": [16, 16], "learning_starts_env_steps": 200,
    "train_every_env_steps": 8, "updates_per_training": 4, "n_step": 3, "optimizer": "adam"})
print(hashlib.sha256(result.agent.get_weights().buffer.tobytes()).hexdigest(), result.updates, result.after.returns)"""
    one, two = (python(code, backend, mode, str(tmp_path / n), PYTHONHASHSEED=h) for n, h in (("a", "1"), ("b", "2")))
    assert one == two
    columns = [
        [row.split(",")[:2] + row.split(",")[3:] for row in (tmp_path / n / "metrics.csv").read_text().splitlines()]
        for n in ("a", "b")
    ]
    assert columns[0] == columns[1] and len(columns[0]) > 50  # all but the seconds
    weights = [(tmp_path / n / "weights.safetensors").read_bytes() for n in ("a", "b")]
    assert weights[0] == weights[1]


ACTOR = """
import sys, json, numpy as np, rlcore
sys.modules["torch"] = sys.modules["tensorflow"] = None  # an import of either fails
weights = rlcore.load_weights(sys.argv[1])
agent = rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", config={"hidden": [16, 16]}, seed=99)
agent.set_weights(weights)
observations = np.random.default_rng(0).standard_normal((100, 4)).astype("float32")
print(json.dumps(agent.act(observations).tolist()))"""


@pytest.mark.parametrize("backend", ["torch", "tf"])
def test_numpy_actor_beside_a_learner(backend, tmp_path):
    """In one process, and in one of its own that can't import the learner's framework."""
    import rlcore

    settings = {"hidden": [16, 16], "learning_rate": 1e-2}
    learner = rlcore.make_agent("dqn", env="CartPole-v1", backend=backend, config=settings)
    actor = rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", config=settings, seed=99)
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((100, 4)).astype(np.float32)
    for _ in range(3):
        batch = {
            "observation": rng.standard_normal((32, 4)).astype(np.float32),
            "action": rng.integers(0, 2, 32),
            "return": np.ones(32, np.float32),
            "discount": np.full(32, 0.99, np.float32),
            "next_observation": rng.standard_normal((32, 4)).astype(np.float32),
        }
        learner.update(batch)
        actor.set_weights(learner.get_weights())
        np.testing.assert_array_equal(actor.act(observations), learner.act(observations))
    rlcore.save_weights(tmp_path / "w.safetensors", learner.get_weights())
    observations = np.random.default_rng(0).standard_normal((100, 4)).astype("float32")
    assert json.loads(python(ACTOR, str(tmp_path / "w.safetensors"))) == learner.act(observations).tolist()
