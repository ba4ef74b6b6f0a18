"""Uniform experience replay (Lin 1992): a ring buffer of transitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import optree

from rlcore.errors import ConfigError, RLCoreError, SpecError
from rlcore.specs import Tree, described


class UniformReplay:
    """Keeps the newest ``capacity`` transitions and samples them uniformly with replacement.

    A transition is a tree (dict, tuple, list) of arrays whose nesting, shapes and dtypes the first batch fixes;
    uint8 stays uint8. The i-th transition ever added lies in row ``i % capacity``. The memory is reserved with
    the first batch, and the system hands out its pages only as rows are written.

    :param capacity: transitions.
    :param seed: of the sampling, an int or a SeedSequence.
    :raises ConfigError: unless capacity >= 1.
    """

    def __init__(self, capacity: int, seed: int | np.random.SeedSequence) -> None:
        if capacity < 1:
            raise ConfigError(f"replay capacity is {capacity}, expected 1 or more transitions")
        self.capacity = capacity
        self._rng = np.random.default_rng(seed)
        self._next = self._size = 0
        self._treedef: Any = None
        self._paths: list[str] = []
        self._storage: list[np.ndarray] = []  # a leaf: [capacity, ...]
        self._shapes: list[tuple[int, ...]] = []  # of one row

    def __len__(self) -> int:
        """Transitions that can be sampled."""
        return self._size

    @property
    def nbytes_per_transition(self) -> int:
        """Bytes of one transition; 0 before the first batch."""
        return sum(leaf.nbytes for leaf in self._storage) // self.capacity

    def add(self, batch: Tree) -> None:
        """Store a copy of some transitions over the oldest ones.

        :param batch: tree of [M, ...], any M; of a batch larger than the capacity the newest (last) rows are kept.
        :raises SpecError: if nesting, a shape, a dtype or a number of rows does not fit; names the key path.
        :raises ConfigError: if there is not enough memory for the capacity.
        """
        leaves, treedef = optree.tree_flatten(batch)
        if treedef != self._treedef:
            if self._treedef is not None:
                raise SpecError(f"replay: the batch is nested as {treedef}, the buffer as {self._treedef}")
            self._check_first(leaves, treedef)
            self._allocate(treedef, leaves)
        rows = self._rows(leaves)
        keep = min(rows, self.capacity)
        start = (self._next + rows - keep) % self.capacity
        until_end = min(keep, self.capacity - start)
        for stored, leaf in zip(self._storage, leaves, strict=True):
            stored[start : start + until_end] = leaf[rows - keep : rows - keep + until_end]
            if until_end < keep:
                stored[: keep - until_end] = leaf[rows - keep + until_end :]
        self._next = (self._next + rows) % self.capacity
        self._size = min(self._size + rows, self.capacity)

    def sample(self, batch_size: int) -> Tree:
        """Draw transitions uniformly, with replacement: tree of [batch_size, ...], a copy.

        :raises RLCoreError: from an empty buffer.
        """
        if not self._size:
            raise RLCoreError("the replay buffer is empty: add transitions before sampling")
        index = self._rng.integers(0, self._size, batch_size)
        return optree.tree_unflatten(self._treedef, [stored[index] for stored in self._storage])

    # -- state ----------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Everything that later samples depend on.

        :return: ``arrays``: {key path: [len(self), ...]}, views that the next ``add`` changes, so write or copy
            them before; and values fit for JSON: ``tree`` (the nesting, key paths as leaves), ``capacity``,
            ``next`` (the row that is written next) and ``rng``.
        """
        return {
            "arrays": {p: leaf[: self._size] for p, leaf in zip(self._paths, self._storage, strict=True)},
            "tree": None if self._treedef is None else _to_json(optree.tree_unflatten(self._treedef, self._paths)),
            "capacity": self.capacity,
            "next": self._next,
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state, in place of what is stored; the arrays are copied.

        :raises ConfigError: if a part is missing, or the capacity is another.
        """
        missing = {"arrays", "tree", "capacity", "next", "rng"} - set(state)
        if missing:
            raise ConfigError(f"the state of the replay buffer lacks {', '.join(sorted(missing))}")
        if state["capacity"] != self.capacity:
            raise ConfigError(f"the state holds a replay of capacity {state['capacity']}, this one has {self.capacity}")
        treedef, leaves = None, []
        if state["tree"] is not None:
            paths, treedef = optree.tree_flatten(_from_json(state["tree"]))
            if set(paths) != set(state["arrays"]):
                raise ConfigError(f"the state holds arrays {sorted(state['arrays'])}, expected {sorted(paths)}")
            leaves = [np.asarray(state["arrays"][path]) for path in paths]
            self._check_first(leaves, treedef)
        self._next = self._size = 0
        self._treedef, self._paths, self._storage, self._shapes = None, [], [], []
        if treedef is not None:
            self._allocate(treedef, leaves)
            self._size = self._rows(leaves)
            for stored, leaf in zip(self._storage, leaves, strict=True):
                stored[: self._size] = leaf
        self._next = int(state["next"])
        self._rng.bit_generator.state = dict(state["rng"])

    # -- checks ---------------------------------------------------------------------------------
    def _check_first(self, leaves: list[Any], treedef: Any) -> None:
        if not leaves:
            raise SpecError("replay: the batch has no arrays")
        paths = _paths(treedef)
        if len(set(paths)) < len(paths):
            raise SpecError(f"replay: two arrays of the batch have the same key path: {paths}")
        for path, leaf in zip(paths, leaves, strict=True):
            if not isinstance(leaf, np.ndarray) or leaf.ndim == 0 or len(leaf) != len(leaves[0]):
                rows = len(leaves[0]) if np.ndim(leaves[0]) else "M"
                expected = f"an array [{rows}, ...]"
                raise SpecError(f"replay: {path}: got {described(leaf)}, expected {expected}", expected=expected)

    def _allocate(self, treedef: Any, leaves: list[np.ndarray]) -> None:
        try:
            storage = [np.empty((self.capacity, *leaf.shape[1:]), leaf.dtype) for leaf in leaves]
        except MemoryError as e:
            each = sum(leaf.nbytes // max(1, len(leaf)) for leaf in leaves)
            needed = f"{self.capacity} transitions of {each} bytes need {self.capacity * each / 2**30:.1f} GiB"
            raise ConfigError(f"not enough memory for the replay buffer: {needed}; lower its capacity") from e
        self._treedef, self._paths, self._storage = treedef, _paths(treedef), storage
        self._shapes = [leaf.shape[1:] for leaf in storage]

    def _rows(self, leaves: list[Any]) -> int:
        """The number of rows, which all leaves must share."""
        rows = None
        for i, (leaf, stored, shape) in enumerate(zip(leaves, self._storage, self._shapes, strict=True)):
            if (
                not isinstance(leaf, np.ndarray)
                or leaf.dtype != stored.dtype
                or leaf.ndim == 0
                or leaf.shape[1:] != shape
                or (rows is not None and len(leaf) != rows)
            ):
                expected = f"{stored.dtype}{['M' if rows is None else rows, *shape]}".replace("'", "")
                raise SpecError(
                    f"replay: {self._paths[i]}: got {described(leaf)}, expected {expected}", expected=expected
                )
            rows = len(leaf)
        return rows or 0


def _paths(treedef: Any) -> list[str]:
    return ["/".join(map(str, path)) or "batch" for path in treedef.paths()]


def _to_json(tree: Any) -> Any:
    """The nesting as JSON has it: a list stays a list, a tuple becomes {"()": [...]}."""
    if isinstance(tree, Mapping):
        return {key: _to_json(value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return {"()": [_to_json(value) for value in tree]}
    return [_to_json(value) for value in tree] if isinstance(tree, list) else tree


def _from_json(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        if set(tree) == {"()"}:
            return tuple(_from_json(value) for value in tree["()"])
        return {key: _from_json(value) for key, value in tree.items()}
    return [_from_json(value) for value in tree] if isinstance(tree, list) else tree
