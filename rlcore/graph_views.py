"""Views of a ComponentGraph: terminal text, Mermaid, Graphviz, HTML and JSON."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rlcore.component import Component, Variable, walk
from rlcore.component_graph import ComponentGraph, Edge, Node, NoiseInput
from rlcore.specs import SpecTree, is_spec

FORMAT_VERSION = 1
WIDTH = 110
_VARIABLE = ("path", "shape", "dtype", "size", "trainable", "init_path")
ROLES = {
    "trained": "has weights that are learned",
    "frozen": "copy that is never trained, e.g. a target network",
    "state": "has variables that are assigned, not learned",
    "stateless": "has no variables",
}


# -- text of specs -------------------------------------------------------------------------------
def one_line(text: object) -> str:
    """Text without line breaks or other control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def spec_text(tree: SpecTree, room: int | None = None) -> str:
    """A tree of specs on one line. To fit ``room``, what is nested deep is left out, then what comes last."""
    text = _spec_text(tree, 1000, 1000)
    for depth, items in ((2, 1000), (1, 1000), *((1, n) for n in range(9, 0, -1))):
        if room is None or len(text) <= room:
            return text
        text = _spec_text(tree, depth, items)
    return text if room is None or len(text) <= room else text[: max(room - 1, 0)] + "…"


def _spec_text(tree: SpecTree, depth: int, items: int) -> str:
    if isinstance(tree, Mapping):
        parts, brackets = [f"{one_line(k)}: {_spec_text(v, depth - 1, items)}" for k, v in tree.items()], "{}"
    elif isinstance(tree, (tuple, list)):
        parts, brackets = [_spec_text(v, depth - 1, items) for v in tree], "()" if isinstance(tree, tuple) else "[]"
    else:
        return one_line(tree)
    if len(parts) > items:
        parts[items:] = [f"… {len(parts) - items} more"]
    return brackets[0] + ("…" if parts and depth <= 0 else ", ".join(parts)) + brackets[1]


def result_text(outputs: SpecTree, room: int | None = None) -> str:
    return "nothing" if outputs is None else spec_text(outputs, room)


def input_text(api: str, inputs: Mapping[str, SpecTree]) -> str:
    """``minimize(a: ..., b: ...)``; a plain call has no name, and a single argument neither name nor brackets."""
    name = "" if api == "__call__" else one_line(api)
    if len(inputs) == 1:
        only = spec_text(next(iter(inputs.values())))
        return f"{name}({only})" if name else only
    return f"{name}({spec_text(dict(inputs))[1:-1]})"


def signature(api: str, inputs: Mapping[str, SpecTree], outputs: SpecTree, room: int | None = None) -> str:
    """An api's input and output specs on one line."""
    text = f"{input_text(api, inputs)} -> {result_text(outputs)}"
    if room is None or len(text) <= room:
        return text
    rest = len(result_text(outputs)) + 4
    most = max(room - rest, room * 2 // 3)
    given, name = input_text(api, inputs), "" if api == "__call__" else one_line(api)
    if len(inputs) == 1 and len(given) > most:
        only = spec_text(next(iter(inputs.values())), most - len(name) - 2)
        given = f"{name}({only})" if name else only
    elif len(given) > most:
        given = f"{name}({one_line(', '.join(inputs))})"
        given = given if len(given) <= most else given[: most - 1] + "…"
    return f"{given} -> {result_text(outputs, max(room - 4 - len(given), 12))}"


def shape_text(shape: tuple[int | str, ...]) -> str:
    return "[" + ", ".join(one_line(d) for d in shape) + "]"


def variable_text(variable: Variable) -> str:
    dtype = "" if variable.dtype == "float32" else variable.dtype
    return f"{one_line(variable.path.rpartition('.')[2])} {dtype}{shape_text(variable.shape)} = {variable.size:,}"


def noise_text(noise: NoiseInput) -> str:
    api = noise.api if not noise.path else "" if noise.api == "__call__" else f".{noise.api}"
    call = f", call {noise.call + 1}" if noise.call else ""
    return one_line(f"{noise.name}: {noise.noise.kind}{shape_text(noise.shape)} for {noise.path}{api}{call}")


def tied(text: str) -> str:
    """With spaces that don't break a line inside shapes and after names."""
    return re.sub(r"\[[^\[\]]*\]|: | = | in (?=-?\d)", lambda m: m[0].replace(" ", "\xa0"), text)


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


# -- structure -----------------------------------------------------------------------------------
class GraphView:
    """Nesting and roles of a graph's components: what all views share."""

    def __init__(self, graph: ComponentGraph) -> None:
        self.graph = graph
        root = Node("", type(graph.root).__name__)
        self.nodes: dict[str, Node] = {"": graph.nodes.get("", root), **graph.nodes}
        self.children: dict[str, list[str]] = {path: [] for path in self.nodes}
        self.parents: dict[str, str] = {}
        self.components: dict[str, Component] = {c._path or "": c for _, c in walk(graph.root)}
        for path in self.nodes:
            if path:
                self.parents[path] = parent = self._nearest(path)
                self.children[parent].append(path)
        self.ids = {path: f"n{i}" for i, path in enumerate(self.nodes)}

    def _nearest(self, path: str) -> str:
        """The next component upwards that is part of the graph."""
        while path:
            path = path.rpartition(".")[0]
            if path in self.nodes:
                break
        return path

    def name(self, path: str) -> str:
        """Attribute path from the parent component."""
        parent = self.parents.get(path, "")
        return one_line(path[len(parent) + 1 :] if parent else path or self.nodes[""].component)

    def subtree(self, path: str) -> Iterator[str]:
        yield path
        for child in self.children[path]:
            yield from self.subtree(child)

    def variables(self, path: str) -> list[Variable]:
        """Variables of a component and all below it."""
        return [v for p in self.subtree(path) for v in self.nodes[p].variables]

    def frozen(self, path: str) -> bool:
        component = self.components.get(path)
        return component is not None and component._frozen

    def copy_of(self, path: str) -> str | None:
        """Path of the component that a frozen one copies."""
        component = self.components.get(path)
        return component._drawn_as if component is not None and component._frozen else None

    def role(self, path: str) -> str:
        """One of ROLES, for a component with all below it."""
        variables = self.variables(path)
        if self.frozen(path):
            return "frozen"
        if any(v.trainable for v in variables):
            return "trained"
        return "state" if variables else "stateless"

    def variable_role(self, path: str, variable: Variable) -> str:
        return "trained" if variable.trainable else "frozen" if self.frozen(path) else "state"

    def amount(self, path: str) -> str:
        """How many numbers are in a component and all below it; empty for none."""
        variables = self.variables(path)
        trained = sum(v.size for v in variables if v.trainable)
        if trained or not variables:
            return f"{trained:,} trained" if trained else ""
        return f"{sum(v.size for v in variables):,} {self.role(path)}"

    def remarks(self, path: str) -> list[str]:
        """What else there is to say: whose copy it is, and its other paths."""
        found = []
        source, parent = self.copy_of(path), self.parents.get(path, "")
        if source is not None and not self.frozen(parent):
            found.append(f"frozen copy of {one_line(source)}")
        elif self.frozen(path) and not self.frozen(parent):
            found.append("frozen")
        if self.nodes[path].aliases:
            found.append("shared, also at " + ", ".join(map(one_line, self.nodes[path].aliases)))
        return found

    def root_apis(self) -> list[str]:
        return list(dict.fromkeys([*self.graph.apis, *self.nodes[""].apis]))

    def calls(self, api: str) -> list[str]:
        """What a root api calls."""
        found = []
        for e in self.graph.edges:
            if (e.caller, e.caller_api) == ("", api):
                method = f".{e.callee_api}" if e.callee and e.callee_api != "__call__" else ""
                found.append(one_line((e.callee or e.callee_api) + method) + (f" x{e.count}" if e.count > 1 else ""))
        return found

    def inputs(self) -> dict[str, list[str]]:
        """Per root api its inputs as text; a long tree of specs that comes again is told once."""
        told: dict[str, str] = {}

        def lines(api: str, name: str, tree: SpecTree) -> Iterator[str]:
            text = spec_text(tree)
            if isinstance(tree, Mapping) and len(text) > 80:
                if text in told:
                    text = f"same as {told[text]}"
                elif any(isinstance(sub, Mapping) for sub in tree.values()):
                    for key, sub in tree.items():
                        yield from lines(api, f"{name}.{one_line(key)}", sub)
                    return
                else:
                    told[text] = f"{name} of {one_line(api)}"
            yield f"{name}: {text}"

        return {
            n: [line for k, tree in api.inputs.items() for line in lines(n, one_line(k), tree)]
            for n, api in self.graph.apis.items()
        }

    def call_label(self, edge: Edge, room: int = 34) -> str:
        """The callee's api, and its input spec where that is short."""
        inputs = self.nodes[edge.callee].apis.get(edge.callee_api, ({}, None))[0]
        api = one_line("call" if edge.callee_api == "__call__" else edge.callee_api)
        text = input_text(api, inputs)
        text = text if len(text) <= room else f"{api}(…)"
        return text + (f" ×{edge.count}" if edge.count > 1 else "")

    def totals(self) -> str:
        values = sum(v.size for v in self.graph.variables)
        return (
            f"{plural(len(self.nodes), 'component')}, {plural(self.graph.num_parameters, 'trained parameter')}, "
            f"{plural(len(self.graph.variables), 'variable')} with {plural(values, 'value')} in all"
        )


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
