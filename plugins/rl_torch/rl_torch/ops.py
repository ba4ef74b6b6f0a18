"""Ops over PyTorch. Names are bound to torch's own functions wherever the meaning is the same: no frame between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import optree
import torch
import torch.nn.functional as F

from rlcore.component import Parameters
from rlcore.layout import Slot
from rlcore.ops import Ops

DTYPES = {
    name: getattr(torch, name) for name in ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
}


class Group:
    """The variables of one Parameters handle: one flat tensor and the places where its views are bound."""

    def __init__(self, flat: torch.Tensor, slots: Sequence[Slot]) -> None:
        self.flat = flat
        self.places = [(s.component, s.attribute, s.variable.shape) for s in slots]
        self.sizes = [s.variable.size for s in slots]
        self.leaves: list[torch.Tensor] = []

    def bind(self, flat: torch.Tensor) -> None:
        """Put views of ``flat`` into the components."""
        for (component, attribute, shape), part in zip(self.places, torch.split(flat, self.sizes)):  # noqa: B905
            setattr(component, attribute, part.view(shape))


class TorchOps(Ops):
    """What eager and static mode share."""

    abs = staticmethod(torch.abs)
    exp = staticmethod(torch.exp)
    log = staticmethod(torch.log)
    sqrt = staticmethod(torch.sqrt)
    square = staticmethod(torch.square)
    tanh = staticmethod(torch.tanh)
    floor = staticmethod(torch.floor)
    clip = staticmethod(torch.clamp)
    where = staticmethod(torch.where)
    argmax = staticmethod(torch.argmax)
    matmul = staticmethod(torch.matmul)
    reshape = staticmethod(torch.reshape)
    permute_dims = staticmethod(torch.permute)
    expand_dims = staticmethod(torch.unsqueeze)
    squeeze = staticmethod(torch.squeeze)
    concat = staticmethod(torch.cat)
    stack = staticmethod(torch.stack)
    zeros_like = staticmethod(torch.zeros_like)
    ones_like = staticmethod(torch.ones_like)
    relu = staticmethod(torch.relu)
    elu = staticmethod(F.elu)
    sigmoid = staticmethod(torch.sigmoid)
    softplus = staticmethod(F.softplus)
    stop_gradient = staticmethod(torch.detach)

    def maximum(self, x: Any, y: Any) -> Any:
        return torch.maximum(x, y) if isinstance(y, torch.Tensor) else torch.clamp(x, min=y)

    def minimum(self, x: Any, y: Any) -> Any:
        return torch.minimum(x, y) if isinstance(y, torch.Tensor) else torch.clamp(x, max=y)

    def sum(self, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return torch.sum(x) if axis is None and not keepdims else torch.sum(x, axis, keepdims)

    def mean(self, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return torch.mean(x) if axis is None and not keepdims else torch.mean(x, axis, keepdims)

    def max(self, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return torch.amax(x, () if axis is None else axis, keepdims)

    def min(self, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return torch.amin(x, () if axis is None else axis, keepdims)

    def shape(self, x: Any) -> Sequence[Any]:
        return x.shape

    def take(self, x: Any, indices: Any) -> Any:
        return x[indices]

    def take_along_axis(self, x: Any, indices: Any, axis: int = -1) -> Any:
        return torch.gather(x, axis, indices)

    def astype(self, x: Any, dtype: str) -> Any:
        return x.to(DTYPES[dtype])

    def asarray(self, value: Any, dtype: str) -> Any:
        return torch.as_tensor(value, dtype=DTYPES[dtype])

    def linear(self, x: Any, kernel: Any, bias: Any) -> Any:
        if x.ndim != 2:
            return torch.matmul(x, kernel) + bias
        if kernel.shape[1] <= 8 and kernel.shape[0] >= 128 and x.shape[0] >= 32:
            # A narrow head: BLAS takes up to three times as long on a row-major kernel, and a copy of it is small.
            kernel = kernel.t().contiguous().t()
        return torch.addmm(bias, x, kernel)

    def gelu(self, x: Any) -> Any:
        return F.gelu(x, approximate="tanh")

    def softmax(self, x: Any) -> Any:
        return torch.softmax(x, -1)

    def log_softmax(self, x: Any) -> Any:
        return torch.log_softmax(x, -1)

    def one_hot(self, x: Any, depth: int) -> Any:
        # F.one_hot looks at the values, which a static graph can't.
        return (x.unsqueeze(-1) == torch.arange(depth, device=x.device)).to(torch.float32)

    def conv2d(self, x: Any, kernel: Any, *, stride: int, padding: str) -> Any:
        x = x.permute(0, 3, 1, 2)
        if padding == "same":
            pads = []
            for axis in (1, 0):  # F.pad wants the last axis first
                length, size = x.shape[2 + axis], kernel.shape[axis]
                total = max((-(-length // stride) - 1) * stride + size - length, 0)
                pads += [total // 2, total - total // 2]
            x = F.pad(x, pads)
        weight = kernel.permute(3, 2, 0, 1)
        if weight.shape[0] == 1:  # of one filter on one image torch's gradient fails for a weight with strides
            weight = weight.contiguous()
        return F.conv2d(x, weight, stride=stride).permute(0, 2, 3, 1)

    def max_pool2d(self, x: Any, *, size: int, stride: int) -> Any:
        return F.max_pool2d(x.permute(0, 3, 1, 2), size, stride).permute(0, 2, 3, 1)

    def layer_norm(self, x: Any, scale: Any, offset: Any, *, epsilon: float) -> Any:
        return F.layer_norm(x, scale.shape, scale, offset, epsilon)

    def assign(self, variable: Any, value: Any) -> None:
        variable.copy_(value)

    def value_and_grad(self, loss_fn: Callable[[], Any], parameters: Parameters) -> Any:
        """Eager: leaves are views of the flat tensor, their gradients are concatenated."""
        group: Group = parameters.group  # type: ignore[attr-defined]
        with torch.enable_grad():
            loss, aux = loss_fn()
        if not loss.requires_grad:
            return loss, aux, torch.zeros_like(group.flat)
        grads = torch.autograd.grad(loss, group.leaves, allow_unused=True, materialize_grads=True)
        flat = torch.cat([g.reshape(-1) for g in grads])
        return loss.detach(), optree.tree_map(torch.detach, aux), flat


class StaticTorchOps(TorchOps):
    """Inside ``torch.compile``: gradients by ``torch.func`` of the flat tensor."""

    def linear(self, x: Any, kernel: Any, bias: Any) -> Any:
        return torch.addmm(bias, x, kernel) if x.ndim == 2 else torch.matmul(x, kernel) + bias

    def value_and_grad(self, loss_fn: Callable[[], Any], parameters: Parameters) -> Any:
        group: Group = parameters.group  # type: ignore[attr-defined]

        def loss_of(flat: torch.Tensor) -> Any:
            group.bind(flat)
            return loss_fn()

        flat, (loss, aux) = torch.func.grad_and_value(loss_of, has_aux=True)(group.flat)
        group.bind(group.flat)
        return loss, aux, flat
