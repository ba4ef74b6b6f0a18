"""Ops over NumPy. Gradients by HIPS autograd: the same ops over ``autograd.numpy`` while a loss runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from rlcore.component import Parameters
from rlcore.layout import Slot
from rlcore.ops import Array, Axis, Ops


@cache
def ops_class(module: Any = np, base: type[NumpyOps] | None = None) -> type[NumpyOps]:
    """Ops that compute with ``module``: NumPy itself, or autograd's twin of it while a loss runs.

    :param base: NumpyOps if None; a sub-class may compute some of them otherwise.
    """

    class Functions(NumpyOps):
        traced = module is not np  # before the next line hides the module of that name
        np = module
        abs = staticmethod(module.abs)
        exp = staticmethod(module.exp)
        log = staticmethod(module.log)
        sqrt = staticmethod(module.sqrt)
        tanh = staticmethod(module.tanh)
        floor = staticmethod(module.floor)
        maximum = staticmethod(module.maximum)
        minimum = staticmethod(module.minimum)
        clip = staticmethod(module.clip)
        where = staticmethod(module.where)
        matmul = staticmethod(module.matmul)
        reshape = staticmethod(module.reshape)
        expand_dims = staticmethod(module.expand_dims)
        squeeze = staticmethod(module.squeeze)
        zeros_like = staticmethod(module.zeros_like)
        ones_like = staticmethod(module.ones_like)

    if base is None:
        return Functions
    return type(base.__name__, (base, Functions), {"base": base})


class NumpyOps(Ops):
    """What both modules share. While gradients are taken, the one ops object changes class for a moment,
    so that an ``ops`` held in a local name records too.
    """

    np: Any
    traced: bool
    base: ClassVar[type[NumpyOps] | None] = None

    def __init__(self) -> None:
        self.groups: dict[int, Sequence[Slot]] = {}  # id of Parameters -> places of its variables

    def square(self, x: Array) -> Array:
        return x * x

    def sum(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
        return self.np.sum(x, axis=axis, keepdims=keepdims)

    def mean(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
        return self.np.mean(x, axis=axis, keepdims=keepdims)

    def max(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
        return self.np.max(x, axis=axis, keepdims=keepdims)

    def min(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
        return self.np.min(x, axis=axis, keepdims=keepdims)

    def argmax(self, x: Array, axis: int) -> Array:
        return self.np.argmax(x, axis=axis)

    def shape(self, x: Array) -> Sequence[Any]:
        return tuple(x.shape)

    def permute_dims(self, x: Array, axes: Sequence[int]) -> Array:
        return self.np.transpose(x, axes)

    def concat(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        return self.np.concatenate(list(arrays), axis=axis)

    def stack(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        return self.np.stack(list(arrays), axis=axis)

    def take(self, x: Array, indices: Array) -> Array:
        return x[indices]

    def take_along_axis(self, x: Array, indices: Array, axis: int = -1) -> Array:
        if not self.traced:
            return np.take_along_axis(x, indices, axis)
        leading = np.ogrid[tuple(slice(n) for n in indices.shape)]  # autograd knows the gradient of indexing
        return x[(*leading[:-1], indices)]

    def astype(self, x: Array, dtype: str) -> Array:
        return x.astype(dtype)

    def asarray(self, value: Any, dtype: str) -> Array:
        return np.asarray(value, dtype)

    def linear(self, x: Array, kernel: Array, bias: Array) -> Array:
        return self.np.matmul(x, kernel) + bias

    def relu(self, x: Array) -> Array:
        if self.traced:  # the gradient at 0 is 0, as everywhere else; that of maximum is 0.5
            return self.np.where(x > 0, x, 0.0)
        return self.np.maximum(x, 0.0)

    def gelu(self, x: Array) -> Array:
        return 0.5 * x * (1.0 + self.np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

    def elu(self, x: Array) -> Array:
        return self.np.where(x > 0, x, self.np.exp(self.np.minimum(x, 0.0)) - 1.0)

    def sigmoid(self, x: Array) -> Array:
        return 0.5 * (self.np.tanh(0.5 * x) + 1.0)

    def softplus(self, x: Array) -> Array:
        return self.np.maximum(x, 0.0) + self.np.log1p(self.np.exp(-self.np.abs(x)))

    def softmax(self, x: Array) -> Array:
        e = self.np.exp(x - self.np.max(x, axis=-1, keepdims=True))
        return e / self.np.sum(e, axis=-1, keepdims=True)

    def log_softmax(self, x: Array) -> Array:
        shifted = x - self.np.max(x, axis=-1, keepdims=True)
        return shifted - self.np.log(self.np.sum(self.np.exp(shifted), axis=-1, keepdims=True))

    def one_hot(self, x: Array, depth: int) -> Array:
        return (np.expand_dims(x, -1) == np.arange(depth)).astype(np.float32)

    def conv2d(self, x: Array, kernel: Array, *, stride: int, padding: str) -> Array:
        h, w = kernel.shape[:2]
        if padding == "same":
            sides = ((0, 0), _same(x.shape[1], h, stride), _same(x.shape[2], w, stride), (0, 0))
            x = self.np.pad(x, sides, "constant")  # autograd wants the mode
        rows, columns = (x.shape[1] - h) // stride + 1, (x.shape[2] - w) // stride + 1
        # One matmul per kernel tap: needs nothing that autograd lacks, and copies no patches.
        taps = [
            self.np.matmul(
                x[:, i : i + rows * stride : stride, j : j + columns * stride : stride, :],
                kernel[i, j],
            )
            for i in range(h)
            for j in range(w)
        ]
        total = taps[0]
        for tap in taps[1:]:
            total = total + tap
        return total

    def max_pool2d(self, x: Array, *, size: int, stride: int) -> Array:
        rows, columns = (x.shape[1] - size) // stride + 1, (x.shape[2] - size) // stride + 1
        best = None
        for i in range(size):
            for j in range(size):
                tap = x[:, i : i + rows * stride : stride, j : j + columns * stride : stride, :]
                best = tap if best is None else self.np.where(tap > best, tap, best)
        return best

    def layer_norm(self, x: Array, scale: Array, offset: Array, *, epsilon: float) -> Array:
        centred = x - self.np.mean(x, axis=-1, keepdims=True)
        variance = self.np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / self.np.sqrt(variance + epsilon) * scale + offset

    def stop_gradient(self, x: Array) -> Array:
        if not self.traced:
            return x
        from autograd.tracer import getval

        return getval(x)

    def assign(self, variable: Array, value: Array) -> None:
        variable[...] = value

    def value_and_grad(
        self, loss_fn: Callable[[], tuple[Array, Any]], parameters: Parameters
    ) -> tuple[Array, Any, Array]:
        from rlcore.backends.numpy.gradients import value_and_grad

        return value_and_grad(self, loss_fn, self.groups[id(parameters)])


def _same(length: int, kernel: int, stride: int) -> tuple[int, int]:
    total = max((-(-length // stride) - 1) * stride + kernel - length, 0)
    return total // 2, total - total // 2
