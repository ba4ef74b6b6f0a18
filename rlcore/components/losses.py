"""Loss functions of an error, elementwise."""

from __future__ import annotations

from rlcore.component import Array
from rlcore.ops import Ops


def squared(ops: Ops, error: Array) -> Array:
    """error^2 / 2, the limit of :func:`huber` for a large delta.   float32 [...] -> [...]"""
    return 0.5 * ops.square(error)


def huber(ops: Ops, error: Array, delta: float = 1.0) -> Array:
    """error^2 / 2 inside +-delta, delta (|error| - delta / 2) outside (Huber 1964).   float32 [...] -> [...]"""
    size = ops.abs(error)
    inside = ops.minimum(size, delta)
    return inside * (size - 0.5 * inside)
