"""Ops: the numeric operations that a backend supplies to components.

Names and meaning are those of the Python array API standard where it has them. Arithmetic, comparison
and basic indexing (ints, slices, ``None``) are written with operators on the tensors themselves.
Python numbers in arithmetic take the tensor's dtype; mixing dtypes is the component's job (``astype``).
Images are NHWC, kernels HWIO. An op enters when a component needs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlcore.component import Parameters

Array = Any
Axis = int | None


class Ops(ABC):
    """The contract. ``Array`` is the backend's own tensor; every op returns a new one unless it says otherwise."""

    # -- array API: elementwise ------------------------------------------------------------------
    @abstractmethod
    def abs(self, x: Array) -> Array: ...
    @abstractmethod
    def exp(self, x: Array) -> Array: ...
    @abstractmethod
    def log(self, x: Array) -> Array: ...
    @abstractmethod
    def sqrt(self, x: Array) -> Array: ...
    @abstractmethod
    def square(self, x: Array) -> Array: ...
    @abstractmethod
    def tanh(self, x: Array) -> Array: ...
    @abstractmethod
    def floor(self, x: Array) -> Array: ...
    @abstractmethod
    def maximum(self, x: Array, y: Array) -> Array:
        """The larger one; ``y`` may be a Python number."""

    @abstractmethod
    def minimum(self, x: Array, y: Array) -> Array:
        """The smaller one; ``y`` may be a Python number."""

    @abstractmethod
    def clip(self, x: Array, low: float, high: float) -> Array: ...
    @abstractmethod
    def where(self, condition: Array, x: Array, y: Array) -> Array:
        """``x`` where the bool ``condition`` holds, else ``y``; one of both may be a Python number."""

    # -- array API: reductions -------------------------------------------------------------------
    @abstractmethod
    def sum(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array: ...
    @abstractmethod
    def mean(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array: ...
    @abstractmethod
    def max(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array: ...
    @abstractmethod
    def min(self, x: Array, axis: Axis = None, keepdims: bool = False) -> Array: ...
    @abstractmethod
    def argmax(self, x: Array, axis: int) -> Array:
        """int64 index of the first largest."""

    # -- array API: linear algebra, shapes, types ------------------------------------------------
    @abstractmethod
    def matmul(self, x: Array, y: Array) -> Array: ...
    @abstractmethod
    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        """One entry may be -1."""

    @abstractmethod
    def shape(self, x: Array) -> Sequence[Any]:
        """Lengths of the axes, ints or (in a static graph) scalars of the graph that ``reshape`` takes."""

    @abstractmethod
    def permute_dims(self, x: Array, axes: Sequence[int]) -> Array: ...
    @abstractmethod
    def expand_dims(self, x: Array, axis: int) -> Array: ...
    @abstractmethod
    def squeeze(self, x: Array, axis: int) -> Array: ...
    @abstractmethod
    def concat(self, arrays: Sequence[Array], axis: int = 0) -> Array: ...
    @abstractmethod
    def stack(self, arrays: Sequence[Array], axis: int = 0) -> Array: ...
    @abstractmethod
    def take(self, x: Array, indices: Array) -> Array:
        """Rows of ``x`` along its first axis: ``[N, ...]``, int ``[...]`` -> ``[..., ...]``."""

    @abstractmethod
    def take_along_axis(self, x: Array, indices: Array, axis: int = -1) -> Array:
        """int64 ``indices`` of the rank of ``x``; ``axis`` must be the last."""

    @abstractmethod
    def astype(self, x: Array, dtype: str) -> Array: ...
    @abstractmethod
    def asarray(self, value: Any, dtype: str) -> Array:
        """A constant from Python or NumPy numbers."""

    @abstractmethod
    def zeros_like(self, x: Array) -> Array: ...
    @abstractmethod
    def ones_like(self, x: Array) -> Array: ...

    # -- beyond the standard ---------------------------------------------------------------------
    @abstractmethod
    def linear(self, x: Array, kernel: Array, bias: Array) -> Array:
        """x W + b.   float32 ``[..., in]``, ``[in, out]``, ``[out]`` -> ``[..., out]``"""

    @abstractmethod
    def relu(self, x: Array) -> Array: ...
    @abstractmethod
    def gelu(self, x: Array) -> Array:
        """x Phi(x) by its tanh approximation (Hendrycks & Gimpel 2016)."""

    @abstractmethod
    def elu(self, x: Array) -> Array: ...
    @abstractmethod
    def sigmoid(self, x: Array) -> Array: ...
    @abstractmethod
    def softplus(self, x: Array) -> Array: ...
    @abstractmethod
    def softmax(self, x: Array) -> Array:
        """Over the last axis."""

    @abstractmethod
    def log_softmax(self, x: Array) -> Array:
        """Over the last axis."""

    @abstractmethod
    def one_hot(self, x: Array, depth: int) -> Array:
        """int ``[...]`` -> float32 ``[..., depth]``."""

    @abstractmethod
    def conv2d(self, x: Array, kernel: Array, *, stride: int, padding: str) -> Array:
        """float32 NHWC, HWIO -> NHWC. ``padding`` is ``valid`` or ``same`` (TensorFlow's rule)."""

    @abstractmethod
    def max_pool2d(self, x: Array, *, size: int, stride: int) -> Array:
        """NHWC, no padding."""

    @abstractmethod
    def layer_norm(self, x: Array, scale: Array, offset: Array, *, epsilon: float) -> Array:
        """Over the last axis (Ba et al. 2016)."""

    @abstractmethod
    def stop_gradient(self, x: Array) -> Array: ...

    # -- state and gradients ---------------------------------------------------------------------
    @abstractmethod
    def assign(self, variable: Array, value: Array) -> None:
        """Write ``value`` into a variable, or into ``parameters.flat``, in place."""

    @abstractmethod
    def value_and_grad(
        self, loss_fn: Callable[[], tuple[Array, Any]], parameters: Parameters
    ) -> tuple[Array, Any, Array]:
        """Run ``loss_fn() -> (loss, aux)`` once.

        :return: the scalar loss, aux (a tree of tensors), and the gradient of the loss by
            ``parameters.flat`` (float32 ``[N]``; zero where the loss does not depend on a variable).
        """
