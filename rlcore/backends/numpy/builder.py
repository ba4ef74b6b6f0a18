"""GraphBuilder and Executable of the NumPy backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from rlcore.backend import Capabilities, Executable, GraphBuilder
from rlcore.backends.numpy.ops import NumpyOps, ops_class
from rlcore.component_graph import ApiGraph, ComponentGraph
from rlcore.layout import Instance, slots_of
from rlcore.noise import NoiseFeed
from rlcore.ops import Ops


class NumpyGraphBuilder(GraphBuilder):
    """Define-by-run on NumPy arrays.

    :cvar ops_base: of the ops; a sub-class of NumpyOps where some are computed otherwise.
    """

    ops_base: ClassVar[type[NumpyOps] | None] = None
    name = "numpy"
    capabilities = Capabilities(modes=("eager",), gradients=True, devices=("cpu",))

    @property
    def ops(self) -> Ops:
        return ops_class(np, self.ops_base)()

    def _build(self, graph: ComponentGraph, instance: Instance, mode: str, device: str, seed: int) -> Executable:
        return NumpyExecutable(graph, instance, mode, seed, self.ops)


class NumpyExecutable(Executable):
    """Variables of a block are views of one array, so every write is in place."""

    def __init__(self, graph: ComponentGraph, instance: Instance, mode: str, seed: int, ops: Any) -> None:
        super().__init__(graph, instance, mode, seed)
        self._trained = np.empty(sum(b.size for b in instance.trainable_blocks), np.float32)
        flats: list[np.ndarray] = []
        for block, slots in zip(instance.blocks, instance.block_slots, strict=True):
            flat = (
                self._trained[block.offset : block.offset + block.size]
                if block.trainable
                else np.empty(block.size, np.float32)
            )
            flat[...] = block.draw(seed)
            flats.append(flat)
            offset = 0
            for slot in slots:
                view = flat[offset : offset + slot.variable.size].reshape(slot.variable.shape)
                setattr(slot.component, slot.attribute, view)
                offset += slot.variable.size
        for slot in instance.loose:
            setattr(slot.component, slot.attribute, slot.variable.draw(seed))
        for handle, index in instance.handles:
            if index is not None:
                handle.flat = flats[index]
        ops.groups = {id(handle): slots_of(handle) for handle, _ in instance.handles}
        for component in instance.components.values():
            component.ops = ops

    def _make_function(self, api: ApiGraph) -> Callable[..., Any]:
        method = getattr(self.instance.root, api.name)
        if not api.noise:
            return method  # type: ignore[no-any-return]
        feed, count = NoiseFeed(self.instance, api), len(api.inputs)

        def function(*args: Any) -> Any:
            with feed(args[count:]):
                return method(*args[:count])

        return function

    def from_numpy(self, array: np.ndarray) -> Any:
        return array

    def to_numpy(self, tensor: Any) -> np.ndarray:
        return np.asarray(tensor)

    def _read_trainable(self) -> np.ndarray:
        return self._trained.copy()

    def _write_trainable(self, buffer: np.ndarray) -> None:
        self._trained[...] = buffer

    def get_state(self) -> dict[str, np.ndarray]:
        return {s.variable.path: np.array(getattr(s.component, s.attribute)) for s in self.instance.slots}

    def _write_state(self, state: Mapping[str, np.ndarray]) -> None:
        for slot in self.instance.slots:
            getattr(slot.component, slot.attribute)[...] = state[slot.variable.path]
