"""TensorSpec: shape, dtype and named axes of a tensor; trees of them; from and to Gymnasium spaces.

A shape entry is an int, or the name of an axis whose length may differ from call to call: ``"B"``
(batch), ``"T"`` (time), or any other name. Trees (dict, tuple, list) are nested plainly and mapped
with :mod:`optree`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from rlcore.errors import SpecError

Dim = int | str
SpecTree = Any  # TensorSpec, or a dict, tuple or list of SpecTree
Tree = Any  # arrays nested the same way
DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "bool")


def _frozen(value: Any) -> np.ndarray | None:
    if value is None:
        return None
    array = np.array(value)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False, repr=False)
class TensorSpec:
    """An immutable description of a tensor.

    :param shape: ints and axis names, e.g. ``("B", 4)``.
    :param dtype: NumPy name of the dtype.
    :param low: lowest value (inclusive), scalar or array over the unnamed axes; ``None`` for no bound.
    :param high: highest value (inclusive), likewise.
    :param kind: the Gymnasium space it came from: ``box``, ``discrete``, ``multi_discrete``,
        ``multi_binary``.
    :raises SpecError: for a dtype or a shape entry that is not supported.
    """

    shape: tuple[Dim, ...]
    dtype: str = "float32"
    low: Any = None
    high: Any = None
    kind: str = "box"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        try:
            name = np.dtype(self.dtype).name
        except TypeError as e:
            raise SpecError(f"{self.dtype!r} is not a dtype", expected=", ".join(DTYPES)) from e
        if name not in DTYPES:
            raise SpecError(f"dtype {name} is not supported", expected=", ".join(DTYPES))
        object.__setattr__(self, "dtype", name)
        for dim in self.shape:
            length: Any = dim
            if not (isinstance(dim, str) or (isinstance(length, (int, np.integer)) and length >= 0)):
                raise SpecError(f"shape entry {dim!r} is neither a length >= 0 nor the name of an axis")
        object.__setattr__(self, "low", _frozen(self.low))
        object.__setattr__(self, "high", _frozen(self.high))

    # -- reading ---------------------------------------------------------------------------------
    @property
    def axes(self) -> tuple[str | None, ...]:
        """Name of each axis, ``None`` where its length is fixed."""
        return tuple(d if isinstance(d, str) else None for d in self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("float")

    @property
    def num_values(self) -> int:
        """Number of values of a discrete spec.

        :raises SpecError: for a spec that is not discrete.
        """
        if self.kind != "discrete" or self.low is None or self.high is None:
            raise SpecError(f"{self} has no fixed number of values", expected="a Discrete")
        return int(self.high) - int(self.low) + 1

    def _key(self) -> tuple[Any, ...]:
        def of(a: np.ndarray | None) -> Any:
            return None if a is None else (a.shape, a.dtype.name, a.tobytes())

        return self.shape, self.dtype, self.kind, of(self.low), of(self.high)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        if self.kind == "discrete" and self.low is not None:
            return f"{text} in {int(self.low)}..{int(self.high)}"
        if self.kind in ("multi_discrete", "multi_binary"):
            return f"{text} {self.kind}"
        return text

    # -- deriving --------------------------------------------------------------------------------
    def with_axes(self, *names: str) -> TensorSpec:
        """The same values with leading named axes, e.g. ``spec.with_axes("T", "B")``."""
        return TensorSpec((*names, *self.shape), self.dtype, self.low, self.high, self.kind)

    def concrete(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape with every named axis replaced by its length in ``sizes``."""
        return tuple(sizes[d] if isinstance(d, str) else int(d) for d in self.shape)

    def sample(self, rng: np.random.Generator, sizes: Mapping[str, int]) -> np.ndarray:
        """A random array of this spec, inside its bounds; unbounded floats are standard normal."""
        shape = self.concrete(sizes)
        if self.dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if self.is_float:
            normal = rng.standard_normal(shape)
            if self.low is None and self.high is None:
                return normal.astype(self.dtype)
            low = np.broadcast_to(-np.inf if self.low is None else self.low, shape)
            high = np.broadcast_to(np.inf if self.high is None else self.high, shape)
            # Bounds as wide as float32 itself (CartPole's velocities) count as none.
            wide = ~(np.isfinite(low) & np.isfinite(high)) | (np.abs(low) > 1e18) | (np.abs(high) > 1e18)
            u = rng.random(shape)
            inside = np.where(wide, 0, low) * (1 - u) + np.where(wide, 0, high) * u
            return np.where(wide, np.clip(normal, low, high), inside).astype(self.dtype)
        info = np.iinfo(self.dtype)
        lowest: Any = info.min if self.low is None else self.low
        highest: Any = info.max if self.high is None else self.high
        return rng.integers(lowest, highest, shape, dtype=self.dtype, endpoint=True)

    def check(self, array: np.ndarray, name: str = "value") -> None:
        """Raise SpecError unless ``array`` has this dtype, rank and static lengths."""
        fits = len(array.shape) == self.rank and all(
            isinstance(d, str) or d == n for d, n in zip(self.shape, array.shape, strict=False)
        )
        if not fits or array.dtype.name != self.dtype:
            raise SpecError(f"{name}: got {described(array)}, expected {self}", expected=str(self))


# -- trees ---------------------------------------------------------------------------------------
def is_spec(node: Any) -> bool:
    return isinstance(node, TensorSpec)


def map_specs(fn: Callable[..., Any], tree: SpecTree, *rest: Tree) -> Tree:
    """Apply ``fn`` to every TensorSpec of ``tree`` (and the parts of ``rest`` at the same place)."""
    return optree.tree_map(fn, tree, *rest, is_leaf=is_spec)


def spec_leaves(tree: SpecTree) -> list[TensorSpec]:
    return list(optree.tree_leaves(tree, is_leaf=is_spec))


def with_axes(tree: SpecTree, *names: str) -> SpecTree:
    """Every spec of the tree with leading named axes."""
    return map_specs(lambda s: s.with_axes(*names), tree)


def sample(tree: SpecTree, rng: np.random.Generator, sizes: Mapping[str, int]) -> Tree:
    return map_specs(lambda s: s.sample(rng, sizes), tree)


def described(leaf: Any) -> str:
    """An array as ``float32[3, 4]``, anything else by the name of its type."""
    if isinstance(leaf, np.ndarray):
        return f"{leaf.dtype.name}[{', '.join(map(str, leaf.shape))}]"
    return type(leaf).__name__


def describe(tree: Any) -> str:
    """A tree of specs on one line: ``{'pos': float32[B, 2], 'cmd': int64[B] in 0..3}``."""
    if isinstance(tree, Mapping):
        return "{" + ", ".join(f"'{k}': {describe(v)}" for k, v in tree.items()) + "}"
    if isinstance(tree, (tuple, list)):
        inside = ", ".join(describe(v) for v in tree)
        return f"({inside})" if isinstance(tree, tuple) else f"[{inside}]"
    return str(tree)


# -- Gymnasium -----------------------------------------------------------------------------------
def from_space(space: Any) -> SpecTree:
    """The specs of a Gymnasium space: Box, Discrete, MultiDiscrete, MultiBinary, Dict, Tuple.

    :raises SpecError: names any other space.
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        return TensorSpec(space.shape, space.dtype.name, space.low, space.high)
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return TensorSpec((), space.dtype.name, start, start + int(space.n) - 1, "discrete")
    if isinstance(space, spaces.MultiDiscrete):
        high = space.start + space.nvec - 1
        return TensorSpec(space.shape, space.dtype.name, space.start, high, "multi_discrete")
    if isinstance(space, spaces.MultiBinary):
        return TensorSpec(space.shape, "int8", 0, 1, "multi_binary")
    if isinstance(space, spaces.Dict):
        return {key: from_space(sub) for key, sub in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(from_space(sub) for sub in space.spaces)
    raise SpecError(
        f"{type(space).__name__} spaces can't be turned into tensors: {space}",
        expected="Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple",
    )


def to_space(tree: SpecTree) -> Any:
    """The Gymnasium space of a tree of specs; the inverse of :func:`from_space`.

    :raises SpecError: for a spec with named axes.
    """
    from gymnasium import spaces

    if isinstance(tree, Mapping):
        return spaces.Dict({key: to_space(sub) for key, sub in tree.items()})
    if isinstance(tree, (tuple, list)):
        return spaces.Tuple([to_space(sub) for sub in tree])
    if any(tree.axes):
        raise SpecError(f"{tree} has named axes; a space has none", expected="fixed lengths only")
    shape = tuple(int(d) for d in tree.shape)
    dtype: Any = np.dtype(tree.dtype).type
    if tree.kind == "discrete":
        return spaces.Discrete(tree.num_values, start=int(tree.low), dtype=dtype)
    if tree.kind == "multi_discrete":
        return spaces.MultiDiscrete(tree.high - tree.low + 1, dtype=dtype, start=tree.low)
    if tree.kind == "multi_binary":
        return spaces.MultiBinary(shape if len(shape) != 1 else shape[0])
    if tree.is_float:
        low = -np.inf if tree.low is None else tree.low
        high = np.inf if tree.high is None else tree.high
    elif tree.dtype == "bool":
        low, high = 0, 1
    else:
        info = np.iinfo(tree.dtype)
        low = info.min if tree.low is None else tree.low
        high = info.max if tree.high is None else tree.high
    low = np.broadcast_to(low, shape).astype(dtype)
    return spaces.Box(low, np.broadcast_to(high, shape).astype(dtype), shape, dtype)
