"""TensorSpec, trees of them, and Gymnasium spaces."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from rlcore.errors import SpecError
from rlcore.specs import TensorSpec, describe, from_space, sample, spec_leaves, to_space, with_axes

shapes = st.lists(st.integers(1, 3), max_size=3).map(tuple)
leaves = st.one_of(
    st.builds(lambda s, d: spaces.Box(-2, 5, s, d), shapes, st.sampled_from([np.float32, np.float64, np.int32])),
    st.builds(lambda s: spaces.Box(0, 255, s, np.uint8), shapes),
    st.builds(lambda s: spaces.Box(-np.inf, np.inf, s, np.float32), shapes),
    st.builds(lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 9), st.integers(-3, 3)),
    st.builds(lambda n: spaces.MultiDiscrete(n), st.lists(st.integers(1, 5), min_size=1, max_size=3)),
    st.builds(lambda n: spaces.MultiBinary(n), st.integers(1, 4)),
    st.builds(lambda n: spaces.MultiBinary([n, 2]), st.integers(1, 4)),
)
trees = st.recursive(
    leaves,
    lambda s: st.one_of(
        st.dictionaries(st.sampled_from("abc"), s, min_size=1, max_size=3).map(spaces.Dict),
        st.lists(s, min_size=1, max_size=3).map(spaces.Tuple),
    ),
    max_leaves=6,
)


@given(trees)
def test_a_space_survives_the_way_there_and_back(space):
    assert to_space(from_space(space)) == space


@given(trees, st.integers(0, 1000))
def test_a_sample_lies_in_the_space(space, seed):
    assert space.contains(sample(from_space(space), np.random.default_rng(seed), {}))


@given(trees, st.integers(1, 5))
def test_batches_have_the_axis_everywhere(space, size):
    spec = with_axes(from_space(space), "B")
    assert all(leaf.axes[0] == "B" for leaf in spec_leaves(spec))
    batch = sample(spec, np.random.default_rng(0), {"B": size})
    gymnasium.vector.utils.batch_space(space, size)
    for leaf, array in zip(spec_leaves(spec), spec_leaves_of(batch), strict=True):
        leaf.check(array)


def spec_leaves_of(tree):
    import optree

    return optree.tree_leaves(tree)


@given(leaves)
def test_equality_and_hash(space):
    a, b = from_space(space), from_space(space)
    assert a == b and hash(a) == hash(b) and a != a.with_axes("B")


@pytest.mark.parametrize(
    "space", [spaces.Text(5), spaces.Graph(spaces.Discrete(2), None), spaces.Sequence(spaces.Discrete(2))]
)
def test_other_spaces_are_refused_by_name(space):
    with pytest.raises(SpecError, match=type(space).__name__) as caught:
        from_space(spaces.Dict({"x": space}))
    assert "MultiBinary" in caught.value.expected


def test_reads_well():
    assert str(TensorSpec(("T", "B", 4))) == "float32[T, B, 4]"
    assert str(TensorSpec(("B",), "int64", 0, 3, "discrete")) == "int64[B] in 0..3"
    assert describe({"a": (TensorSpec((2,)),)}) == "{'a': (float32[2])}"


def test_check_says_what_came():
    with pytest.raises(SpecError, match=r"obs: got float64\[3, 5\], expected float32\[B, 4\]"):
        TensorSpec(("B", 4)).check(np.zeros((3, 5)), "obs")


@pytest.mark.parametrize(
    "bad", [{"shape": (-1,)}, {"shape": (2.5,)}, {"shape": (), "dtype": "complex64"}, {"shape": (), "dtype": "fluffy"}]
)
def test_bad_specs(bad):
    with pytest.raises(SpecError):
        TensorSpec(**bad)


def test_immutable():
    spec = TensorSpec((2,), "float32", np.zeros(2), np.ones(2))
    with pytest.raises(AttributeError):
        spec.shape = (3,)
    with pytest.raises(ValueError):
        spec.low[0] = 5
