"""ComponentTest: build one component alone from input specs, call its apis, compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import optree

from rlcore.assembly import assemble
from rlcore.component import Component, apis_of
from rlcore.plugins.session import make_graph_builder
from rlcore.specs import SpecTree, sample, spec_leaves

Tree = Any


class ComponentTest:
    """A component built alone, on any backend and mode::

        test = ComponentTest(Dense(2), {"x": TensorSpec(("B", 3))}, backend="torch", mode="static")
        test.check(x, expected=y)
        test.check_against_numpy()

    :param inputs: specs by argument of ``__call__``, or api -> specs by argument.
    :raises BuildError: as any build.
    """

    def __init__(
        self,
        component: Component,
        inputs: Mapping[str, Any],
        *,
        backend: Any = "numpy",
        mode: str | None = None,
        seed: int = 0,
    ) -> None:
        known = apis_of(type(component))
        self.inputs: dict[str, Mapping[str, SpecTree]] = (
            dict(inputs) if inputs and all(name in known for name in inputs) else {"__call__": inputs}
        )
        self.graph = assemble(component, self.inputs)
        self.seed = seed
        self.executable = make_graph_builder(backend).build(self.graph, mode=mode, seed=seed)

    def call(self, *args: Tree, api: str = "__call__") -> Tree:
        """NumPy trees in and out. Noise comes from the build's seed."""
        return self.executable(api, *args)

    def check(self, *args: Tree, expected: Tree, api: str = "__call__", rtol: float = 1e-5, atol: float = 1e-6) -> Tree:
        """Call, and compare values and shapes.

        :raises AssertionError: shows both.
        """
        out = self.call(*args, api=api)
        same(out, expected, rtol=rtol, atol=atol, what=f"{type(self.graph.root).__name__}.{api}")
        return out

    def check_against_numpy(
        self, *args: Tree, api: str = "__call__", length: int = 6, rtol: float = 1e-5, atol: float = 1e-6
    ) -> Tree:
        """Call here and on a fresh NumPy build of the same seed and variables; compare outputs and all variables after.

        :param args: inputs; sampled from the specs, with every named axis of ``length``, if there are none.
        :return: the inputs that were used.
        """
        if not args:
            specs: Any = tuple(self.inputs[api].values())
            axes = {axis for leaf in spec_leaves(specs) for axis in leaf.axes if axis}
            args = sample(specs, np.random.default_rng(self.seed), dict.fromkeys(axes, length))
        reference = make_graph_builder("numpy").build(self.graph, seed=self.seed)
        reference.set_state(self.variables)
        reference.rng.bit_generator.state = self.executable.rng.bit_generator.state
        name = f"{type(self.graph.root).__name__}.{api}"
        same(self.call(*args, api=api), reference(api, *args), rtol=rtol, atol=atol, what=name)
        same(self.variables, reference.get_state(), rtol=rtol, atol=atol, what=f"variables after {name}")
        return args

    @property
    def variables(self) -> dict[str, np.ndarray]:
        """Every variable by path, copied."""
        return self.executable.get_state()


def same(given: Tree, expected: Tree, *, rtol: float, atol: float, what: str) -> None:
    """Two trees have the same structure, shapes and (nearly) values."""
    a, structure = optree.tree_flatten(given)
    b, expected_structure = optree.tree_flatten(expected)
    assert len(a) == len(b), f"{what}: gave {structure}, expected {expected_structure}"
    for x, y in zip(a, b, strict=True):
        assert np.shape(x) == np.shape(y), f"{what}: gave shape {np.shape(x)}, expected {np.shape(y)}"
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol, err_msg=what)
