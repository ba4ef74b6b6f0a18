"""A ComponentGraph as one HTML page: an inline drawing and tables, without scripts or network."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from rlcore.component import Variable
from rlcore.component_graph import ComponentGraph, Edge
from rlcore.graph_view import (
    ROLES,
    GraphView,
    noise_text,
    one_line,
    result_text,
    shape_text,
    signature,
    spec_text,
    tied,
)

_ROW, _LINE, _GAP, _INDENT = 26, 16, 7, 22  # heights of a box's first and further lines, space between, nesting
_LEFT, _API, _REACH = 24, 150, 110  # margin, width of a root api's box, room for arrows to the components
_CHAR, _MONO = 6.9, 6.7  # widths of a character
_SPEC = 74  # longest spec drawn

_CSS = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c1f23; --dim: #646b74; --line: #d5d9de; --arrow: #7b838d;
  --soft: #f5f6f8; --trained: #dcefdf; --trained-line: #3f8a50; --frozen: #dde9f8; --frozen-line: #4778b5;
  --state: #f8ebd2; --state-line: #ad7d1f; --stateless: #f0f1f3; --stateless-line: #9aa1aa; }
@media (prefers-color-scheme: dark) { :root { --page: #16191d; --ink: #e4e7eb; --dim: #98a1ac; --line: #353b43;
  --arrow: #8b95a1; --soft: #1e2328; --trained: #1d3524; --trained-line: #5fae72; --frozen: #1b2d45;
  --frozen-line: #6c9fdc; --state: #3b2f16; --state-line: #cf9f45; --stateless: #252a30; --stateless-line: #67707b; } }
body { margin: 0 auto; padding: 24px 28px 48px; max-width: 1280px; background: var(--page); color: var(--ink);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { margin: 0; font-size: 24px; } h2 { margin: 32px 0 8px; font-size: 17px; }
p { margin: 4px 0; color: var(--dim); }
code, svg .spec { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 11px; }
code { font-size: 12px; overflow-wrap: break-word; }
.wide { overflow-x: auto; }
svg { display: block; } svg text { fill: var(--ink); font-size: 12px; } svg .name { font-weight: 600; }
svg .dim, svg .spec { fill: var(--dim); }
svg rect { fill: var(--page); stroke: var(--line); }
svg .call { fill: none; stroke: var(--arrow); stroke-width: 1.2; } svg marker path { fill: var(--arrow); }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--dim); font-weight: 600; font-size: 12px; } td.line { white-space: nowrap; }
.number { text-align: right; }
td.path { font-weight: 600; } .parts td.path { min-width: 290px; } td small { color: var(--dim); }
.key { display: inline-block; margin: 8px 16px 4px 0; } .role { padding: 1px 8px; border: 1px solid; border-radius: 9px;
  font-size: 12px; white-space: nowrap; }
""" + "".join(
    f"svg rect.{r} {{ fill: var(--{r}); stroke: var(--{r}-line); }}\n"
    f".role.{r} {{ background: var(--{r}); border-color: var(--{r}-line); }}\n"
    for r in ROLES
)


def page(graph: ComponentGraph) -> str:
    view = GraphView(graph)
    name = escape(one_line(view.nodes[""].component))
    keys = "".join(f'<span class="key">{_badge(r)} {escape(text)}</span>' for r, text in ROLES.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}: component graph</title>
<style>{_CSS}</style>
</head>
<body>
<h1>{name}</h1>
<p>{escape(view.totals())}</p>
<h2>Component graph</h2>
<p>A box inside another is a part of it, an arrow is a call. Beside each name: specs of what goes in and comes out.</p>
<div>{keys}</div>
<div class="wide">
{_Drawing(view).svg()}
</div>
<h2>Root apis</h2>
<div class="wide">{_api_table(view)}</div>
<h2>Components and variables</h2>
<div class="wide">{_component_table(view)}</div>
</body>
</html>
"""


# -- tables --------------------------------------------------------------------------------------
def _badge(role: str) -> str:
    return f'<span class="role {role}">{role}</span>'


def _codes(texts: Iterable[str]) -> str:
    return "<br>".join(f"<code>{escape(tied(t))}</code>" for t in texts)


def _row(*cells: str) -> str:
    return "<tr>" + "".join(c if c.startswith("<td") else f"<td>{c}</td>" for c in cells) + "</tr>\n"


def _variable(view: GraphView, path: str, variable: Variable) -> str:
    name, role = one_line(variable.path.rpartition(".")[2]), view.variable_role(path, variable)
    return f"{name} {variable.dtype}{shape_text(variable.shape)}" + (f" {role}" if role != view.role(path) else "")


def _api_table(view: GraphView) -> str:
    rows, inputs = "", view.inputs()
    for name, api in view.graph.apis.items():
        rows += _row(
            f'<td class="path">{escape(one_line(name))}</td>',
            _codes(inputs[name]),
            _codes(map(noise_text, api.noise)),
            _codes([result_text(api.outputs)]),
            _codes(view.calls(name)),
        )
    return f"<table><tr><th>api</th><th>inputs</th><th>noise</th><th>output</th><th>calls</th></tr>\n{rows}</table>"


def _component_table(view: GraphView) -> str:
    rows = ""
    for path, node in view.nodes.items():
        remarks = "; ".join(view.remarks(path))
        title = re.sub(r"\.(?=\D)", ".<wbr>", escape(one_line(path))) or "<i>root</i>"
        rows += _row(
            f'<td class="path">{title}' + (f"<br><small>{escape(remarks)}</small>" if remarks else "") + "</td>",
            escape(one_line(node.component)),
            _codes(signature(n, i, o) for n, (i, o) in node.apis.items()) if path else "<small>see above</small>",
            _badge(view.role(path)),
            '<td class="line">' + _codes(_variable(view, path, v) for v in node.variables) + "</td>",
            '<td class="line number">' + _codes(f"{v.size:,}" for v in node.variables) + "</td>",
        )
    heads = "<th>path</th><th>class</th><th>apis</th><th>role</th><th>variables</th>"
    return f'<table class="parts"><tr>{heads}<th class="number">values</th></tr>\n{rows}</table>'


# -- drawing -------------------------------------------------------------------------------------
class _Drawing:
    """Root apis in a column on the left; to the right the components as nested boxes, one below the other."""

    def __init__(self, view: GraphView) -> None:
        self.view = view
        self.x: dict[str, float] = {}
        self.y: dict[str, float] = {}
        self.height: dict[str, float] = {}
        self.parts: list[str] = []
        self.first = _LEFT + _API + _REACH
        y = 20.0
        for path in view.children[""]:
            y = self.place(path, self.first, y) + 2 * _GAP
        self.bottom = y
        paths = list(self.x)
        self.specs = 14 + max((self.x[p] + 20 + _CHAR * len(self.title(p)) for p in paths), default=self.first)
        self.longest = max((len(t) for p in paths for t in self.lines(p)), default=0)
        self.counts = self.specs + self.longest * _MONO + 14
        depth = max((self.x[p] - self.first for p in paths), default=0.0) / _INDENT
        self.right = self.counts + 110 + 7 * depth
        self.api_y = self.place_apis()

    # -- places
    def title(self, path: str) -> str:
        return f"{self.view.name(path)}: {one_line(self.view.nodes[path].component)}"

    def lines(self, path: str) -> list[str]:
        return [signature(n, i, o, _SPEC) for n, (i, o) in self.view.nodes[path].apis.items()]

    def place(self, path: str, x: float, y: float) -> float:
        """Give a component and all below it their places; returns the lower edge."""
        self.x[path], self.y[path] = x, y
        bottom = y + self.head(path)
        for child in self.view.children[path]:
            bottom = self.place(child, x + _INDENT, bottom + (_GAP if bottom > y + self.head(path) else 3))
        if self.view.children[path]:
            bottom += _GAP
        self.height[path] = bottom - y
        return bottom

    def head(self, path: str) -> float:
        further = len(self.lines(path)) - 1 + len(self.view.remarks(path))
        return _ROW + _LINE * max(further, 0)

    def width(self, path: str) -> float:
        return self.right - 7 * (self.x[path] - self.first) / _INDENT - self.x[path]

    def middle(self, path: str) -> float:
        return self.y[path] + _ROW / 2

    def place_apis(self) -> dict[str, float]:
        """Each api beside what it calls, in their order, none over another."""
        found: dict[str, float] = {}
        y = 20.0
        for name in self.view.root_apis():
            calls = [e for e in self.view.graph.edges if (e.caller, e.caller_api) == ("", name)]
            ends = [self.middle(e.callee) for e in calls if e.callee]
            y = max(y, sum(ends) / len(ends) - 19 if ends else y)
            found[name] = y
            y += 38 + 14
        over = y - self.bottom
        if over > 0 and found:  # move up what stands too low, from the last one on
            limit = max(self.bottom, 20.0 + 52 * len(found))
            for name in reversed(found):
                found[name] = min(found[name], limit - 52)
                limit = found[name]
        self.bottom = max(self.bottom, *(y + 52 for y in found.values())) if found else self.bottom
        return found

    # -- lines and boxes
    def svg(self) -> str:
        for path in self.x:
            self.box(path)
        for name, y in self.api_y.items():
            self.api_box(name, y)
        lane = self.right + 16
        entries: dict[str, int] = {}
        for edge in self.view.graph.edges:
            if edge.caller and edge.callee and self.view.parents.get(edge.callee) == edge.caller:
                self.call(edge, self.elbow(edge))
            elif not edge.caller and edge.callee:
                number = entries[edge.callee] = entries.get(edge.callee, 0) + 1
                self.call(edge, self.from_api(edge, number))
            elif edge.caller and edge.callee:
                self.call(edge, self.arc(edge, lane))
                lane += 14 + (0 if edge.callee_api == "__call__" else _MONO * min(len(edge.callee_api), 16))
            else:
                self.call(edge, self.between_apis(edge))
        width, height = lane + 14, self.bottom + 10
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="component graph">\n'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0.5 L8 4 L0 7.5 z"/></marker></defs>\n' + "\n".join(self.parts) + "\n</svg>"
        )

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>')

    def box(self, path: str) -> None:
        view, x, y = self.view, self.x[path], self.y[path]
        apis = view.nodes[path].apis.items()
        full = "\n".join([one_line(path), *(signature(n, i, o) for n, (i, o) in apis)])
        self.parts.append(
            f'<rect class="{view.role(path)}" x="{x:.1f}" y="{y:.1f}" width="{self.width(path):.1f}" '
            f'height="{self.height[path]:.1f}" rx="5"><title>{escape(full)}</title></rect>'
        )
        name = view.name(path)
        self.parts.append(
            f'<text x="{x + 10:.1f}" y="{y + 17:.1f}"><tspan class="name">{escape(name)}</tspan>'
            f'<tspan class="dim" dx="6">{escape(one_line(view.nodes[path].component))}</tspan></text>'
        )
        for i, line in enumerate(self.lines(path)):
            self.text(self.specs, y + 17 + i * _LINE, line, "spec")
        for i, line in enumerate(view.remarks(path)):
            self.text(x + 10, y + 17 + (max(len(apis) - 1, 0) + 1 + i) * _LINE, line, "dim")
        self.text(self.counts + 96, y + 17, view.amount(path), "", "end")

    def api_box(self, name: str, y: float) -> None:
        api = self.view.graph.apis.get(name)
        self.parts.append(f'<rect x="{_LEFT}" y="{y:.1f}" width="{_API}" height="38" rx="19"/>')
        middle = _LEFT + _API / 2
        room = int((_API - 24) / _MONO)
        self.text(middle, y + (16 if api else 23), one_line(name)[:24], "name", "middle")
        if api:
            self.text(middle, y + 30, "-> " + result_text(api.outputs, room - 3), "spec", "middle")

    # -- arrows
    def call(self, edge: Edge, path: str) -> None:
        """An arrow with what it calls as its tooltip."""
        caller = f"{edge.caller}.{edge.caller_api}" if edge.caller else edge.caller_api
        label = f"{caller} calls {self.view.call_label(edge, 10**6)}"
        self.parts.append(
            f'<path class="call" d="{path}" marker-end="url(#tip)"><title>{escape(one_line(label))}</title></path>'
        )

    def elbow(self, edge: Edge) -> str:
        x, y = self.x[edge.caller] + 9, self.y[edge.caller] + self.head(edge.caller) - 4
        return f"M{x:.1f} {y:.1f} V{self.middle(edge.callee):.1f} H{self.x[edge.callee] - 1:.1f}"

    def from_api(self, edge: Edge, number: int) -> str:
        """A curve to a component's left edge; several arrive one below the other."""
        x, y = _LEFT + _API, self.api_y[edge.caller_api] + 19
        end_x = self.x[edge.callee] - 1
        end_y = self.y[edge.callee] + min(5.0 + 5 * (number - 1), self.head(edge.callee) - 3)
        bend = _REACH * 0.55
        return f"M{x} {y:.1f} C{x + bend:.1f} {y:.1f} {end_x - bend:.1f} {end_y:.1f} {end_x:.1f} {end_y:.1f}"

    def arc(self, edge: Edge, x: float) -> str:
        """Around the right side at ``x``, with the api's name; also to another api of the same component."""
        start_x, end_x = (self.x[p] + self.width(p) for p in (edge.caller, edge.callee))
        start_y, end_y = self.middle(edge.caller) + 3, self.middle(edge.callee) - 3
        if edge.caller == edge.callee:
            start_y, end_y = start_y - 8, end_y + 10
        if edge.callee_api != "__call__":
            self.text(x + 5, (start_y + end_y) / 2 + 4, spec_text(edge.callee_api, 16), "spec")
        middle = (start_y + end_y) / 2
        out = f"M{start_x:.1f} {start_y:.1f} H{x - 5:.1f} Q{x:.1f} {start_y:.1f} {x:.1f} {middle:.1f}"
        return f"{out} Q{x:.1f} {end_y:.1f} {x - 5:.1f} {end_y:.1f} H{end_x + 1:.1f}"

    def between_apis(self, edge: Edge) -> str:
        """On the left: a root api that calls another."""
        start = self.api_y[edge.caller_api] + 25 if not edge.caller else self.middle(edge.caller)
        end = self.api_y[edge.callee_api] + 13
        x = _LEFT if not edge.caller else self.x[edge.caller]
        return f"M{x} {start:.1f} C{x - 24} {start:.1f} {_LEFT - 24} {end:.1f} {_LEFT - 1} {end:.1f}"
