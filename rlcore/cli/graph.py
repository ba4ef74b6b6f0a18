"""``rlcore graph``: the component graph on the terminal and in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rlcore.component_graph import ComponentGraph
from rlcore.errors import ConfigError
from rlcore.runs.config import parse_settings, resolve

FORMATS = (".mmd", ".dot", ".html", ".json")


def graph_command(agent: str, env: str, settings: Sequence[str], out: Path | None) -> None:
    if out is not None and out.suffix and out.suffix not in FORMATS:
        raise ConfigError(f"--out {out}: files end in {', '.join(FORMATS)}; a name without an ending is a folder")
    _, recipe, _ = resolve(agent, env, parse_settings(settings), backend="numpy")
    graph = recipe.graph()
    print(graph.to_text())
    if out is None:
        return
    paths = [out] if out.suffix else [out / f"{agent}{ending}" for ending in FORMATS]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(graph, path.suffix))
        print(f"wrote {path}")


def render(graph: ComponentGraph, ending: str) -> str:
    if ending == ".json":
        return json.dumps(graph.to_dict(), indent=2)
    return {".mmd": graph.to_mermaid, ".dot": graph.to_dot, ".html": graph.to_html}[ending]()
