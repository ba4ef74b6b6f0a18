"""Random small component trees on random data give NumPy's numbers (differential testing, with hypothesis)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlcore.assembly import assemble
from rlcore.backends.numpy.builder import NumpyGraphBuilder
from rlcore.component import Array, Component, Parameters, api
from rlcore.component_specs import from_spec
from rlcore.components.layers import ACTIVATIONS
from rlcore.plugins.discovery import GRAPH_BUILDER
from rlcore.specs import TensorSpec, sample
from rlcore.testing.check_graph_builders import builder_of, close
from rlcore.testing.checks import Subject, check

EXAMPLES = {"eager": 25, "static": 2}  # each tree is compiled anew in a static mode


class Tree(Component):
    """A network, and the gradient of a loss on what it gives."""

    def __init__(self, network: Component) -> None:
        super().__init__()
        self.network = network
        self.parameters = Parameters(network)

    @api
    def outputs(self, x: Array) -> Array:
        return self.network(x)  # type: ignore[operator]

    @api
    def gradient(self, x: Array) -> Array:
        def loss_fn() -> tuple[Array, Any]:
            return self.ops.mean(self.ops.square(self.network(x) - 0.5)), {}  # type: ignore[operator]

        _, _, gradient = self.ops.value_and_grad(loss_fn, self.parameters)
        return gradient


def trees(st: Any) -> Any:
    """Strategy of (spec of a network, spec of its input)."""
    activation = st.sampled_from(ACTIVATIONS)
    dense = st.fixed_dictionaries(
        {"name": st.just("dense"), "units": st.integers(1, 9), "activation": activation},
    )
    # A norm over one or two features is all steps, where rounding decides: those have at least four.
    mlp = st.fixed_dictionaries({
        "name": st.just("mlp"),
        "hidden": st.lists(st.integers(4, 9), min_size=1, max_size=3),
        "activation": activation,
        "layer_norm": st.booleans(),
    })  # fmt: skip
    wide = st.fixed_dictionaries({"name": st.just("dense"), "units": st.integers(4, 9), "activation": activation})
    normed = st.tuples(wide, st.just("layer_norm"))
    tail = st.lists(st.one_of(dense.map(lambda d: (d,)), mlp.map(lambda m: (m,)), normed), min_size=1, max_size=3)
    conv = st.fixed_dictionaries({
        "name": st.just("conv2d"),
        "filters": st.integers(1, 4),
        "kernel_size": st.integers(1, 3),
        "stride": st.integers(1, 2),
        "padding": st.sampled_from(["valid", "same"]),
        "activation": activation,
    })  # fmt: skip
    heads = st.one_of(
        st.tuples(st.just(()), st.integers(1, 6).map(lambda n: TensorSpec(("B", n), "float32", -3.0, 3.0))),
        st.tuples(
            st.one_of(
                st.just(({"name": "one_hot", "depth": 5},)),
                st.integers(1, 6).map(lambda n: ({"name": "embedding", "num_values": 5, "size": n},)),
            ),
            st.just(TensorSpec(("B",), "int64", 0, 4)),
        ),
        st.tuples(
            conv.map(lambda c: ("scale_image", c, "flatten")), st.just(TensorSpec(("B", 6, 5, 2), "uint8", 0, 255))
        ),
    )

    def join(drawn: Any) -> tuple[Any, TensorSpec]:
        (head, spec), parts = drawn
        return {"name": "sequential", "layers": [*head, *(layer for part in parts for layer in part)]}, spec

    return st.tuples(heads, tail).map(join)


@check("differential/random-trees", GRAPH_BUILDER)
def random_trees(subject: Subject) -> None:
    try:
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import strategies as st
    except ImportError as e:
        raise RuntimeError("this check needs hypothesis: pip install 'rlcore[testing]'") from e
    builder = builder_of(subject)

    def compare(mode: str) -> None:
        @settings(
            max_examples=EXAMPLES[mode],
            derandomize=True,
            database=None,
            deadline=None,
            # No shrinking: it takes hundreds of builds, where each is compiled that is minutes.
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(trees(st), st.integers(1, 9), st.integers(0, 2**20))
        def run(tree: Any, batch: int, seed: int) -> None:
            network, spec = tree
            apis = ["outputs", "gradient"] if builder.capabilities.gradients else ["outputs"]
            graph = assemble(Tree(from_spec("network", network)), {name: {"x": spec} for name in apis})
            ours, reference = builder.build(graph, mode=mode, seed=seed), NumpyGraphBuilder().build(graph, seed=seed)
            x = sample(spec, np.random.default_rng(seed), {"B": batch})
            for name in apis:
                what = f"{name} of {network} on {spec}, batch {batch}, seed {seed} ({mode})"
                close(ours(name, x), reference(name, x), what, 1e-4)

        run()

    for mode in builder.capabilities.modes:
        compare(mode)
