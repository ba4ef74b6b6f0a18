"""What is rl_torch's own: overrides, graph breaks, real tensors inside components, dtypes at the border."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from rl_torch.builder import TorchGraphBuilder
from rl_torch.overrides import OVERRIDES
from rlcore.assembly import assemble
from rlcore.component import Component, Parameters, api
from rlcore.components.layers import Dense
from rlcore.components.networks import Sequential
from rlcore.components.optimizers import Adam, AdamW
from rlcore.errors import BuildError
from rlcore.specs import TensorSpec

X = {"__call__": {"x": TensorSpec(("B", 4))}}


class Step(Component):
    def __init__(self, optimizer):
        super().__init__()
        self.model, self.optimizer = Dense(3), optimizer
        self.parameters = Parameters(self.model)

    @api
    def update(self, x, progress):
        return self.optimizer.minimize(
            lambda: (self.ops.mean(self.ops.square(self.model(x))), {}), self.parameters, progress
        )[0]


@pytest.mark.parametrize("optimizer", [Adam, AdamW])
def test_an_override_equals_what_it_replaces(optimizer):
    assert (optimizer, "step") in OVERRIDES
    graph = assemble(Step(optimizer([1e-2, 1e-3])), {"update": {"x": TensorSpec(("B", 4)), "progress": TensorSpec(())}})

    class Plain(TorchGraphBuilder):
        overrides = {}

    fused, plain = TorchGraphBuilder().build(graph), Plain().build(graph)
    assert "step" in vars(fused.instance.components["optimizer"])
    assert "step" not in vars(plain.instance.components["optimizer"])
    rng = np.random.default_rng(0)
    for i in range(20):
        x, progress = rng.standard_normal((8, 4)).astype(np.float32), np.array(i / 20, np.float32)
        fused("update", x, progress)
        plain("update", x, progress)
    a, b = fused.get_state(), plain.get_state()
    for path in b:
        np.testing.assert_allclose(a[path], b[path], rtol=1e-4, atol=1e-6, err_msg=path)


class Branches(Component):
    """Looks at a value: fine when Python runs each time, impossible in one graph."""

    @api
    def __call__(self, x):
        return x * 2 if self.ops.sum(x) > 0 else x


def test_a_graph_break_is_a_build_error_that_names_the_api():
    graph = assemble(Sequential(Branches()), X)
    TorchGraphBuilder().build(graph, mode="eager")("__call__", np.ones((2, 4), np.float32))
    with pytest.raises(BuildError, match="can't be in a static graph") as caught:
        TorchGraphBuilder().build(graph, mode="static")("__call__", np.ones((2, 4), np.float32))
    assert caught.value.api == "__call__"


def test_eager_components_see_real_tensors_and_keep_no_wrapper():
    seen = []

    class Looks(Component):
        @api
        def __call__(self, x):
            seen.append(x)
            return x

    executable = TorchGraphBuilder().build(assemble(Sequential(Looks()), X))
    seen.clear()
    executable("__call__", np.ones((2, 4), np.float32))
    assert len(seen) == 1 and type(seen[0]) is torch.Tensor
    looks = executable.instance.components["layers.0"]
    assert type(looks) is Looks and Looks.__call__.__name__ == "__call__" and not hasattr(Looks.__call__, "__wrapped__")


def test_trained_variables_are_views_of_one_buffer():
    executable = TorchGraphBuilder().build(assemble(Sequential(Dense(3), Dense(2)), X))
    storages = {getattr(s.component, s.attribute).untyped_storage().data_ptr() for s in executable.instance.slots}
    assert len(storages) == 1


def test_a_missing_compiler_is_named(tmp_path):
    code = """
import numpy as np
from rl_torch.builder import TorchGraphBuilder
from rlcore.assembly import assemble
from rlcore.components.layers import Dense
from rlcore.errors import ConfigError
from rlcore.specs import TensorSpec
graph = assemble(Dense(3, activation="tanh"), {"__call__": {"x": TensorSpec(("B", 4))}})
try:
    TorchGraphBuilder().build(graph, mode="static")("__call__", np.ones((2, 4), np.float32))
except ConfigError as e:
    print(e)"""
    env = {**os.environ, "CXX": "/nonexistent", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    assert "finds no C++ compiler" in done.stdout and "mode 'eager'" in done.stdout, done.stderr[-800:]
