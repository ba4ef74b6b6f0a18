"""Layers: one tensor in, one out."""

from __future__ import annotations

from typing import Any

from rlcore.component import Array, Component, api
from rlcore.errors import ConfigError, SpecError, nearest
from rlcore.ops import Ops
from rlcore.specs import TensorSpec

ACTIVATIONS = ("linear", "relu", "tanh", "sigmoid", "elu", "gelu", "softplus")


def require_float(x: TensorSpec, rank: int | None = None, expected: str = "") -> None:
    """Raise SpecError unless ``x`` is float32 (and of this rank)."""
    if x.dtype != "float32":
        hint = "; turn discrete values into one with OneHot or Embedding" if not x.is_float else ""
        raise SpecError(f"{x.dtype} input", expected=f"float32{expected}{hint}")
    if rank is not None and x.rank != rank:
        raise SpecError(f"input of rank {x.rank}", expected=f"float32{expected} (rank {rank})")


def fixed(x: TensorSpec, axis: int) -> int:
    """Length of an axis that must not vary from call to call."""
    length = x.shape[axis] if x.rank >= max(axis + 1, -axis) else None
    if not isinstance(length, int):
        raise SpecError(f"axis {axis} of {x} has no fixed length", expected="a fixed length there")
    return length


def activate(ops: Ops, x: Array, name: str) -> Array:
    return x if name == "linear" else getattr(ops, name)(x)


def check_activation(name: str) -> str:
    if name not in ACTIVATIONS:
        raise ConfigError(f"unknown activation '{name}'.{nearest(name, ACTIVATIONS)} Known: {', '.join(ACTIVATIONS)}")
    return name


class Dense(Component):
    """y = activation(x W + b).   x: float32 [..., in]  ->  float32 [..., units]

    :param kernel_init: default U(+-1/sqrt(in)) for kernel and bias, as ``torch.nn.Linear`` (LeCun et al. 1998).
    """

    def __init__(
        self,
        units: int,
        *,
        activation: str = "linear",
        kernel_init: Any = "fan_in_uniform",
        bias_init: Any = None,
    ) -> None:
        super().__init__()
        self.units, self.activation = units, check_activation(activation)
        self.kernel_init, self.bias_init = kernel_init, bias_init

    def build(self, x: TensorSpec) -> None:  # type: ignore[override]
        require_float(x, expected="[..., in]")
        width = fixed(x, -1)
        bound = width**-0.5
        bias_init = {"name": "uniform", "low": -bound, "high": bound} if self.bias_init is None else self.bias_init
        self.kernel = self.variable("kernel", (width, self.units), self.kernel_init)
        self.bias = self.variable("bias", (self.units,), bias_init)

    @api
    def __call__(self, x: Array) -> Array:
        return activate(self.ops, self.ops.linear(x, self.kernel, self.bias), self.activation)


class Conv2D(Component):
    """2-D convolution.   x: float32 [B, H, W, C]  ->  float32 [B, H', W', filters]

    :param padding: ``valid`` or ``same``.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: int,
        *,
        stride: int = 1,
        padding: str = "valid",
        activation: str = "linear",
        kernel_init: Any = "fan_in_uniform",
        bias_init: Any = "zeros",
    ) -> None:
        super().__init__()
        if padding not in ("valid", "same"):
            raise ConfigError(f"padding '{padding}'.{nearest(padding, ('valid', 'same'))} Known: valid, same")
        self.filters, self.kernel_size, self.stride, self.padding = filters, kernel_size, stride, padding
        self.activation = check_activation(activation)
        self.kernel_init, self.bias_init = kernel_init, bias_init

    def build(self, x: TensorSpec) -> None:  # type: ignore[override]
        require_float(x, 4, "[B, H, W, C]")
        for axis in (1, 2):
            if self.padding == "valid" and fixed(x, axis) < self.kernel_size:
                raise SpecError(f"image {x} is smaller than the kernel", expected=f"at least {self.kernel_size} pixels")
        shape = (self.kernel_size, self.kernel_size, fixed(x, -1), self.filters)
        self.kernel = self.variable("kernel", shape, self.kernel_init)
        self.bias = self.variable("bias", (self.filters,), self.bias_init)

    @api
    def __call__(self, x: Array) -> Array:
        y = self.ops.conv2d(x, self.kernel, stride=self.stride, padding=self.padding) + self.bias
        return activate(self.ops, y, self.activation)


class MaxPool2D(Component):
    """Largest value of each window, no padding.   x: float32 [B, H, W, C]  ->  float32 [B, H', W', C]"""

    def __init__(self, size: int = 2, *, stride: int | None = None) -> None:
        super().__init__()
        self.size, self.stride = size, stride or size

    def build(self, x: TensorSpec) -> None:  # type: ignore[override]
        require_float(x, 4, "[B, H, W, C]")

    @api
    def __call__(self, x: Array) -> Array:
        return self.ops.max_pool2d(x, size=self.size, stride=self.stride)


class LayerNorm(Component):
    """Ba et al. 2016, over the last axis.   x: float32 [..., n]  ->  float32 [..., n]"""

    def __init__(self, *, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon

    def build(self, x: TensorSpec) -> None:  # type: ignore[override]
        require_float(x, expected="[..., n]")
        self.scale = self.variable("scale", (fixed(x, -1),), "ones")
        self.offset = self.variable("offset", (fixed(x, -1),), "zeros")

    @api
    def __call__(self, x: Array) -> Array:
        return self.ops.layer_norm(x, self.scale, self.offset, epsilon=self.epsilon)


class Embedding(Component):
    """A trained vector per value.   x: int [...] in 0..num_values-1  ->  float32 [..., size]"""

    def __init__(self, num_values: int, size: int, *, init: Any = None) -> None:
        super().__init__()
        self.num_values, self.size = num_values, size
        self.init = {"name": "normal", "stddev": 1.0} if init is None else init

    def build(self, x: TensorSpec) -> None:  # type: ignore[override]
        if x.is_float or x.dtype == "bool":
            raise SpecError(f"{x.dtype} input", expected="an integer dtype")
        self.table = self.variable("table", (self.num_values, self.size), self.init)

    @api
    def __call__(self, x: Array) -> Array:
        return self.ops.take(self.table, self.ops.astype(x, "int64"))


class OneHot(Component):
    """x: int [...] in low..low+depth-1  ->  float32 [..., depth]"""

    def __init__(self, depth: int, *, low: int = 0) -> None:
        super().__init__()
        self.depth, self.low = depth, low

    def build(self, x: TensorSpec) -> None:  # type: ignore[override]
        if x.is_float or x.dtype == "bool":
            raise SpecError(f"{x.dtype} input", expected="an integer dtype")

    @api
    def __call__(self, x: Array) -> Array:
        return self.ops.one_hot(self.ops.astype(x, "int64") - self.low, self.depth)


class Flatten(Component):
    """All axes after the first ``keep`` become one.   x: [B, ...]  ->  [B, n]"""

    def __init__(self, *, keep: int = 1) -> None:
        super().__init__()
        self.keep = keep

    def build(self, x: TensorSpec) -> None:  # type: ignore[override]
        self.size = 1
        for axis in range(self.keep, x.rank):
            self.size *= fixed(x, axis)

    @api
    def __call__(self, x: Array) -> Array:
        return self.ops.reshape(x, [*self.ops.shape(x)[: self.keep], self.size])


class ScaleImage(Component):
    """Bytes to 0..1.   x: uint8 [...]  ->  float32 [...]"""

    def build(self, x: TensorSpec) -> None:  # type: ignore[override]
        if x.dtype != "uint8":
            raise SpecError(f"{x.dtype} input", expected="uint8")

    @api
    def __call__(self, x: Array) -> Array:
        return self.ops.astype(x, "float32") * (1.0 / 255.0)
