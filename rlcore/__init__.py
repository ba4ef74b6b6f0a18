"""rlcore: deep reinforcement learning whose algorithms are written once, for every graph backend and executor."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlcore.version import __version__

if TYPE_CHECKING:
    from rlcore.assembly import assemble
    from rlcore.component import Component, Normal, Parameters, Uniform, api, frozen_copy
    from rlcore.component_specs import from_spec
    from rlcore.errors import BuildError, ConfigError, RLCoreError, UnsupportedCapability
    from rlcore.facade import evaluate, load_config, load_weights, make_agent, save_weights, train
    from rlcore.plugins.session import Session, make_executor, make_graph_builder
    from rlcore.specs import TensorSpec

__all__ = [
    "BuildError",
    "Component",
    "ConfigError",
    "Normal",
    "Parameters",
    "RLCoreError",
    "Session",
    "TensorSpec",
    "Uniform",
    "UnsupportedCapability",
    "__version__",
    "api",
    "assemble",
    "evaluate",
    "from_spec",
    "frozen_copy",
    "load_config",
    "load_weights",
    "make_agent",
    "make_executor",
    "make_graph_builder",
    "save_weights",
    "train",
]

_HOMES = {
    "rlcore.facade": ("evaluate", "load_config", "load_weights", "make_agent", "save_weights", "train"),
    "rlcore.assembly": ("assemble",),
    "rlcore.component": ("Component", "Normal", "Parameters", "Uniform", "api", "frozen_copy"),
    "rlcore.errors": ("BuildError", "ConfigError", "RLCoreError", "UnsupportedCapability"),
    "rlcore.plugins.session": ("Session", "make_executor", "make_graph_builder"),
    "rlcore.component_specs": ("from_spec",),
    "rlcore.specs": ("TensorSpec",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Public names are imported when first used, so that ``import rlcore`` stays instant."""
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rlcore' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
