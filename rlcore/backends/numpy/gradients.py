"""Gradients on the NumPy backend, by HIPS autograd over the list of a group's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from rlcore.backends.numpy.ops import NumpyOps, ops_class
from rlcore.layout import Slot


def value_and_grad(
    ops: NumpyOps, loss_fn: Callable[[], tuple[Any, Any]], slots: Sequence[Slot]
) -> tuple[Any, Any, np.ndarray]:
    """``(loss, aux, flat gradient)``. A list of arrays, not a split of the flat one: three times faster here."""
    import autograd.numpy as anp
    from autograd import make_vjp
    from autograd.tracer import getval

    values = [getattr(s.component, s.attribute) for s in slots]
    aux: list[Any] = []

    def run(boxes: Any) -> Any:
        for slot, box in zip(slots, boxes, strict=True):
            setattr(slot.component, slot.attribute, box)
        loss, extra = loss_fn()
        aux.append(extra)
        return loss

    own_class = ops.__class__
    ops.__class__ = ops_class(anp, ops.base)
    try:
        vjp, loss = make_vjp(run)(values)
    finally:
        ops.__class__ = own_class
        for slot, value in zip(slots, values, strict=True):
            setattr(slot.component, slot.attribute, value)
    grads = vjp(np.ones((), np.float32))
    flat = np.concatenate([np.asarray(g, np.float32).ravel() for g in grads])
    return getval(loss), optree.tree_map(getval, aux[0]), flat
