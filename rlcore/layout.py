"""Where variables lie: blocks of one contiguous buffer each, and the manifest of a weights buffer."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rlcore.component import Component, Parameters, Variable, walk
from rlcore.errors import BuildError


@dataclass(frozen=True)
class Entry:
    """One variable inside a buffer: ``buffer[offset : offset + size].reshape(shape)``."""

    path: str
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass(frozen=True, eq=False)
class Block:
    """Float32 variables that always travel together, one after the other in one buffer.

    :param offset: of the block in the buffer of all blocks of its kind (trainable or not).
    """

    variables: tuple[Variable, ...]
    trainable: bool
    offset: int

    @property
    def size(self) -> int:
        return sum(v.size for v in self.variables)

    def draw(self, seed: int) -> np.ndarray:
        """Initial values, float32 ``[size]``."""
        return np.concatenate([v.draw(seed).ravel() for v in self.variables])


def manifest(blocks: Sequence[Block]) -> tuple[Entry, ...]:
    entries, offset = [], 0
    for block in blocks:
        for v in block.variables:
            entries.append(Entry(v.path, v.shape, offset))
            offset += v.size
    return tuple(entries)


@dataclass(frozen=True, eq=False)
class Slot:
    """An attribute of a component that holds a variable."""

    component: Component
    attribute: str
    variable: Variable


class Instance:
    """A private copy of an assembled tree, ready for a backend to bind its tensors.

    :ivar slots: every variable's place, in tree order.
    :ivar blocks: contiguous groups; ``block_slots[i]`` are the places of ``blocks[i]``.
    :ivar loose: places of the variables outside all blocks (optimizer moments, counters).
    :ivar handles: each Parameters object of the tree with the index of its block, ``None`` where the
        built apis reach none of its variables.
    """

    def __init__(self, assembled: Component) -> None:
        self.root = copy.deepcopy(assembled)
        self.components = dict(walk(self.root))
        self.slots = [
            Slot(component, attribute, variable)
            for component in self.components.values()
            for attribute, variable in (component._bindings or {}).items()
        ]
        handles = list(find_parameters(self.root))
        owners: dict[int, set[int]] = {}
        for i, (_, handle) in enumerate(handles):
            for slot in slots_of(handle):
                owners.setdefault(id(slot.variable), set()).add(i)
        groups: dict[tuple[bool, frozenset[int]], list[Slot]] = {}
        self.loose: list[Slot] = []
        for slot in self.slots:
            owner = frozenset(owners.get(id(slot.variable), ()))
            if owner or slot.variable.trainable:
                if slot.variable.dtype != "float32":
                    raise BuildError(
                        f"trainable variable '{slot.attribute}' is {slot.variable.dtype}",
                        path=slot.component._path or "",
                        component=type(slot.component).__name__,
                        expected="float32",
                    )
                groups.setdefault((slot.variable.trainable, owner), []).append(slot)
            else:
                self.loose.append(slot)
        self.blocks: list[Block] = []
        self.block_slots: list[list[Slot]] = []
        offsets = {True: 0, False: 0}
        index: dict[frozenset[int], list[int]] = {}
        for (trainable, owner), slots in groups.items():
            block = Block(tuple(s.variable for s in slots), trainable, offsets[trainable])
            offsets[trainable] += block.size
            index.setdefault(owner, []).append(len(self.blocks))
            self.blocks.append(block)
            self.block_slots.append(slots)
        self.handles: list[tuple[Parameters, int | None]] = []
        for i, (path, handle) in enumerate(handles):
            mine = [b for owner, bs in index.items() if i in owner for b in bs]
            if len(mine) > 1:
                raise BuildError(
                    "its Parameters are no single group: another Parameters holds only some of them, "
                    "or they mix trained and frozen components",
                    path=path,
                    component=type(self.components[path]).__name__,
                    expected="Parameters that are equal or have nothing in common",
                )
            self.handles.append((handle, mine[0] if mine else None))

    @property
    def trainable_blocks(self) -> list[Block]:
        return [b for b in self.blocks if b.trainable]


def find_parameters(root: Component) -> Iterator[tuple[str, Parameters]]:
    """Every Parameters handle of a tree with the path of the component that holds it."""
    seen: set[int] = set()
    for path, component in walk(root):
        for value in vars(component).values():
            if isinstance(value, Parameters) and id(value) not in seen:
                seen.add(id(value))
                yield path, value


def slots_of(handle: Parameters) -> list[Slot]:
    """The places of a handle's variables, each once, in tree order."""
    slots: dict[int, Slot] = {}
    for top in handle.components:
        for _, component in walk(top):
            for attribute, variable in (component._bindings or {}).items():
                slots.setdefault(id(variable), Slot(component, attribute, variable))
    return list(slots.values())
