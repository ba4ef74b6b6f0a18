"""Assembly: what it finds out, and what it says when it can't."""

import copy

import numpy as np
import pytest

from rlcore.assembly import assemble
from rlcore.component import Component, Normal, Parameters, Uniform, api, frozen_copy
from rlcore.components.layers import Conv2D, Dense, Embedding
from rlcore.components.networks import MLP, Sequential
from rlcore.errors import BuildError, NotBuiltError
from rlcore.specs import TensorSpec
from rlcore.testing import ComponentTest

X = {"__call__": {"x": TensorSpec(("B", 4))}}


class Twice(Component):
    """One layer under two names."""

    def __init__(self):
        super().__init__()
        self.first = Dense(4)
        self.second = self.first

    @api
    def __call__(self, x):
        return self.second(self.first(x))


def test_named_axes_follow_the_probe_and_other_lengths_are_fixed():
    class Fold(Component):
        @api
        def __call__(self, x):
            return {
                "folded": self.ops.reshape(x, (-1, 3)),
                "mean": self.ops.mean(x, 0),
                "swapped": self.ops.permute_dims(x, (1, 0, 2)),
            }

    graph = assemble(Fold(), {"__call__": {"x": TensorSpec(("T", "B", 3))}})
    out = graph.apis["__call__"].outputs
    assert out == {
        "folded": TensorSpec(("T*B", 3)),
        "mean": TensorSpec(("B", 3)),
        "swapped": TensorSpec(("B", "T", 3)),
    }


@pytest.mark.parametrize("width", [5, 7, 11, 13, 17, 19, 23])
def test_a_width_equal_to_a_probe_length_stays_a_width(width):
    graph = assemble(MLP([width, 23, 5]), {"__call__": {"x": TensorSpec(("B", width))}})
    shapes = [v.shape for v in graph.variables if v.path.endswith("kernel")]
    assert shapes == [(width, width), (width, 23), (23, 5)]
    assert graph.apis["__call__"].outputs == TensorSpec(("B", 5))


def test_a_width_equal_to_a_probe_length_that_only_shows_inside():
    class Widen(Component):  # 5 and 7, the first probe lengths, are nowhere in a spec or an attribute
        def __init__(self):
            super().__init__()
            self.layer = Dense(3)

        @api
        def __call__(self, x):
            return self.layer(self.ops.concat([x, x[:, :1]], -1))

    for width in range(2, 25):
        graph = assemble(Widen(), {"__call__": {"x": TensorSpec(("B", width))}})
        assert graph.nodes["layer"].variables[0].shape == (width + 1, 3)


def test_the_users_component_stays_as_it_was():
    network = MLP([3])
    before = copy.deepcopy(vars(network.layers[0]))
    assemble(network, X)
    assert vars(network.layers[0]) == before and type(network) is MLP


def test_shared_component_has_one_set_of_variables():
    graph = assemble(Twice(), X)
    assert [v.path for v in graph.variables] == ["first.kernel", "first.bias"]
    assert graph.nodes["first"].aliases == ["second"]
    [edge] = graph.edges
    assert (edge.callee, edge.count) == ("first", 2)


def test_shared_component_acts_the_same_everywhere(build):
    test = ComponentTest(Twice(), X, **build)
    x, v = np.ones((2, 4), np.float32), test.variables
    once = x @ v["first.kernel"] + v["first.bias"]
    test.check(x, expected=once @ v["first.kernel"] + v["first.bias"])


def test_frozen_copy_starts_equal_and_is_not_trained():
    class Pair(Component):
        def __init__(self):
            super().__init__()
            self.online = MLP([3])
            self.target = frozen_copy(self.online)

        @api
        def __call__(self, x):
            return self.online(x), self.target(x)

    test = ComponentTest(Pair(), X)
    online, target = test.call(np.ones((2, 4), np.float32))
    np.testing.assert_array_equal(online, target)
    assert [v.trainable for v in test.graph.variables] == [True, True, False, False]
    assert [e.path for e in test.executable.get_weights().manifest] == [
        "online.layers.0.kernel",
        "online.layers.0.bias",
    ]


def test_initial_values_depend_on_seed_and_path_alone():
    small, large = MLP([3]), Sequential(MLP([3]), Dense(2))
    a = ComponentTest(small, X, seed=1).variables["layers.0.kernel"]
    assert not np.array_equal(a, ComponentTest(small, X, seed=2).variables["layers.0.kernel"])
    np.testing.assert_array_equal(a, ComponentTest(MLP([3, 9]), X, seed=1).variables["layers.0.kernel"])
    assert "layers.0.layers.0.kernel" in ComponentTest(large, X, seed=1).variables


def test_only_the_variables_that_the_apis_reach_exist():
    class TwoParts(Component):
        def __init__(self):
            super().__init__()
            self.policy, self.critic = Dense(2), Dense(1)

        @api
        def act(self, x):
            return self.policy(x)

        @api
        def value(self, x):
            return self.critic(x)

    graph = assemble(TwoParts(), {"act": {"x": TensorSpec(("B", 4))}})
    assert {v.path for v in graph.variables} == {"policy.kernel", "policy.bias"}


class Noisy(Component):
    def __init__(self):
        super().__init__()
        self.size = 3
        self.inner = Jitter()

    @api(noise={"u": Uniform("B", "size")})
    def __call__(self, x, *, u):
        return self.inner(x) - self.inner(x), u


class Jitter(Component):
    @api(noise={"n": Normal("B")})
    def __call__(self, x, *, n):
        return n


def test_noise_is_an_input_of_the_root_api_one_for_each_call(build):
    test = ComponentTest(Noisy(), {"x": TensorSpec(("B", 4))}, **build)
    sites = test.graph.apis["__call__"].noise
    assert [(n.path, n.name, n.call, n.shape) for n in sites] == [
        ("", "u", 0, ("B", 3)), ("inner", "n", 0, ("B",)), ("inner", "n", 1, ("B",)),
    ]  # fmt: skip
    difference, u = test.call(np.zeros((50, 4), np.float32))
    assert np.abs(difference).min() > 0 and u.shape == (50, 3) and 0 <= u.min() < u.max() < 1
    test.check_against_numpy()


# -- errors --------------------------------------------------------------------------------------
def fails(component, inputs):
    with pytest.raises(BuildError) as caught:
        assemble(component, inputs)
    return caught.value


def test_wrong_rank():
    e = fails(Sequential(Conv2D(8, 3)), X)
    assert (e.path, e.api, e.given) == ("layers.0", "__call__", "x: float32[B, 4]")
    assert "rank 4" in e.expected and "rank 2" in e.reason
    assert "component 'layers.0' (Conv2D), api '__call__'" in str(e)


def test_wrong_dtype():
    e = fails(Sequential(Dense(2), Embedding(3, 2)), X)
    assert (e.path, e.given, e.expected) == ("layers.1", "x: float32[B, 2]", "an integer dtype")


def test_discrete_where_a_box_is_needed():
    e = fails(Sequential(MLP([3])), {"__call__": {"x": TensorSpec(("B",), "int64", 0, 3, "discrete")}})
    assert e.path == "layers.0.layers.0" and e.given == "x: int64[B]" and "OneHot" in e.expected


def test_wrong_dict_key():
    class Reads(Component):
        @api
        def __call__(self, x):
            return x["velocity"]

    e = fails(Sequential(Reads()), {"__call__": {"x": {"position": TensorSpec(("B", 2))}}})
    assert e.path == "layers.0" and "'velocity'" in e.reason
    assert e.given == "x: {'position': float32[B, 2]}"
    assert "velocity" in e.expected


def test_variable_outside_build():
    class Late(Component):
        @api
        def __call__(self, x):
            self.w = self.variable("w", (3,))
            return x

    e = fails(Sequential(Late()), X)
    assert e.path == "layers.0" and "outside build()" in e.reason and "'w'" in e.reason
    with pytest.raises(BuildError, match="outside build"):
        Dense(2).variable("w", (3,))


def test_api_called_before_the_build():
    with pytest.raises(NotBuiltError) as caught:
        Dense(2)(np.ones((8, 4), np.float32))
    e = caught.value
    assert (e.component, e.api, e.given) == ("Dense", "__call__", "x: float32[8, 4]")
    assert "before the build" in str(e)


def test_noise_api_called_before_the_build():
    with pytest.raises(NotBuiltError, match="before the build"):
        Jitter()(np.ones((8, 4), np.float32))


def test_mismatched_shapes_inside_name_the_component():
    class Adds(Component):
        def build(self, x):
            self.w = self.variable("w", (3,))

        @api
        def __call__(self, x):
            return x + self.w

    e = fails(Sequential(Adds()), X)
    assert e.path == "layers.0" and "broadcast" in e.reason and e.given == "x: float32[B, 4]"


def test_variable_with_a_named_axis():
    class Bad(Component):
        def build(self, x):
            self.w = self.variable("w", x.shape)

        @api
        def __call__(self, x):
            return x

    assert "varies from call to call" in fails(Bad(), X).reason


def test_unknown_api_and_wrong_arguments():
    with pytest.raises(BuildError, match="Did you mean 'update'"):

        class Learns(Component):
            @api
            def update(self, x):
                return x

        assemble(Learns(), {"updat": {"x": TensorSpec(("B",))}})
    e = fails(Dense(2), {"__call__": {"y": TensorSpec(("B", 2))}})
    assert (e.given, e.expected) == ("y", "x")


def test_loss_must_be_a_scalar_and_aux():
    from rlcore.components.optimizers import SGD

    class Bad(Component):
        def __init__(self):
            super().__init__()
            self.model, self.optimizer = Dense(1), SGD()
            self.parameters = Parameters(self.model)

        @api
        def update(self, x, progress):
            return self.optimizer.minimize(lambda: (self.model(x), {}), self.parameters, progress)

    e = fails(Bad(), {"update": {"x": TensorSpec(("B", 4)), "progress": TensorSpec(())}})
    assert e.path == "optimizer" and e.expected == "(scalar loss, aux)"


def test_frozen_copy_without_its_source_in_the_tree():
    class Orphan(Component):
        def __init__(self):
            super().__init__()
            self.target = frozen_copy(Dense(2))

        @api
        def __call__(self, x):
            return self.target(x)

    assert "not in the tree" in fails(Orphan(), X).reason


def test_partly_overlapping_parameters_are_refused():
    from rlcore.layout import Instance

    class Overlap(Component):
        def __init__(self):
            super().__init__()
            self.a, self.b = Dense(2), Dense(2)
            self.both, self.one = Parameters(self.a, self.b), Parameters(self.a)

        @api
        def __call__(self, x):
            return self.a(x) + self.b(x)

    graph = assemble(Overlap(), X)
    with pytest.raises(BuildError, match="nothing in common"):
        Instance(graph.root)
