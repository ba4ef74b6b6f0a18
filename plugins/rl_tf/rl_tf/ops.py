"""Ops over TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from rlcore.component import Parameters
from rlcore.layout import Slot
from rlcore.ops import Ops


class Group:
    """The variables of a block: one flat ``tf.Variable`` and the places where tensors split from it are bound."""

    def __init__(self, variable: tf.Variable, slots: Sequence[Slot]) -> None:
        self.variable, self.slots = variable, slots
        self.sizes = [s.variable.size for s in slots]

    def bind(self, flat: tf.Tensor | None = None) -> None:
        """Put the parts of ``flat`` (the variable's present value if None) into the components."""
        # One split: its gradient is one concatenation. A slice's gradient is a zero-padded buffer each.
        parts = tf.split(self.variable.read_value() if flat is None else flat, self.sizes)
        for slot, part in zip(self.slots, parts, strict=True):
            setattr(slot.component, slot.attribute, tf.reshape(part, slot.variable.shape))


class TfOps(Ops):
    abs = staticmethod(tf.abs)
    exp = staticmethod(tf.exp)
    log = staticmethod(tf.math.log)
    sqrt = staticmethod(tf.sqrt)
    square = staticmethod(tf.square)
    tanh = staticmethod(tf.tanh)
    floor = staticmethod(tf.floor)
    maximum = staticmethod(tf.maximum)
    minimum = staticmethod(tf.minimum)
    clip = staticmethod(tf.clip_by_value)
    where = staticmethod(tf.where)
    sum = staticmethod(tf.reduce_sum)
    mean = staticmethod(tf.reduce_mean)
    max = staticmethod(tf.reduce_max)
    min = staticmethod(tf.reduce_min)
    matmul = staticmethod(tf.matmul)
    reshape = staticmethod(tf.reshape)
    expand_dims = staticmethod(tf.expand_dims)
    squeeze = staticmethod(tf.squeeze)
    concat = staticmethod(tf.concat)
    stack = staticmethod(tf.stack)
    take = staticmethod(tf.gather)
    astype = staticmethod(tf.cast)
    zeros_like = staticmethod(tf.zeros_like)
    ones_like = staticmethod(tf.ones_like)
    relu = staticmethod(tf.nn.relu)
    elu = staticmethod(tf.nn.elu)
    sigmoid = staticmethod(tf.sigmoid)
    softplus = staticmethod(tf.nn.softplus)
    softmax = staticmethod(tf.nn.softmax)
    log_softmax = staticmethod(tf.nn.log_softmax)
    one_hot = staticmethod(tf.one_hot)
    stop_gradient = staticmethod(tf.stop_gradient)

    def __init__(self) -> None:
        self.groups: dict[int, Group] = {}  # id of the flat variable -> group

    def shape(self, x: Any) -> Sequence[Any]:
        lengths = x.shape.as_list()
        dynamic = tf.shape(x) if None in lengths else None
        return [dynamic[i] if n is None else n for i, n in enumerate(lengths)]

    def argmax(self, x: Any, axis: int) -> Any:
        # In a graph TensorFlow turns argmax(f(x)) into argmax(x) where f grows, also where it stays the same (relu,
        # floor): the first of equals is lost. It does not look through a snapshot.
        return tf.argmax(tf.raw_ops.Snapshot(input=x), axis)

    def permute_dims(self, x: Any, axes: Sequence[int]) -> Any:
        return tf.transpose(x, axes)

    def take_along_axis(self, x: Any, indices: Any, axis: int = -1) -> Any:
        return tf.gather(x, indices, batch_dims=x.shape.rank - 1)

    def asarray(self, value: Any, dtype: str) -> Any:
        return tf.constant(value, dtype)

    def linear(self, x: Any, kernel: Any, bias: Any) -> Any:
        return tf.matmul(x, kernel) + bias

    def gelu(self, x: Any) -> Any:
        return tf.nn.gelu(x, approximate=True)

    def conv2d(self, x: Any, kernel: Any, *, stride: int, padding: str) -> Any:
        return tf.nn.conv2d(x, kernel, stride, padding.upper())

    def max_pool2d(self, x: Any, *, size: int, stride: int) -> Any:
        return tf.nn.max_pool2d(x, size, stride, "VALID")

    def layer_norm(self, x: Any, scale: Any, offset: Any, *, epsilon: float) -> Any:
        centred = x - tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
        return centred * tf.math.rsqrt(variance + epsilon) * scale + offset

    def assign(self, variable: Any, value: Any) -> None:
        variable.assign(value)
        group = self.groups.get(id(variable))
        if group is not None:
            group.bind()  # the components held parts of the old value

    def value_and_grad(self, loss_fn: Callable[[], Any], parameters: Parameters) -> Any:
        group = self.groups[id(parameters.flat)]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            flat = group.variable.read_value()
            tape.watch(flat)
            group.bind(flat)
            loss, aux = loss_fn()
        gradient = tape.gradient(loss, flat, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return loss, aux, gradient
