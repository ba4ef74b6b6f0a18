"""Each layer: values computed by hand or by NumPy, and the same on every backend and mode."""

import numpy as np
import pytest

from rlcore.components.layers import Conv2D, Dense, Embedding, Flatten, LayerNorm, MaxPool2D, OneHot, ScaleImage
from rlcore.errors import BuildError, ConfigError
from rlcore.specs import TensorSpec
from rlcore.testing import ComponentTest

rng = np.random.default_rng(0)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_dense(build):
    test = ComponentTest(Dense(3, activation="tanh"), {"x": TensorSpec(("B", 4))}, **build)
    x, v = floats(5, 4), test.variables
    test.check(x, expected=np.tanh(x @ v["kernel"] + v["bias"]))
    test.check_against_numpy(length=1)
    assert np.abs(v["kernel"]).max() <= 0.5 and np.abs(v["bias"]).max() <= 0.5  # 1/sqrt(4)


def test_dense_keeps_leading_axes(build):
    test = ComponentTest(Dense(3), {"x": TensorSpec(("T", "B", 4))}, **build)
    assert test.call(floats(2, 5, 4)).shape == (2, 5, 3)
    assert test.graph.apis["__call__"].outputs == TensorSpec(("T", "B", 3))


@pytest.mark.parametrize("activation", ["relu", "sigmoid", "elu", "gelu", "softplus", "linear"])
def test_activations(build, activation):
    test = ComponentTest(Dense(8, activation=activation), {"x": TensorSpec(("B", 4))}, **build)
    test.check_against_numpy(10 * floats(6, 4), atol=1e-5)


def test_conv2d(build):
    test = ComponentTest(Conv2D(2, 3, stride=2), {"x": TensorSpec(("B", 7, 6, 3))}, **build)
    x, v = floats(2, 7, 6, 3), test.variables
    expected = np.zeros((2, 3, 2, 2), np.float32)
    for b, i, j, f in np.ndindex(expected.shape):
        expected[b, i, j, f] = (x[b, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] * v["kernel"][..., f]).sum() + v["bias"][f]
    test.check(x, expected=expected, atol=1e-5)


@pytest.mark.parametrize("size,stride", [(3, 1), (3, 2), (4, 3)])
def test_conv2d_same_padding(build, size, stride):
    test = ComponentTest(Conv2D(4, size, stride=stride, padding="same"), {"x": TensorSpec(("B", 8, 9, 2))}, **build)
    test.check_against_numpy(atol=1e-5)
    assert test.call(floats(1, 8, 9, 2)).shape == (1, -(-8 // stride), -(-9 // stride), 4)


def test_max_pool2d(build):
    test = ComponentTest(MaxPool2D(2), {"x": TensorSpec(("B", 4, 5, 3))}, **build)
    x = floats(2, 4, 5, 3)
    test.check(x, expected=x[:, :, :4].reshape(2, 2, 2, 2, 2, 3).max(axis=(2, 4)))


def test_layer_norm(build):
    test = ComponentTest(LayerNorm(), {"x": TensorSpec(("B", 6))}, **build)
    x = floats(4, 6)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    test.check(x, expected=expected, atol=1e-5)


def test_embedding(build):
    test = ComponentTest(Embedding(5, 3), {"x": TensorSpec(("B",), "int64", 0, 4, "discrete")}, **build)
    x = np.array([4, 0, 4, 2])
    test.check(x, expected=test.variables["table"][x])


def test_one_hot(build):
    test = ComponentTest(OneHot(3, low=-1), {"x": TensorSpec(("B",), "int64", -1, 1, "discrete")}, **build)
    test.check(np.array([-1, 1, 0]), expected=np.eye(3, dtype=np.float32)[[0, 2, 1]])


def test_flatten(build):
    test = ComponentTest(Flatten(), {"x": TensorSpec(("B", 2, 3))}, **build)
    x = floats(4, 2, 3)
    test.check(x, expected=x.reshape(4, 6))


def test_scale_image(build):
    test = ComponentTest(ScaleImage(), {"x": TensorSpec(("B", 2, 2, 1), "uint8")}, **build)
    x = rng.integers(0, 256, (3, 2, 2, 1), dtype=np.uint8)
    test.check(x, expected=x / np.float32(255))


def test_an_image_smaller_than_the_kernel_is_refused():
    with pytest.raises(BuildError, match="smaller than the kernel"):
        ComponentTest(Conv2D(2, 5), {"x": TensorSpec(("B", 4, 4, 1))})


def test_unknown_activation_names_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'relu'"):
        Dense(3, activation="rellu")
