"""The contract of a graph backend: GraphBuilder makes an Executable of a ComponentGraph; Weights go between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import optree

from rlcore.component import Component
from rlcore.component_graph import ApiGraph, ComponentGraph
from rlcore.errors import ConfigError, RLCoreError, UnsupportedCapability, nearest
from rlcore.layout import Entry, Instance, manifest
from rlcore.ops import Ops
from rlcore.specs import TensorSpec, is_spec

Tree = Any
Overrides = Mapping[tuple[type[Component], str], Callable[..., Any]]


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do.

    :ivar modes: of ``eager`` and ``static``; the first is the default.
    :ivar gradients: whether ``value_and_grad`` works.
    :ivar devices: names that ``build(device=...)`` takes; the first is the default.
    """

    modes: tuple[str, ...]
    gradients: bool
    devices: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """As a plugin's info declares them."""
        return frozenset((*self.modes, *(["gradients"] if self.gradients else []), *self.devices))


class WeightsError(RLCoreError, ValueError):
    """Weights that don't fit: a name, shape or dtype differs."""


@dataclass(frozen=True)
class Weights:
    """All trained variables of a build as one float32 buffer ``[N]``, with what lies where.

    :ivar version: grows by one with each ``get_weights`` of the build that made them.
    """

    buffer: np.ndarray
    manifest: tuple[Entry, ...]
    version: int = 0

    def __getitem__(self, path: str) -> np.ndarray:
        """The array of one variable (a view)."""
        for entry in self.manifest:
            if entry.path == path:
                return self.buffer[entry.offset : entry.offset + entry.size].reshape(entry.shape)
        raise WeightsError(f"no variable '{path}'.{nearest(path, [e.path for e in self.manifest])}")

    def select(self, wanted: Sequence[Entry]) -> np.ndarray:
        """The variables of another manifest out of this one, in that one's order.

        :raises WeightsError: if one is missing or has another shape. Variables nobody asks for are left out:
            an actor needs only a part of what the learner trains.
        """
        if self.buffer.dtype != np.float32 or self.buffer.ndim != 1:
            raise WeightsError(f"a weights buffer is float32[N], not {self.buffer.dtype}{list(self.buffer.shape)}")
        if tuple(wanted) == self.manifest:
            return self.buffer
        have = {e.path: e for e in self.manifest}
        parts = []
        for entry in wanted:
            found = have.get(entry.path)
            if found is None:
                raise WeightsError(f"weights lack the variable '{entry.path}'.{nearest(entry.path, have)}")
            if found.shape != entry.shape:
                raise WeightsError(f"variable '{entry.path}': weights have {found.shape}, the build {entry.shape}")
            parts.append(self.buffer[found.offset : found.offset + found.size])
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)


class Executable(ABC):
    """A built graph: its apis as functions, its variables, its noise.

    :ivar mode: ``eager`` or ``static``.
    :ivar trace_count: api -> how many graphs were captured for it so far (always 0 in eager mode).
    """

    def __init__(self, graph: ComponentGraph, instance: Instance, mode: str, seed: int) -> None:
        self.graph, self.instance, self.mode = graph, instance, mode
        self.rng = np.random.default_rng([seed, 0x6E6F697365])  # "noise": apart from the weights' draws
        self.trace_count: dict[str, int] = dict.fromkeys(graph.apis, 0)
        self._functions: dict[str, Callable[..., Any]] = {}
        self._flat_functions: dict[str, Callable[..., Any]] = {}  # of leaves, where a backend's graph takes these
        self._entries = {name: _Entry(api) for name, api in graph.apis.items()}
        self._version = 0
        self._manifest = manifest(instance.trainable_blocks)

    # -- to be supplied by a backend ---------------------------------------------------------------
    @abstractmethod
    def _make_function(self, api: ApiGraph) -> Callable[..., Any]:
        """The api as a function of its inputs, then its noise, all in this backend's arrays."""

    @abstractmethod
    def from_numpy(self, array: np.ndarray) -> Any: ...

    @abstractmethod
    def to_numpy(self, tensor: Any) -> np.ndarray: ...

    @abstractmethod
    def _read_trainable(self) -> np.ndarray:
        """A fresh copy of all trained variables, float32 ``[N]``, in the order of the manifest."""

    @abstractmethod
    def _write_trainable(self, buffer: np.ndarray) -> None: ...

    @abstractmethod
    def get_state(self) -> dict[str, np.ndarray]:
        """A copy of every variable by path: trained, frozen, moments, counters."""

    @abstractmethod
    def _write_state(self, state: Mapping[str, np.ndarray]) -> None: ...

    # -- what everyone calls -----------------------------------------------------------------------
    def function(self, api: str) -> Callable[..., Any]:
        """The lowest-overhead entry: arrays of this backend in (inputs, then noise) and out.

        Nothing is checked: inputs must be contiguous and fit the api's specs, or the result is undefined.

        :raises ConfigError: for an api that was not assembled.
        """
        if api not in self._functions:
            if api not in self.graph.apis:
                raise ConfigError(f"no api '{api}'.{nearest(api, self.graph.apis)} Built: {', '.join(self.graph.apis)}")
            self._functions[api] = self._make_function(self.graph.apis[api])
        return self._functions[api]

    def __call__(self, api: str, *args: Tree) -> Tree:
        """Run an api on NumPy trees. Noise is drawn from the build's own generator.

        :raises SpecError: if an input does not fit its spec.
        """
        function = self._functions.get(api) or self.function(api)
        entry = self._entries[api]
        if entry.one is not None and len(args) == 1:  # one array in and out: acting, where microseconds count
            [x] = args
            dtype, rank, fixed = entry.one
            if type(x) is np.ndarray and x.dtype == dtype and x.ndim == rank and x.shape[1:] == fixed:
                return self.to_numpy(function(self.from_numpy(x)))
        arrays = entry.check(args)
        inputs = [self.from_numpy(a) for a in arrays]
        if entry.noise:
            sizes = entry.sizes(arrays)
            inputs_noise = [self.from_numpy(n.noise.sample(self.rng, n.spec.concrete(sizes))) for n in entry.noise]
        else:
            inputs_noise = []
        flat = self._flat_functions.get(api)
        out = flat(*inputs, *inputs_noise) if flat else function(*entry.pack(inputs), *inputs_noise)
        if not isinstance(out, (dict, tuple, list)):
            return None if out is None else self.to_numpy(out)
        tree: Any = out
        return optree.tree_map(self.to_numpy, tree)

    def get_weights(self) -> Weights:
        """All trained variables, copied into one buffer; the version grows by one with each call."""
        self._version += 1
        return Weights(self._read_trainable(), self._manifest, self._version)

    def set_weights(self, weights: Weights) -> None:
        """Overwrite the trained variables in place.

        :raises WeightsError: names the variable that is missing or has another shape; nothing is changed then.
        """
        self._write_trainable(weights.select(self._manifest))
        self._version = weights.version

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Overwrite every variable with what :meth:`get_state` gave, here or in another backend.

        :raises WeightsError: if a path is missing or unknown, or a shape differs; nothing is changed then.
        """
        known = {s.variable.path: s.variable for s in self.instance.slots}
        for path in sorted(set(known) ^ set(state)):
            raise WeightsError(f"state {'lacks' if path in known else 'has an unknown'} variable '{path}'")
        for path, variable in known.items():
            if state[path].shape != variable.shape or state[path].dtype.name != variable.dtype:
                given = f"{state[path].dtype.name}{list(state[path].shape)}"
                raise WeightsError(
                    f"variable '{path}': state has {given}, the build {variable.dtype}{list(variable.shape)}"
                )
        self._write_state(state)


class _Entry:
    """Flattening and checks of one api's NumPy inputs, worked out once."""

    def __init__(self, api: ApiGraph) -> None:
        self.api, self.names, self.noise = api.name, list(api.inputs), api.noise
        trees: Any = tuple(api.inputs.values())
        self.plain = all(is_spec(t) for t in trees)
        self.specs, self.treespec = optree.tree_flatten(trees, is_leaf=is_spec)

        def quick(s: TensorSpec) -> bool:  # all that can be wrong besides dtype and rank is in shape[1:]
            return s.rank == 0 or (s.axes[0] is not None and not any(s.axes[1:]))

        self.checks = [(s, np.dtype(s.dtype), s.rank, s.shape[1:] if quick(s) else None) for s in self.specs]
        self.one: tuple[np.dtype[Any], int, tuple[int, ...]] | None = None
        if self.plain and len(self.specs) == 1 and not api.noise and is_spec(api.outputs):
            [spec] = self.specs
            if spec.rank and quick(spec):
                self.one = np.dtype(spec.dtype), spec.rank, spec.shape[1:]
        self.where = {
            axis: (i, j) for i, s in reversed(list(enumerate(self.specs))) for j, axis in enumerate(s.axes) if axis
        }

    def check(self, args: Sequence[Tree]) -> list[np.ndarray]:
        if len(args) != len(self.names):
            raise TypeError(
                f"api '{self.api}' takes {len(self.names)} inputs ({', '.join(self.names)}), got {len(args)}"
            )
        leaves: Sequence[Any]
        if self.plain:
            leaves = args
        else:
            tree: Any = tuple(args)
            leaves = self.treespec.flatten_up_to(tree)
        arrays: list[np.ndarray] = []
        for leaf, (spec, dtype, rank, tail) in zip(leaves, self.checks, strict=True):
            a = leaf if type(leaf) is np.ndarray else np.asarray(leaf)
            if a.dtype != dtype and np.can_cast(a.dtype, dtype, "same_kind"):
                a = a.astype(dtype)
            if a.dtype != dtype or a.ndim != rank or a.shape[1:] != tail:
                first, *keys = self.treespec.paths()[len(arrays)]
                spec.check(a, "/".join([self.names[first], *map(str, keys)]))
            arrays.append(a)
        return arrays

    def sizes(self, arrays: Sequence[np.ndarray]) -> dict[str, int]:
        return {axis: arrays[i].shape[j] for axis, (i, j) in self.where.items()}

    def pack(self, leaves: Sequence[Any]) -> Sequence[Any]:
        return leaves if self.plain else optree.tree_unflatten(self.treespec, leaves)  # type: ignore[return-value]


class GraphBuilder(ABC):
    """One a backend. Stateless: any number of builds may live side by side."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    overrides: ClassVar[Overrides] = {}

    @property
    @abstractmethod
    def ops(self) -> Ops: ...

    @abstractmethod
    def _build(self, graph: ComponentGraph, instance: Instance, mode: str, device: str, seed: int) -> Executable: ...

    def build(
        self, graph: ComponentGraph, *, mode: str | None = None, device: str | None = None, seed: int = 0
    ) -> Executable:
        """An Executable of the graph with fresh variables.

        :param mode: ``eager`` or ``static``; the backend's default if None.
        :param device: the backend's default if None.
        :param seed: of the initial weights and of the noise.
        :raises UnsupportedCapability: for a mode or device that this backend lacks, or gradients if it takes none.
        """
        mode = self.check("mode", mode, self.capabilities.modes)
        device = self.check("device", device, self.capabilities.devices)
        learning = [name for name, api in graph.apis.items() if api.gradients]
        if learning and not self.capabilities.gradients:
            raise UnsupportedCapability(
                f"backend '{self.name}' can't take gradients (needed by api '{learning[0]}'); it can act only"
            )
        instance = graph.instantiate()
        executable = self._build(graph, instance, mode, device, seed)
        for component in instance.components.values():
            for (cls, api), replacement in self.overrides.items():
                if type(component) is cls and mode == "eager":
                    setattr(component, api, replacement.__get__(component))
        return executable

    def check(self, what: str, value: str | None, known: Sequence[str]) -> str:
        """``value``, or the default where it is None.

        :raises UnsupportedCapability: if the backend lacks it.
        """
        if value is None:
            return known[0]
        if value not in known:
            has = f"It has: {', '.join(known)}"
            raise UnsupportedCapability(f"backend '{self.name}' has no {what} '{value}'.{nearest(value, known)} {has}")
        return value
