"""Epsilon-greedy and the losses."""

import numpy as np
import pytest

from rlcore.component import Component, api
from rlcore.components import losses
from rlcore.components.exploration import EpsilonGreedy
from rlcore.specs import TensorSpec
from rlcore.testing import ComponentTest

INPUTS = {"q_values": TensorSpec(("B", 3)), "progress": TensorSpec(())}
Q = np.random.default_rng(0).standard_normal((4000, 3)).astype(np.float32)


def test_epsilon_greedy(build):
    test = ComponentTest(EpsilonGreedy([1.0, 0.0]), INPUTS, **build)
    best = Q.argmax(-1)
    test.check(Q, np.array(1, np.float32), expected=best)
    random = test.call(Q, np.array(0, np.float32))
    assert np.abs(np.bincount(random, minlength=3) / len(Q) - 1 / 3).max() < 0.04
    half = test.call(Q, np.array(0.5, np.float32))
    assert abs((half == best).mean() - (0.5 + 0.5 / 3)) < 0.04
    assert half.dtype == np.int64


def test_epsilon_greedy_same_noise_same_actions(build):
    ComponentTest(EpsilonGreedy(0.5), INPUTS, **build).check_against_numpy(Q[:50], np.array(0, np.float32))


class Losses(Component):
    def __init__(self, delta):
        super().__init__()
        self.delta = delta

    @api
    def __call__(self, error):
        return {"huber": losses.huber(self.ops, error, self.delta), "squared": losses.squared(self.ops, error)}


@pytest.mark.parametrize("delta", [1.0, 0.5])
def test_losses(build, delta):
    test = ComponentTest(Losses(delta), {"error": TensorSpec(("B",))}, **build)
    e = np.array([-3.0, -0.5, 0.0, 0.25, 1.0, 2.0], np.float32)
    huber = np.where(np.abs(e) <= delta, e**2 / 2, delta * (np.abs(e) - delta / 2))
    test.check(e, expected={"huber": huber.astype(np.float32), "squared": e**2 / 2})
