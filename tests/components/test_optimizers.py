"""Optimizers: against torch.optim, and equal on every backend; clipping; schedules inside minimize."""

import numpy as np
import pytest
import torch

from rlcore.component import Component, Parameters, api
from rlcore.component_specs import from_spec
from rlcore.components.layers import Dense
from rlcore.components.optimizers import SGD, Adam, AdamW, RMSProp
from rlcore.errors import ConfigError
from rlcore.specs import TensorSpec
from rlcore.testing import ComponentTest

rng = np.random.default_rng(2)


class Regression(Component):
    """Least squares on one Dense layer."""

    def __init__(self, optimizer):
        super().__init__()
        self.model, self.optimizer = Dense(2), optimizer
        self.parameters = Parameters(self.model)

    @api
    def update(self, x, y, progress):
        def loss_fn():
            error = self.model(x) - y
            return self.ops.mean(self.ops.square(error)), {"error": error}

        loss, aux, norm = self.optimizer.minimize(loss_fn, self.parameters, progress)
        return {"loss": loss, "norm": norm, **aux}


INPUTS = {"update": {"x": TensorSpec(("B", 3)), "y": TensorSpec(("B", 2)), "progress": TensorSpec(())}}
CASES = {
    "sgd": (lambda: SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "momentum": (lambda: SGD(0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "nesterov": (
        lambda: SGD(0.1, momentum=0.9, nesterov=True),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    ),
    "rmsprop": (lambda: RMSProp(0.01), lambda p: torch.optim.RMSprop(p, 0.01)),
    "rmsprop-centered": (
        lambda: RMSProp(0.01, centered=True, momentum=0.9, epsilon=1e-5),
        lambda p: torch.optim.RMSprop(p, 0.01, centered=True, momentum=0.9, eps=1e-5),
    ),
    "adam": (lambda: Adam(0.01), lambda p: torch.optim.Adam(p, 0.01)),
    "adamw": (lambda: AdamW(0.01, weight_decay=0.1), lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1)),
}


@pytest.mark.parametrize("case", CASES)
def test_five_steps_equal_torch(build, case):
    ours, theirs = CASES[case]
    test = ComponentTest(Regression(ours()), INPUTS, **build)
    start = test.variables
    kernel = torch.tensor(start["model.kernel"], requires_grad=True)
    bias = torch.tensor(start["model.bias"], requires_grad=True)
    optimizer = theirs([kernel, bias])
    for _ in range(5):
        x, y = rng.standard_normal((4, 3)).astype(np.float32), rng.standard_normal((4, 2)).astype(np.float32)
        loss = ((torch.tensor(x) @ kernel + bias - torch.tensor(y)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out = test.call(x, y, np.array(0, np.float32), api="update")
        np.testing.assert_allclose(out["loss"], loss.item(), rtol=1e-4)
    np.testing.assert_allclose(test.variables["model.kernel"], kernel.detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(test.variables["model.bias"], bias.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "optimizer", [SGD(0.1, momentum=0.9), RMSProp(0.01), Adam(0.01), AdamW(0.01)], ids=lambda o: type(o).__name__
)
def test_one_step_equals_numpy(build, optimizer):
    ComponentTest(Regression(optimizer), INPUTS, **build).check_against_numpy(api="update")


def test_global_norm_clipping(build):
    test = ComponentTest(Regression(SGD(1.0, max_grad_norm=0.5)), INPUTS, **build)
    before = test.variables
    x, y = 10 * np.ones((4, 3), np.float32), np.zeros((4, 2), np.float32)
    norm = test.call(x, y, np.array(0, np.float32), api="update")["norm"]
    after = test.variables
    step = np.concatenate([(after[k] - before[k]).ravel() for k in ("model.kernel", "model.bias")])
    assert norm > 0.5
    np.testing.assert_allclose(np.linalg.norm(step), 0.5, rtol=1e-4)


def test_a_small_gradient_is_not_scaled(build):
    clipped = ComponentTest(Regression(SGD(0.1, max_grad_norm=1e6)), INPUTS, **build)
    plain = ComponentTest(Regression(SGD(0.1)), INPUTS, **build)
    args = clipped.check_against_numpy(api="update")
    plain.call(*args, api="update")
    np.testing.assert_array_equal(clipped.variables["model.kernel"], plain.variables["model.kernel"])


def test_learning_rate_follows_progress(build):
    test = ComponentTest(Regression(SGD([1.0, 0.0])), INPUTS, **build)
    x, y = np.ones((4, 3), np.float32), np.ones((4, 2), np.float32)
    before = test.variables["model.kernel"]
    test.call(x, y, np.array(1, np.float32), api="update")
    np.testing.assert_array_equal(test.variables["model.kernel"], before)  # the rate is 0 at the end
    test.call(x, y, np.array(0, np.float32), api="update")
    assert not np.array_equal(test.variables["model.kernel"], before)


def test_unknown_names_and_options():
    with pytest.raises(ConfigError, match="Did you mean 'adam'"):
        from_spec("optimizer", "adm")
    with pytest.raises(ConfigError, match="beta1"):
        from_spec("optimizer", {"name": "adam", "beta1": 0.9})
