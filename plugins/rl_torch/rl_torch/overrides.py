"""Faster equals of single apis in eager mode, proved equal by the tests."""

from __future__ import annotations

from typing import Any

import torch

from rlcore.components.optimizers import Adam, AdamW


def adam_step(self: Adam, flat: Any, gradient: Any, learning_rate: Any) -> Any:
    """Adam in torch's one fused kernel: the elementwise form costs 10 % of an update at 256-256."""
    self.count += 1.0
    torch._fused_adam_(  # type: ignore[attr-defined]
        [flat], [gradient], [self.first_moment], [self.second_moment], [], [self.count],
        lr=learning_rate, beta1=self.beta_1, beta2=self.beta_2, weight_decay=0.0, eps=self.epsilon,
        amsgrad=False, maximize=False,
    )  # fmt: skip
    return learning_rate


def adamw_step(self: AdamW, flat: Any, gradient: Any, learning_rate: Any) -> Any:
    """AdamW likewise."""
    self.count += 1.0
    torch._fused_adamw_(  # type: ignore[attr-defined]
        [flat], [gradient], [self.first_moment], [self.second_moment], [], [self.count],
        lr=learning_rate, beta1=self.beta_1, beta2=self.beta_2, weight_decay=self.weight_decay, eps=self.epsilon,
        amsgrad=False, maximize=False,
    )  # fmt: skip
    return learning_rate


OVERRIDES = {(Adam, "step"): adam_step, (AdamW, "step"): adamw_step}
