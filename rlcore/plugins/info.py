"""PluginInfo: what a plugin says of itself, readable without importing it."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

PLUGIN_API_VERSION = "1.0"
"""Of the hooks and contracts that a plugin is written for. A new hook or argument raises the minor number, what
breaks a plugin the major one. A plugin of the same major and no higher minor number works."""


@dataclass(frozen=True)
class PluginInfo:
    """What a plugin class holds as ``info``; written with literals, ``rlcore plugins`` reads it without importing::

        class TorchPlugin:
            info = PluginInfo(api_version="1.0", capabilities=("eager", "static", "gradients", "cpu", "cuda"))

    :ivar api_version: of the plugin API that it was written for; see :data:`PLUGIN_API_VERSION`.
    :ivar needs: requirements (PEP 508) beyond those of its distribution, ``|`` between alternatives:
        ``("tensorflow>=2.18 | tensorflow-cpu>=2.18",)``.
    :ivar capabilities: of a graph builder its modes, ``gradients`` and its devices; of an executor ``tasks`` and
        ``collectives``. Exactly what the object it makes can do.
    :ivar install: what pip installs to get what is missing (``rl-tf[cpu]``); the distribution itself if empty.
    :ivar summary: one line.
    """

    api_version: str
    needs: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    install: str = ""
    summary: str = ""


def read_info(value: str) -> PluginInfo | None:
    """The literal ``info = PluginInfo(...)`` of an entry point's class, out of its source. Imports nothing.

    :param value: ``module:Class``.
    :return: None if the source can't be found or the info is no literal.
    """
    module, _, name = value.partition(":")
    try:
        path = _source(module)
        tree = ast.parse(path.read_text(encoding="utf-8")) if path is not None else ast.Module([], [])
    except (OSError, SyntaxError, ValueError):
        return None
    known = {f.name for f in fields(PluginInfo)}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name != name:
            continue
        for statement in node.body:
            call = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
            target: Any = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", 0)
            if getattr(target, "id", None) != "info" or not isinstance(call, ast.Call) or call.args:
                continue
            try:
                values = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
                return PluginInfo(**values) if set(values) <= known else None
            except (ValueError, TypeError):
                return None
    return None


def _source(module: str) -> Path | None:
    """Path of a module's source, found without importing its parent packages."""
    top, *parts = module.split(".")
    spec = importlib.util.find_spec(top)
    path = top
    for part in parts:
        if spec is None or spec.submodule_search_locations is None:
            return None
        path = f"{path}.{part}"
        spec = importlib.machinery.PathFinder.find_spec(path, list(spec.submodule_search_locations))
    return Path(spec.origin) if spec is not None and spec.origin else None
