"""Every op of the contract, called at least once: components whose apis return the results by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rlcore.component import Array, Component, Parameters, api
from rlcore.ops import Ops
from rlcore.specs import TensorSpec

Results = dict[str, Array]


def elementwise(ops: Ops, x: Array, y: Array) -> Results:
    """x: float32 [B, 4], y: float32 [B, 4], positive."""
    return {
        "abs": ops.abs(x),
        "exp": ops.exp(ops.minimum(x, 5.0)),
        "log": ops.log(y),
        "sqrt": ops.sqrt(y),
        "square": ops.square(x),
        "tanh": ops.tanh(x),
        "floor": ops.floor(x),
        "maximum": ops.maximum(x, y),
        "maximum of a number": ops.maximum(x, 0.5),
        "minimum": ops.minimum(x, y),
        "minimum of a number": ops.minimum(x, -0.5),
        "clip": ops.clip(x, -1.0, 0.75),
        "where": ops.where(x > y, x, y),
        "where with a number": ops.where(x > 0.1, x, 0.0),
        "relu": ops.relu(x),
        "gelu": ops.gelu(x),
        "elu": ops.elu(x),
        "sigmoid": ops.sigmoid(x),
        "softplus": ops.softplus(x),
        "softmax": ops.softmax(x),
        "log_softmax": ops.log_softmax(x),
        "stop_gradient": ops.stop_gradient(x) * x,
        "zeros_like": ops.zeros_like(x),
        "ones_like": ops.ones_like(x),
        "operators": (x - 2.0) * y / 3.0 + 1.0 - x**2,
        "comparisons": ops.astype((x < y) & (x >= -1.0), "float32"),
    }


def shapes(ops: Ops, x: Array, y: Array) -> Results:
    """x, y: float32 [B, 4]"""
    batch = ops.shape(x)[0]
    return {
        "sum": ops.sum(x),
        "sum of rows": ops.sum(x, -1, True),
        "sum over the batch": ops.sum(x, 0),
        "mean": ops.mean(x),
        "mean of rows": ops.mean(x, -1, True),
        "max": ops.max(x, -1),
        "max with keepdims": ops.max(x, -1, True),
        "min": ops.min(x, -1),
        "min of all": ops.min(x),
        "matmul": ops.matmul(x, ops.permute_dims(x[:1], (1, 0))),
        "batched matmul": ops.matmul(ops.expand_dims(x, 1), ops.expand_dims(y, -1)),
        "reshape": ops.reshape(x, (-1, 2)),
        "shape": ops.reshape(x, (batch, 2, 2)),
        "permute_dims": ops.permute_dims(ops.reshape(x, (batch, 2, 2)), (0, 2, 1)),
        "expand_dims": ops.expand_dims(x, 1),
        "squeeze": ops.squeeze(ops.expand_dims(x, 1), 1),
        "concat": ops.concat([x, y], -1),
        "stack": ops.stack([x, y], 1),
        "indexing": x[:, 1:3] + y[:, None, 0],
    }


def integers(ops: Ops, x: Array, i: Array, u: Array) -> Results:
    """x: float32 [B, 4], i: int64 [B, 4] of 0 to 3, u: uint8 [B, 4]"""
    return {
        "argmax": ops.argmax(x, -1),
        "argmax of ties": ops.argmax(ops.floor(x * 0.5), -1),
        "take": ops.take(ops.permute_dims(x[:1], (1, 0)), i),
        "take_along_axis": ops.take_along_axis(x, i),
        "astype float32": ops.astype(u, "float32"),
        "astype int64": ops.astype(ops.floor(x), "int64"),
        "asarray": ops.asarray([1.0, 2.0, 3.0, 4.0], "float32") + x,
        "one_hot": ops.one_hot(i, 4),
    }


def network(ops: Ops, x: Array, image: Array, weights: Mapping[str, Array]) -> Results:
    """x: float32 [B, 4], image: float32 [B, 7, 6, 2]"""
    kernel = weights["kernel"]
    return {
        "linear": ops.linear(x, weights["matrix"], weights["vector"]),
        "conv2d valid": ops.conv2d(image, kernel, stride=1, padding="valid"),
        "conv2d valid, stride 2": ops.conv2d(image, kernel, stride=2, padding="valid"),
        "conv2d same": ops.conv2d(image, kernel, stride=1, padding="same"),
        "conv2d same, stride 2": ops.conv2d(image, kernel, stride=2, padding="same"),
        "conv2d of one filter, one image": ops.conv2d(image[:1], weights["thin"], stride=2, padding="valid"),
        "max_pool2d": ops.max_pool2d(image, size=2, stride=2),
        "max_pool2d, overlapping": ops.max_pool2d(image, size=3, stride=1),
        "layer_norm": ops.layer_norm(x, weights["scale"], weights["offset"], epsilon=1e-5),
    }


NOT_DIFFERENTIABLE = {"floor", "zeros_like", "ones_like", "comparisons"}
VECTOR = TensorSpec(("B", 4), "float32", -40.0, 40.0)
POSITIVE = TensorSpec(("B", 4), "float32", 1e-3, 40.0)
INDEX = TensorSpec(("B", 4), "int64", 0, 3)
BYTES = TensorSpec(("B", 4), "uint8", 0, 255)
IMAGE = TensorSpec(("B", 7, 6, 2), "float32", -1.0, 1.0)


class OpCases(Component):
    """One api a group of ops, and one that writes a variable."""

    INPUTS: Mapping[str, Mapping[str, TensorSpec]] = {
        "elementwise": {"x": VECTOR, "y": POSITIVE},
        "shapes": {"x": VECTOR, "y": POSITIVE},
        "integers": {"x": VECTOR, "i": INDEX, "u": BYTES},
        "network": {"x": VECTOR, "image": IMAGE},
        "accumulate": {"x": VECTOR},
    }

    def build(self, x: TensorSpec) -> None:  # type: ignore[override]
        self.matrix = self.variable("matrix", (4, 3), "glorot_uniform")
        self.vector = self.variable("vector", (3,), "normal")
        self.kernel = self.variable("kernel", (3, 3, 2, 5), "glorot_uniform")
        self.thin = self.variable("thin", (3, 3, 2, 1), "glorot_uniform")
        self.scale = self.variable("scale", (4,), "ones")
        self.offset = self.variable("offset", (4,), "normal")
        self.total = self.variable("total", (4,), trainable=False)

    @api
    def elementwise(self, x: Array, y: Array) -> Results:
        return elementwise(self.ops, x, y)

    @api
    def shapes(self, x: Array, y: Array) -> Results:
        return shapes(self.ops, x, y)

    @api
    def integers(self, x: Array, i: Array, u: Array) -> Results:
        return integers(self.ops, x, i, u)

    @api
    def network(self, x: Array, image: Array) -> Results:
        return network(self.ops, x, image, vars(self))

    @api
    def accumulate(self, x: Array) -> Results:
        self.ops.assign(self.total, self.total + self.ops.sum(x, 0))
        return {"assign": self.total * 1.0}


class _Point(Component):
    """A place to take gradients at: every input of the differentiable ops as a variable."""

    SHAPES: Mapping[str, tuple[int, ...]] = {
        "x": (5, 4),
        "y": (5, 4),
        "image": (2, 7, 6, 2),
        "matrix": (4, 3),
        "vector": (3,),
        "kernel": (3, 3, 2, 5),
        "thin": (3, 3, 2, 1),
        "scale": (4,),
        "offset": (4,),
        "unused": (3,),
    }

    def build(self, zero: TensorSpec) -> None:  # type: ignore[override]
        for name, shape in self.SHAPES.items():
            low, high = (0.5, 2.0) if name == "y" else (-2.0, 2.0)
            setattr(self, name, self.variable(name, shape, {"name": "uniform", "low": low, "high": high}))

    @api
    def results(self, zero: Array) -> Results:
        ops, x, y = self.ops, self.x + zero, self.y
        weights = {n: getattr(self, n) for n in ("matrix", "vector", "kernel", "thin", "scale", "offset")}
        out = {**elementwise(ops, x, y), **shapes(ops, x, y), **network(ops, x, self.image, weights)}
        index = ops.asarray(np.arange(20).reshape(5, 4) % 4, "int64")
        out["take"] = ops.take(ops.permute_dims(x, (1, 0)), index)
        out["take_along_axis"] = ops.take_along_axis(x, index)
        return {name: value for name, value in out.items() if name not in NOT_DIFFERENTIABLE}


DIFFERENTIABLE: Sequence[str] = sorted(
    {
        *("take", "take_along_axis"),
        *("abs", "exp", "log", "sqrt", "square", "tanh", "maximum", "maximum of a number", "minimum"),
        *("minimum of a number", "clip", "where", "where with a number", "relu", "gelu", "elu", "sigmoid", "softplus"),
        *("softmax", "log_softmax", "stop_gradient", "operators"),
        *("sum", "sum of rows", "sum over the batch", "mean", "mean of rows", "max", "max with keepdims", "min"),
        *("min of all", "matmul", "batched matmul", "reshape", "shape", "permute_dims", "expand_dims", "squeeze"),
        *("concat", "stack", "indexing"),
        *("linear", "conv2d valid", "conv2d valid, stride 2", "conv2d same", "conv2d same, stride 2"),
        *("conv2d of one filter, one image", "max_pool2d", "max_pool2d, overlapping", "layer_norm"),
    }
)


class Gradients(Component):
    """Gradient of a weighted sum of some results by every variable.

    gradient:   zero: float32 []  ->  loss [], aux, gradient [N]
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names, self.point = list(names), _Point()
        self.parameters = Parameters(self.point)

    @api
    def gradient(self, zero: Array) -> Results:
        def loss_fn() -> tuple[Array, Any]:
            results = self.point.results(zero)
            total = self.ops.sum(results[self.names[0]]) * 0.0
            for i, name in enumerate(self.names):  # weights, so that no two places have one gradient
                part = results[name]
                total = total + (1.0 + 0.1 * i) * self.ops.sum(part * self.ops.tanh(0.3 * part + 0.2))
            return total, {"twice": total * 2.0}

        loss, aux, gradient = self.ops.value_and_grad(loss_fn, self.parameters)
        return {"loss": loss, "twice": aux["twice"], "gradient": gradient}


def edge_inputs(group: str, rng: np.random.Generator, batch: int) -> list[np.ndarray]:
    """Inputs of a group: zeros, ties, large and small values among random ones."""
    x = rng.standard_normal((batch, 4)).astype(np.float32)
    flat = x.ravel()
    special: Sequence[float] = [0.0, -0.0, 100.0, -100.0, 1.0, 1.0, 1e-6, -1.0]
    flat[: min(flat.size, len(special))] = special[: flat.size]
    y = (np.exp(rng.standard_normal((batch, 4))) + 1e-3).astype(np.float32)
    inputs: dict[str, Callable[[], np.ndarray]] = {
        "x": lambda: x,
        "y": lambda: y,
        "i": lambda: rng.integers(0, 4, (batch, 4)),
        "u": lambda: rng.integers(0, 256, (batch, 4)).astype(np.uint8),
        "image": lambda: rng.standard_normal((batch, 7, 6, 2)).astype(np.float32),
    }
    return [inputs[name]() for name in OpCases.INPUTS[group]]
