"""Feeding noise to the components that asked for it, while a root api runs."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rlcore.component_graph import ApiGraph
from rlcore.layout import Instance


class NoiseFeed:
    """Puts a root api's noise inputs where the components take them from, and clears them after.

    :func:`rlcore.component.api` pops one dict per call, in call order.
    """

    def __init__(self, instance: Instance, api: ApiGraph) -> None:
        self.sites = [(instance.components[n.path], n.api, n.name, n.call) for n in api.noise]

    def fill(self, arrays: Sequence[Any]) -> None:
        for component, _, _, _ in self.sites:
            component._noise = {}
        for (component, api, name, call), array in zip(self.sites, arrays, strict=True):
            queue = component._noise.setdefault(api, [])
            if call == len(queue):
                queue.append({})
            queue[call][name] = array

    def clear(self) -> None:
        for component, _, _, _ in self.sites:
            component._noise = None

    def __call__(self, arrays: Sequence[Any]) -> NoiseFeed:
        self.fill(arrays)
        return self

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
