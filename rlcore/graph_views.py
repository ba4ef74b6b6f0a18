"""Views of a ComponentGraph: terminal text, Mermaid, Graphviz, HTML and JSON."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rlcore.component_graph import ComponentGraph
from rlcore.graph_view import (
    ROLES,
    WIDTH,
    GraphView,
    noise_text,
    one_line,
    result_text,
    signature,
    tied,
    variable_text,
)
from rlcore.specs import is_spec

FORMAT_VERSION = 1
_VARIABLE = ("path", "shape", "dtype", "size", "trainable", "init_path")


# -- terminal ------------------------------------------------------------------------------------
def to_text(graph: ComponentGraph) -> str:
    """Root apis, the component tree and the totals, for the terminal."""
    view = GraphView(graph)
    inputs, lines = view.inputs(), [f"{view.nodes[''].component}: root apis", ""]
    for name, api in graph.apis.items():
        lines.append(f"  {one_line(name)}")
        rows = [("in", text) for text in inputs[name]]
        rows += [("noise", noise_text(n)) for n in api.noise] + [("out", result_text(api.outputs))]
        if view.calls(name):
            rows.append(("calls", ", ".join(view.calls(name))))
        seen = ""
        for label, text in rows:
            lines += _wrapped(f"    {'' if label == seen else label:<7}", text)
            seen = label
    lines += ["", "Components", ""]
    heads = list(_heads(view, "", "", ""))
    column = 2 + min(max(len(head) for _, head, _ in heads), 46)
    for path, head, below in heads:
        node = view.nodes[path]
        texts = [signature(n, i, o, 2 * WIDTH - 60) for n, (i, o) in node.apis.items()] if path else []
        if path and list(node.apis) == ["__call__"] and len(head) < column - 1 and column + len(texts[0]) <= WIDTH:
            head = f"{head:<{column}}{texts.pop()}"
        lines.append(head)
        remarks = view.remarks(path)
        if path and not view.parents[path] and not node.variables and view.amount(path):
            remarks.append(f"{view.amount(path)} in all")
        for role in ROLES:
            own = [variable_text(v) for v in node.variables if view.variable_role(path, v) == role]
            texts += [f"{role}: " + ", ".join(own)] if own else []
        for text in [*texts, "; ".join(remarks)] if remarks else texts:
            lines += _wrapped(f"{below}  ", text)
    return "\n".join(line.rstrip() for line in [*lines, "", view.totals()]) + "\n"


def _wrapped(lead: str, text: str) -> list[str]:
    """Lines with a lead, broken between arguments; later ones only keep the lead's vertical bars."""
    rest = re.sub(r"[^│]", " ", lead) + "  "
    width = max(WIDTH, len(rest) + 30)
    lines = textwrap.wrap(tied(text), width, initial_indent=lead, subsequent_indent=rest, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def _heads(view: GraphView, path: str, lead: str, below: str) -> Iterator[tuple[str, str, str]]:
    """Per component: its path, its line of the tree, and what stands before further lines of it."""
    children = view.children[path]
    title = f"{view.name(path)}: {view.nodes[path].component}" if path else view.nodes[""].component
    yield path, lead + title, below + ("│" if children else " ")
    for child in children:
        last = child == children[-1]
        yield from _heads(view, child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "))


# -- Mermaid and Graphviz ------------------------------------------------------------------------
_STYLES = {  # fill and line
    "trained": ("#d7ead9", "#3c7d49"),
    "frozen": ("#d9e6f5", "#3f6fa8"),
    "state": ("#f6e8cf", "#a6761d"),
    "stateless": ("#eeeeee", "#888888"),
}


def to_mermaid(graph: ComponentGraph) -> str:
    """A Mermaid flowchart: subgraphs are nested components, arrows are calls."""
    view = GraphView(graph)
    lines = ["flowchart LR"]
    for indent, kind, key, path, texts in _boxes(view):
        label = "<br/>".join(map(_mermaid, texts))
        if kind == "open":
            lines += [f'{indent}subgraph {key}["{label}"]', f"{indent}  direction LR"]
        elif kind == "close":
            lines.append(f"{indent}end")
        else:
            lines.append(indent + key + (f'(["{label}"])' if kind == "api" else f'["{label}"]:::{view.role(path)}'))
    for source, target, label in _arrows(view):
        lines.append(f'  {source} -->|"{_mermaid(label)}"| {target}')
    lines += [f"  classDef {r} fill:{fill},stroke:{line},color:#1b1b1b" for r, (fill, line) in _STYLES.items()]
    nests = ",".join(key for _, kind, key, _, _ in _boxes(view) if kind == "open")
    return "\n".join([*lines, "  classDef nest fill:none,stroke:#999999", f"  class {nests} nest"]) + "\n"


def to_dot(graph: ComponentGraph) -> str:
    """Graphviz: clusters are nested components, arrows are calls."""
    view = GraphView(graph)
    lines = [
        f"digraph {_quoted(view.nodes[''].component)} {{",
        '  graph [rankdir=LR, fontname="Helvetica", fontsize=11, nodesep=0.15, ranksep=0.5];',
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10, height=0.3];',
        '  edge [fontname="Helvetica", fontsize=8, color="#555555", arrowsize=0.7];',
    ]
    for indent, kind, key, path, texts in _boxes(view):
        if kind == "open":
            lines.append(f"{indent}subgraph cluster_{key} {{")
            lines.append(f'{indent}  label={_quoted(*texts)}; labeljust=l; style=rounded; color="#aaaaaa";')
        elif kind == "close":
            lines.append(f"{indent}}}")
        else:
            fill, line = _STYLES[view.role(path)] if kind == "box" else ("#ffffff", "#333333")
            shape = "shape=oval, " if kind == "api" else ""
            lines.append(f'{indent}{key} [label={_quoted(*texts)}, {shape}fillcolor="{fill}", color="{line}"];')
    lines += [f"  {source} -> {target} [label={_quoted(label)}];" for source, target, label in _arrows(view)]
    return "\n".join([*lines, "}"]) + "\n"


def _boxes(view: GraphView, path: str = "", indent: str = "  ") -> Iterator[tuple[str, str, str, str, list[str]]]:
    """What to draw, in nesting order: indent, ``open``, ``close``, ``box`` or ``api``, id, path, lines of the label."""
    key, name, inner = view.ids[path], view.name(path), indent
    nested = not path or bool(view.children[path])
    if nested:
        inner += "  "
        yield indent, "open", f"{key}_box", path, [name]
    if path:
        size = [view.amount(path)] if view.amount(path) else []
        yield inner, "box", key, path, [f"{name}: {view.nodes[path].component}", *size, *view.remarks(path)]
    for api in () if path else view.root_apis():
        yield inner, "api", _api_id(view, api), path, [api]
    for child in view.children[path]:
        yield from _boxes(view, child, inner)
    if nested:
        yield indent, "close", f"{key}_box", path, [name]


def _arrows(view: GraphView) -> Iterator[tuple[str, str, str]]:
    """Each call: ids of its two boxes, and its label. Each root api is a box of its own."""
    for e in view.graph.edges:
        source = view.ids[e.caller] if e.caller else _api_id(view, e.caller_api)
        yield source, view.ids[e.callee] if e.callee else _api_id(view, e.callee_api), view.call_label(e)


def _api_id(view: GraphView, api: str) -> str:
    return f"api{view.root_apis().index(api)}"


def _mermaid(text: str) -> str:
    """Text for inside a quoted label: what Mermaid, Markdown or HTML could read as syntax becomes a character code."""
    text = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", "#95;", one_line(text).replace("#", "\0"))
    return re.sub(r"[^\w ,.:()\[\]{}/=+…×#;-]", lambda m: f"#{ord(m[0]) or 35};", text)


def _quoted(*lines: str) -> str:
    """A quoted Graphviz string."""
    return '"' + "\\n".join(one_line(t).replace("\\", "\\\\").replace('"', '\\"') for t in lines) + '"'


# -- HTML and JSON -------------------------------------------------------------------------------
def to_html(graph: ComponentGraph) -> str:
    """One page with the drawn graph and all specs; needs no network."""
    from rlcore.graph_html import page

    return page(graph)


def to_dict(graph: ComponentGraph) -> dict[str, Any]:
    """JSON-ready: no callables, no tensors. A spec is ``{"shape": [...], "dtype": ...}``."""
    view = GraphView(graph)
    apis = {
        name: {
            "inputs": _plain(dict(api.inputs)),
            "outputs": _plain(api.outputs),
            "noise": [
                {"path": n.path, "api": n.api, "name": n.name, "call": n.call, "kind": n.noise.kind, **_plain(n.spec)}
                for n in api.noise
            ],
        }
        for name, api in graph.apis.items()
    }
    components = [
        {
            "path": path,
            "component": node.component,
            "parent": view.parents.get(path),
            "aliases": list(node.aliases),
            "role": view.role(path),
            "copy_of": view.copy_of(path),
            "apis": {n: {"inputs": _plain(dict(i)), "outputs": _plain(o)} for n, (i, o) in node.apis.items()},
            "variables": [{k: _plain(getattr(v, k)) for k in _VARIABLE} for v in node.variables],
        }
        for path, node in view.nodes.items()
    ]
    totals = {
        "components": len(view.nodes),
        "trained_parameters": graph.num_parameters,
        "variables": len(graph.variables),
        "values": sum(v.size for v in graph.variables),
    }
    return {
        "format_version": FORMAT_VERSION,
        "root": view.nodes[""].component,
        "totals": totals,
        "apis": apis,
        "components": components,
        "edges": [asdict(edge) for edge in graph.edges],
    }


def _plain(tree: Any) -> Any:
    if is_spec(tree):
        return {"shape": [d if isinstance(d, str) else int(d) for d in tree.shape], "dtype": tree.dtype}
    if isinstance(tree, Mapping):
        return {str(k): _plain(v) for k, v in tree.items()}
    if isinstance(tree, (tuple, list)):
        return [_plain(v) for v in tree]
    if tree is None or isinstance(tree, (bool, int, str)) or (isinstance(tree, float) and math.isfinite(tree)):
        return tree
    return str(tree)
