"""What is rl_tf's own: no Keras, graph errors, real tensors inside components."""

import numpy as np
import pytest
import tensorflow as tf

from rl_tf.builder import TfGraphBuilder
from rlcore.assembly import assemble
from rlcore.component import Component, api
from rlcore.components.networks import Sequential
from rlcore.errors import BuildError
from rlcore.specs import TensorSpec

X = {"__call__": {"x": TensorSpec(("B", 4))}}


class Branches(Component):
    """Looks at a value: fine when Python runs each time, impossible in one graph."""

    @api
    def __call__(self, x):
        return x * 2 if self.ops.sum(x) > 0 else x


def test_a_python_branch_on_a_tensor_is_a_build_error_that_names_the_api():
    graph = assemble(Sequential(Branches()), X)
    TfGraphBuilder().build(graph, mode="eager")("__call__", np.ones((2, 4), np.float32))
    with pytest.raises(BuildError, match="can't be in a static graph") as caught:
        TfGraphBuilder().build(graph, mode="static")("__call__", np.ones((2, 4), np.float32))
    assert caught.value.api == "__call__"


def test_eager_components_see_real_tensors():
    seen = []

    class Looks(Component):
        @api
        def __call__(self, x):
            seen.append(x)
            return x

    executable = TfGraphBuilder().build(assemble(Sequential(Looks()), X), mode="eager")
    seen.clear()
    executable("__call__", np.ones((2, 4), np.float32))
    assert len(seen) == 1 and isinstance(seen[0], tf.Tensor) and hasattr(seen[0], "numpy")
