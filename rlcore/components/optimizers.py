"""Optimizers, written once over Ops on one flat vector of parameters.

``minimize`` is the one place where gradients are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rlcore.component import Array, Component, Parameters, api
from rlcore.components.schedules import as_schedule
from rlcore.specs import TensorSpec


class Optimizer(Component):
    """Base: gradient, clipping, learning rate; sub-classes write the step.

    :param learning_rate: a schedule over the run's progress.
    :param max_grad_norm: gradients of a larger global L2 norm are scaled down to it (Pascanu et al. 2013).
    """

    def __init__(self, learning_rate: Any = 1e-3, *, max_grad_norm: float | None = None) -> None:
        super().__init__()
        self.learning_rate = as_schedule(learning_rate)
        self.max_grad_norm = max_grad_norm

    @api
    def minimize(
        self, loss_fn: Callable[[], tuple[Array, Any]], parameters: Parameters, progress: Array
    ) -> tuple[Array, Any, Array]:
        """One step down the gradient of ``loss_fn() -> (scalar loss, aux)``.

        :return: loss float32 [], aux, and the gradient's norm before clipping, float32 [].
        """
        loss, aux, gradient = self.ops.value_and_grad(loss_fn, parameters)
        norm = self.ops.sqrt(self.ops.sum(self.ops.square(gradient)))
        if self.max_grad_norm is not None:
            gradient = gradient * self.ops.minimum(self.max_grad_norm / (norm + 1e-6), 1.0)
        self.step(parameters.flat, gradient, self.learning_rate(progress))
        return loss, aux, norm

    @api
    def step(self, flat: Array, gradient: Array, learning_rate: Array) -> Array:
        """Change ``flat`` (float32 [N]) in place. A backend may override it where it has a fused one."""
        raise NotImplementedError


class SGD(Optimizer):
    """v <- momentum v + g; x <- x - lr v (Sutskever et al. 2013, in PyTorch's form).

    :param nesterov: step along g + momentum v instead.
    """

    def __init__(
        self,
        learning_rate: Any = 1e-2,
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        max_grad_norm: float | None = None,
    ) -> None:
        super().__init__(learning_rate, max_grad_norm=max_grad_norm)
        self.momentum, self.nesterov = momentum, nesterov

    def build(self, flat: TensorSpec) -> None:  # type: ignore[override]
        if self.momentum:
            self.velocity = self.variable("velocity", flat.shape, trainable=False)

    @api
    def step(self, flat: Array, gradient: Array, learning_rate: Array) -> Array:
        direction = gradient
        if self.momentum:
            velocity = self.momentum * self.velocity + gradient
            self.ops.assign(self.velocity, velocity)
            direction = gradient + self.momentum * velocity if self.nesterov else velocity
        self.ops.assign(flat, flat - learning_rate * direction)
        return learning_rate


class RMSProp(Optimizer):
    """Tieleman & Hinton 2012; ``centered`` as Graves 2013 and Mnih et al. 2015. Epsilon is added outside the root."""

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        *,
        decay: float = 0.99,
        momentum: float = 0.0,
        epsilon: float = 1e-8,
        centered: bool = False,
        max_grad_norm: float | None = None,
    ) -> None:
        super().__init__(learning_rate, max_grad_norm=max_grad_norm)
        self.decay, self.momentum, self.epsilon, self.centered = decay, momentum, epsilon, centered

    def build(self, flat: TensorSpec) -> None:  # type: ignore[override]
        self.mean_square = self.variable("mean_square", flat.shape, trainable=False)
        if self.centered:
            self.mean = self.variable("mean", flat.shape, trainable=False)
        if self.momentum:
            self.velocity = self.variable("velocity", flat.shape, trainable=False)

    @api
    def step(self, flat: Array, gradient: Array, learning_rate: Array) -> Array:
        ops = self.ops
        mean_square = self.decay * self.mean_square + (1.0 - self.decay) * ops.square(gradient)
        ops.assign(self.mean_square, mean_square)
        if self.centered:
            mean = self.decay * self.mean + (1.0 - self.decay) * gradient
            ops.assign(self.mean, mean)
            mean_square = ops.maximum(mean_square - ops.square(mean), 0.0)
        direction = gradient / (ops.sqrt(mean_square) + self.epsilon)
        if self.momentum:
            direction = self.momentum * self.velocity + direction
            ops.assign(self.velocity, direction)
        ops.assign(flat, flat - learning_rate * direction)
        return learning_rate


class Adam(Optimizer):
    """Kingma & Ba 2015, algorithm 1 (epsilon outside the root of the corrected moment).

    Default values are the paper's.
    """

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        *,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        max_grad_norm: float | None = None,
    ) -> None:
        super().__init__(learning_rate, max_grad_norm=max_grad_norm)
        self.beta_1, self.beta_2, self.epsilon, self.weight_decay = beta_1, beta_2, epsilon, 0.0

    def build(self, flat: TensorSpec) -> None:  # type: ignore[override]
        self.first_moment = self.variable("first_moment", flat.shape, trainable=False)
        self.second_moment = self.variable("second_moment", flat.shape, trainable=False)
        self.count = self.variable("count", (), trainable=False)

    @api
    def step(self, flat: Array, gradient: Array, learning_rate: Array) -> Array:
        ops = self.ops
        count = self.count + 1.0
        first = self.first_moment + (1.0 - self.beta_1) * (gradient - self.first_moment)
        second = self.beta_2 * self.second_moment + (1.0 - self.beta_2) * ops.square(gradient)
        ops.assign(self.count, count)
        ops.assign(self.first_moment, first)
        ops.assign(self.second_moment, second)
        # In float64: 1 - 0.999 in float32 would lose four digits.
        steps = ops.astype(count, "float64")
        correction_1 = ops.astype(1.0 - ops.exp(steps * _log(self.beta_1)), "float32")
        correction_2 = ops.astype(1.0 - ops.exp(steps * _log(self.beta_2)), "float32")
        size = learning_rate / correction_1
        change = size * first / (ops.sqrt(second) / ops.sqrt(correction_2) + self.epsilon)
        if self.weight_decay:
            change = change + learning_rate * self.weight_decay * flat
        ops.assign(flat, flat - change)
        return learning_rate


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019): x <- x - lr weight_decay x beside Adam's step."""

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        *,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 1e-2,
        max_grad_norm: float | None = None,
    ) -> None:
        super().__init__(learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, max_grad_norm=max_grad_norm)
        self.weight_decay = weight_decay


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -1e9
