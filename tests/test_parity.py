"""The same seed gives the same numbers on every backend and mode."""

import numpy as np
import pytest

from rlcore.agents.dqn import DQN, DQNConfig
from rlcore.assembly import assemble
from rlcore.backend import WeightsError
from rlcore.component import api
from rlcore.components.optimizers import Optimizer
from rlcore.errors import ConfigError, SpecError
from rlcore.plugins.session import make_graph_builder
from rlcore.specs import TensorSpec, sample, with_axes

BOX = TensorSpec((4,), "float32", -2.0, 2.0)
TREE = {"box": BOX, "pair": (TensorSpec((), "int64", 0, 4, "discrete"), TensorSpec((2,), "int8", 0, 1, "multi_binary"))}
ACTION = TensorSpec((), "int64", 1, 3, "discrete")
PLAIN = {"hidden": (16, 16), "learning_rate": 1e-3, "double": False}
FULL = {"hidden": (16, 16), "learning_rate": [1e-3, 1e-4], "dueling": True, "target_update": "soft", "target_tau": 0.1}
CASES = {
    "plain": (BOX, {**PLAIN, "loss": "squared"}),
    "full": (BOX, FULL),
    "tree": (TREE, {**FULL, "optimizer": "rmsprop", "activation": "tanh"}),
    # SGD: Adam's first step has the size of the rate even where the gradient is nothing but rounding.
    "image": (TensorSpec((36, 36, 2), "uint8"), {**PLAIN, "optimizer": "sgd", "learning_rate": 1e-2}),
}
graphs = {}


def graph_of(case):
    if case not in graphs:
        observation, settings = CASES[case]
        root = DQN(observation, ACTION, DQNConfig(**settings))
        graphs[case] = assemble(root, root.api_inputs())
    return graphs[case]


def build_of(case, backend, mode=None, seed=7):
    return make_graph_builder(backend).build(graph_of(case), mode=mode, seed=seed)


def batch_of(case, rng, size=32):
    observations = with_axes(CASES[case][0], "B")
    return {
        "observation": sample(observations, rng, {"B": size}),
        "action": rng.integers(1, 4, size),
        "return": rng.standard_normal(size).astype(np.float32),
        "discount": (0.97 * rng.integers(0, 2, size)).astype(np.float32),
        "next_observation": sample(observations, rng, {"B": size}),
    }


def close(a, b, tolerance):
    scale = np.abs(b).max()
    assert np.abs(a - b).max() <= tolerance * max(scale, 1e-3), (np.abs(a - b).max(), scale)


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_one_step(build, case):
    ours, reference = build_of(case, **build), build_of(case, "numpy")
    rng = np.random.default_rng(0)
    batch, progress = batch_of(case, rng), np.array(0.25, np.float32)
    close(ours("q_values", batch["observation"]), reference("q_values", batch["observation"]), 1e-5)
    np.testing.assert_array_equal(
        ours("act_greedy", batch["observation"]), reference("act_greedy", batch["observation"])
    )
    np.testing.assert_array_equal(
        ours("act", batch["observation"], progress), reference("act", batch["observation"], progress)
    )
    before = ours.get_weights().buffer
    a, b = ours("update", batch, progress), reference("update", batch, progress)
    for name in ("loss", "td_error", "q_mean", "grad_norm"):
        close(a[name], b[name], 1e-5)
    assert np.abs(ours.get_weights().buffer - before).max() > 1e-5
    close(ours.get_weights().buffer, reference.get_weights().buffer, 1e-5)
    close(ours("q_values", batch["observation"]), reference("q_values", batch["observation"]), 1e-5)


class GradientOf(Optimizer):
    """Changes nothing; gives the gradient where the norm would be."""

    @api
    def minimize(self, loss_fn, parameters, progress):
        return self.ops.value_and_grad(loss_fn, parameters)


@pytest.mark.parametrize("case", CASES)
def test_gradients(build, case):
    observation, settings = CASES[case]
    root = DQN(observation, ACTION, DQNConfig(**settings))
    root.optimizer = GradientOf()
    graph = assemble(root, {"update": root.api_inputs()["update"]})
    batch = batch_of(case, np.random.default_rng(1))
    ours, reference = (
        b.build(graph, mode=m, seed=3)("update", batch, np.array(0, np.float32))["grad_norm"]
        for b, m in ((make_graph_builder(build["backend"]), build["mode"]), (make_graph_builder("numpy"), None))
    )
    assert ours.shape == (graph.num_parameters,) and np.abs(reference).max() > 1e-4
    close(ours, reference, 1e-5)


@pytest.mark.parametrize("case", ["plain", "full"])
def test_a_hundred_updates(build, case):
    ours, reference = build_of(case, **build), build_of(case, "numpy")
    rng = np.random.default_rng(2)
    for i in range(100):
        batch, progress = batch_of(case, rng, 64), np.array(i / 100, np.float32)
        ours("update", batch, progress)
        reference("update", batch, progress)
        if i == 50:
            ours("sync")
            reference("sync")
    close(ours("q_values", batch["observation"]), reference("q_values", batch["observation"]), 1e-3)


@pytest.mark.parametrize("other", ["numpy", "torch", "tf"])
def test_weights_act_the_same_in_another_backend(build, other, tmp_path):
    from rlcore.runs.weights_file import load_weights, save_weights

    ours, theirs = build_of("full", **build), build_of("full", other, seed=99)
    rng = np.random.default_rng(3)
    for _ in range(5):
        ours("update", batch_of("full", rng), np.array(0, np.float32))
    observations = batch_of("full", rng, 200)["observation"]
    assert np.abs(ours("q_values", observations) - theirs("q_values", observations)).max() > 1e-3
    save_weights(tmp_path / "w.safetensors", ours.get_weights())
    theirs.set_weights(load_weights(tmp_path / "w.safetensors"))
    close(ours("q_values", observations), theirs("q_values", observations), 1e-5)
    np.testing.assert_array_equal(ours("act_greedy", observations), theirs("act_greedy", observations))
    np.testing.assert_array_equal(ours.get_weights().buffer, theirs.get_weights().buffer)


def test_whole_state_moves_between_backends(build):
    ours, theirs = build_of("full", **build), build_of("full", "numpy", seed=99)
    rng = np.random.default_rng(4)
    ours("update", batch_of("full", rng), np.array(0, np.float32))
    theirs.set_state(ours.get_state())
    batch = batch_of("full", rng)
    for one in (ours, theirs):
        one("update", batch, np.array(0, np.float32))
    a, b = ours.get_state(), theirs.get_state()
    assert any("target_network" in k for k in a) and any("first_moment" in k for k in a)
    for path in b:
        close(a[path], b[path], 1e-5)


def test_an_actors_weights_are_a_part_of_the_learners(build):
    observation, settings = CASES["full"]
    root = DQN(observation, ACTION, DQNConfig(**settings))
    actor_graph = assemble(root, {"act_greedy": root.api_inputs()["act_greedy"]})
    assert all(v.path.startswith("q_network") for v in actor_graph.variables)
    learner, actor = build_of("full", **build), make_graph_builder("numpy").build(actor_graph, seed=99)
    rng = np.random.default_rng(5)
    learner("update", batch_of("full", rng), np.array(0, np.float32))
    actor.set_weights(learner.get_weights())
    observations = batch_of("full", rng, 100)["observation"]
    np.testing.assert_array_equal(actor("act_greedy", observations), learner("act_greedy", observations))


def test_static_captures_each_api_once_whatever_the_batch(build):
    if build["mode"] == "eager":
        executable = build_of("full", **build)
        executable("q_values", np.zeros((3, 4), np.float32))
        assert set(executable.trace_count.values()) == {0}
        return
    executable, reference = build_of("full", **build), build_of("full", "numpy")
    rng = np.random.default_rng(6)
    for size in (8, 1, 2, 3, 64, 17, 1):
        batch = batch_of("full", rng, size)
        executable("act", batch["observation"], np.array(0.5, np.float32))
        for one in (executable, reference):
            one("update", batch, np.array(size / 100, np.float32))
            one("sync")
        actions = executable("act_greedy", batch["observation"])
        np.testing.assert_array_equal(actions, reference("act_greedy", batch["observation"]))
        reversed_view = batch["observation"][::-1]  # negative strides
        np.testing.assert_array_equal(executable("act_greedy", reversed_view), actions[::-1])
    counts = executable.trace_count
    assert {n: counts[n] for n in ("act", "act_greedy", "update", "sync")} == dict.fromkeys(
        ("act", "act_greedy", "update", "sync"), 1
    )


def test_two_builds_side_by_side_share_nothing(build):
    one, two = build_of("plain", **build), build_of("plain", **build)
    before = two.get_state()
    one("update", batch_of("plain", np.random.default_rng(0)), np.array(0, np.float32))
    for path, value in two.get_state().items():
        np.testing.assert_array_equal(value, before[path])


def test_what_is_read_is_a_copy(build):
    executable = build_of("plain", **build)
    weights, state = executable.get_weights(), executable.get_state()
    kept = weights.buffer.copy()
    executable("update", batch_of("plain", np.random.default_rng(0)), np.array(0, np.float32))
    np.testing.assert_array_equal(weights.buffer, kept)
    weights.buffer[:] = 0
    for value in state.values():
        value[...] = 0
    assert np.abs(executable.get_weights().buffer).max() > 0


def test_weights_that_do_not_fit_change_nothing(build):
    plain, image = build_of("plain", **build), build_of("image", "numpy")
    before = plain.get_weights().buffer
    with pytest.raises(WeightsError, match=r"lack the variable 'q_network|weights have"):
        plain.set_weights(image.get_weights())
    state = plain.get_state()
    state["q_network.typo"] = state.pop("q_network.head.output.bias")
    with pytest.raises(WeightsError, match="q_network.head.output.bias"):
        plain.set_state(state)
    np.testing.assert_array_equal(plain.get_weights().buffer, before)


def test_inputs_are_checked(build):
    executable = build_of("plain", **build)
    with pytest.raises(SpecError, match=r"observation: got float32\[3, 5\], expected float32\[B, 4\]"):
        executable("q_values", np.zeros((3, 5), np.float32))
    with pytest.raises(SpecError, match=r"observation: got complex64\[3, 4\], expected float32\[B, 4\]"):
        executable("q_values", np.zeros((3, 4), np.complex64))
    batch = batch_of("plain", np.random.default_rng(0))
    batch["return"] = batch["return"][:, None]
    with pytest.raises(SpecError, match=r"batch/return: got float32\[32, 1\], expected float32\[B\]"):
        executable("update", batch, np.array(0, np.float32))
    with pytest.raises(TypeError, match=r"api 'update' takes 2 inputs \(batch, progress\), got 1"):
        executable("update", batch)
    with pytest.raises(ConfigError, match="Did you mean 'q_values'"):
        executable.function("q_value")
    assert executable("q_values", np.zeros((3, 4), np.float64)).dtype == np.float32


@pytest.mark.parametrize("backend", ["numpy", "torch", "tf"])
def test_unknown_mode_and_device_name_what_there_is(backend):
    builder = make_graph_builder(backend)
    with pytest.raises(ConfigError, match=rf"backend '{backend}' has no mode 'statc'.*It has: "):
        builder.build(graph_of("plain"), mode="statc")
    with pytest.raises(ConfigError, match="no device 'tpu'"):
        builder.build(graph_of("plain"), device="tpu")
