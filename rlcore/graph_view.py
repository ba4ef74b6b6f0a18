"""What the views of a ComponentGraph share: specs as text, nesting, roles, remarks and totals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rlcore.component import Component, Variable, walk
from rlcore.component_graph import ComponentGraph, Edge, Node, NoiseInput
from rlcore.specs import SpecTree

WIDTH = 110
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
