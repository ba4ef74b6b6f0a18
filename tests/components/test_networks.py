"""Networks and Q heads."""

import numpy as np

from rlcore.components.networks import MLP, FlattenObservation, NatureCNN, Sequential, default_network
from rlcore.components.q_heads import DuelingQ, LinearQ, QNetwork
from rlcore.specs import TensorSpec, with_axes
from rlcore.testing import ComponentTest

rng = np.random.default_rng(1)
NESTED = {
    "position": TensorSpec((2,), "float32", -1.0, 1.0),
    "command": TensorSpec((), "int64", 2, 4, "discrete"),
    "rest": (TensorSpec((3,), "int8", 0, 1, "multi_binary"), TensorSpec((2, 2), "uint8")),
}


def test_mlp(build):
    test = ComponentTest(MLP([5, 3]), {"x": TensorSpec(("B", 4))}, **build)
    x, v = rng.standard_normal((6, 4)).astype(np.float32), test.variables
    h = np.maximum(x @ v["layers.0.kernel"] + v["layers.0.bias"], 0)
    test.check(x, expected=np.maximum(h @ v["layers.1.kernel"] + v["layers.1.bias"], 0))


def test_mlp_with_layer_norm(build):
    ComponentTest(MLP([5, 3], layer_norm=True), {"x": TensorSpec(("B", 4))}, **build).check_against_numpy(atol=1e-5)


def test_nature_cnn(build):
    test = ComponentTest(NatureCNN(units=16), {"x": TensorSpec(("B", 84, 84, 4), "uint8")}, **build)
    test.check_against_numpy(length=2, atol=1e-5)
    assert test.variables["layers.5.kernel"].shape == (7 * 7 * 64, 16)


def test_flatten_observation(build):
    test = ComponentTest(FlattenObservation(NESTED), {"observation": with_axes(NESTED, "B")}, **build)
    observation = {
        "position": np.array([[0.5, -0.5]], np.float32),
        "command": np.array([3]),
        "rest": (np.array([[1, 0, 1]], np.int8), np.array([[[1, 2], [3, 200]]], np.uint8)),
    }
    # optree sorts dict keys: command, position, rest
    test.check(observation, expected=np.array([[0, 1, 0, 0.5, -0.5, 1, 0, 1, 1, 2, 3, 200]], np.float32))
    test.check_against_numpy()


def test_default_network_of_an_image_is_a_cnn_and_of_a_tree_an_mlp():
    assert isinstance(default_network(TensorSpec((84, 84, 4), "uint8"), hidden=[8], activation="relu"), NatureCNN)
    network = default_network(NESTED, hidden=[8], activation="tanh")
    assert isinstance(network, Sequential) and isinstance(network.layers[1], MLP)


def test_sequential_of_a_tree(build):
    network = default_network(NESTED, hidden=[8], activation="tanh")
    ComponentTest(network, {"x": with_axes(NESTED, "B")}, **build).check_against_numpy(atol=1e-4)


def test_linear_q(build):
    test = ComponentTest(LinearQ(3), {"features": TensorSpec(("B", 4))}, **build)
    x, v = rng.standard_normal((2, 4)).astype(np.float32), test.variables
    test.check(x, expected=x @ v["output.kernel"] + v["output.bias"])


def test_dueling_q(build):
    test = ComponentTest(DuelingQ(3), {"features": TensorSpec(("B", 4))}, **build)
    x, v = rng.standard_normal((2, 4)).astype(np.float32), test.variables
    value, advantage = x @ v["value.kernel"] + v["value.bias"], x @ v["advantage.kernel"] + v["advantage.bias"]
    out = test.check(x, expected=value + advantage - advantage.mean(-1, keepdims=True))
    np.testing.assert_allclose(out.mean(-1), value[:, 0], rtol=1e-4, atol=1e-6)  # eq. 9: the mean advantage is 0


def test_q_network(build):
    network = QNetwork(MLP([8]), 3, dueling=True)
    test = ComponentTest(network, {"observation": TensorSpec(("B", 4))}, **build)
    test.check_against_numpy()
    assert test.graph.apis["__call__"].outputs == TensorSpec(("B", 3))
