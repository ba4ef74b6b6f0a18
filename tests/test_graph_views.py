"""Views of a ComponentGraph: text, Mermaid, Graphviz, HTML, JSON."""

import itertools
import json
import re
from html.parser import HTMLParser

import gymnasium as gym
import numpy as np
import pytest

from rlcore.agents.dqn import DQN, DQNConfig
from rlcore.assembly import assemble
from rlcore.component import Component, Normal, api, frozen_copy
from rlcore.components.layers import Dense
from rlcore.graph_view import GraphView, signature, spec_text
from rlcore.graph_views import to_dict, to_dot, to_html, to_mermaid, to_text
from rlcore.specs import TensorSpec, from_space

ODD = 'a "b" <c> [d] {e} | & # \\N `f`\nend;'
VECTOR = TensorSpec(("B", 3))


class Branch(Component):
    def __init__(self, torso):
        self.torso, self.out = torso, Dense(2)

    @api
    def __call__(self, x):
        return self.out(self.torso(x))


class Group(Component):
    """Never called itself."""

    def __init__(self):
        self.inner = Dense(2)


class Odd(Component):
    """A shared torso, a frozen copy, odd names, root variables, a root api that calls another, an opaque input."""

    def __init__(self):
        self.torso = Dense(4)
        self.branches = {"left": Branch(self.torso), ODD: Branch(self.torso)}
        self.copy = frozen_copy(self.torso)
        self.group = Group()

    def build(self, x):
        self.steps = self.variable("steps", (), trainable=False)

    @api(noise={"jitter": Normal("B", 3)})
    def act(self, x, *, jitter):
        return self.both({"x": x + jitter})

    @api
    def both(self, pair):
        return tuple(branch(pair["x"]) for branch in self.branches.values())

    @api
    def compare(self, x):
        return self.measure(x, lambda v: v)

    @api
    def measure(self, x, distance):
        return {ODD: self.ops.mean(distance(self.torso(x) - self.copy(x))), "inner": self.group.inner(x)}

    @api
    def reset(self):
        return None


@pytest.fixture(scope="module")
def dqn():
    env = gym.make("CartPole-v1")
    observation, action = from_space(env.observation_space), from_space(env.action_space)
    root = DQN(observation, action, DQNConfig(dueling=True))
    return assemble(root, root.api_inputs())


@pytest.fixture(scope="module")
def odd():
    inputs = {"act": {"x": VECTOR}, "both": {"pair": {"x": VECTOR}}, "compare": {"x": VECTOR}, "reset": {}}
    return assemble(Odd(), inputs)


def text_paths(text):
    """Component paths of the tree that to_text drew."""
    paths, stack = [], []
    tree = text.split("Components\n\n")[1]
    for line in tree.splitlines():
        found = re.match(r"((?:│  |   )*)[├└]─ (.*?): \w+(?:  |$)", line)
        if found:
            depth = len(found[1]) // 3
            stack[depth:] = [found[2]]
            paths.append(".".join(stack))
    return paths


class Tags(HTMLParser):
    """Fails on tags that don't match; collects the tags, attributes and text."""

    void = frozenset({"meta", "br", "wbr"})

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.texts, self.rects = [], [], [], []
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open[-2:] == ["rect", "title"]:
            self.rects.append(data.splitlines()[0])


# -- terminal
def test_text_holds_every_component_path(dqn):
    assert text_paths(to_text(dqn)) == [path for path in dqn.nodes if path]


def test_text_of_root_apis(dqn):
    apis = to_text(dqn).split("Components")[0]
    for name in dqn.apis:
        assert f"\n  {name}\n" in apis
    assert "noise  explore: uniform[B] for exploration" in apis
    assert "action: int64[B] in 0..1" in apis and "out    nothing" in apis
    assert "calls  target_network, q_network, optimizer.minimize" in apis


def test_text_fits_and_tells_variables_once(dqn):
    text = to_text(dqn)
    assert max(map(len, text.splitlines())) <= 110
    assert text.count("trained: kernel [4, 64] = 256, bias [64] = 64") == 1
    assert text.count("frozen: kernel [4, 64] = 256, bias [64] = 64") == 1
    assert "frozen copy of q_network; 4,675 frozen in all" in text
    assert "state: first_moment [4675] = 4,675" in text
    assert len(re.findall(r"─ q_network: QNetwork +float32\[B, 4\] -> float32\[B, 2\]", text)) == 1
    assert text.splitlines()[-1] == "27 components, 4,675 trained parameters, 19 variables with 18,701 values in all"


def test_text_tells_a_long_observation_once():
    space = gym.spaces.Dict({f"sensor_{i}": gym.spaces.Box(-1, 1, (i + 1,)) for i in range(9)})
    root = DQN(from_space(space), from_space(gym.spaces.Discrete(2)), DQNConfig())
    graph = assemble(root, root.api_inputs())
    apis = to_text(graph).split("Components")[0]
    table = to_html(graph).split("Root apis")[1].split("Components and")[0].replace("\xa0", " ")
    for text in (apis, table):
        assert text.count("sensor_8: float32[B, 9]") == 1
        assert text.count(": same as observation of act") == 4 and "batch.next_observation:" in text
    assert max(map(len, to_text(graph).splitlines())) <= 110
    assert re.search(r"\{sensor_0: float32\[B, 1\], [^<]*… \d more\} -&gt; float32\[B, 2\]", to_html(graph))


def test_text_of_odd_names_stays_on_its_lines(odd):
    text = to_text(odd)
    assert "branches.left: Branch" in text and "\nend" not in text and "\\nend" in text
    assert "shared, also at branches.left.torso, branches." in text
    assert "state: steps [] = 1" in text
    assert "group.inner: Dense" in text  # its parent is no part of the graph
    assert "calls  both" in text


# -- Mermaid
def test_mermaid_is_balanced_with_unique_ids(dqn, odd):
    for graph in (dqn, odd):
        source = to_mermaid(graph)
        lines = [line.strip() for line in source.splitlines()]
        assert sum(line.startswith("subgraph ") for line in lines) == lines.count("end")
        ids = re.findall(r"^ *(?:subgraph )?(\w+)(?:\[|\(\[)\"", source, re.MULTILINE)
        assert len(ids) == len(set(ids))
        arrows = re.findall(r'^  (\w+) -->\|"[^"|<>`]*"\| (\w+)$', source, re.MULTILINE)
        assert len(arrows) == len(graph.edges)
        assert {i for arrow in arrows for i in arrow} <= set(ids)
        boxes = [i for i in ids if re.fullmatch(r"n\d+", i)]
        assert len(boxes) == len(graph.nodes) - 1


def test_mermaid_labels(dqn, odd):
    source = to_mermaid(dqn)
    assert '["target_network: QNetwork<br/>4,675 frozen<br/>frozen copy of q_network"]:::frozen' in source
    assert re.search(r'-->\|"call\(float32\[B, 4\]\) ×5"\|', source)
    label = re.search(r'subgraph \w+\["(branches.a .*)"\]', to_mermaid(odd))[1]
    assert not re.search(r'["<>|`&\\]', label)
    plain = re.sub(r"#(\d+);", lambda m: chr(int(m[1])), label)
    assert plain == "branches." + ODD.replace("\n", "\\n")


# -- Graphviz
def test_dot_is_balanced(dqn, odd):
    for graph in (dqn, odd):
        source = to_dot(graph)
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', source)
        assert bare.count("{") == bare.count("}") and bare.count('"') % 2 == 0
        assert not re.search(r"[<&|`\\]", bare)
        assert bare.count(" -> ") == len(graph.edges)
        assert len(re.findall(r"^ *n\d+ \[", bare, re.MULTILINE)) == len(graph.nodes) - 1
    assert '\\"b\\" <c>' in to_dot(odd) and "\\\\N" in to_dot(odd) and "\\\\nend" in to_dot(odd)


# -- HTML
def test_html_holds_everything_and_loads_nothing(dqn, odd):
    for graph in (dqn, odd):
        source = to_html(graph)
        assert source.count("http://") == 1 and "https://" not in source  # the svg's xmlns
        parsed = Tags(source)
        tags = [tag for tag, _ in parsed.tags]
        assert not {"script", "link", "img", "iframe", "object"} & set(tags)
        assert not any({"src", "href", "onclick", "style"} & set(attributes) for _, attributes in parsed.tags)
        assert sum(a.get("class") == "call" for t, a in parsed.tags if t == "path") == len(graph.edges)
        want = [path.replace("\n", "\\n") for path in graph.nodes if path]
        assert parsed.rects == want
        text = "".join(parsed.texts)
        assert all(path in text for path in want)
        assert "prefers-color-scheme: dark" in source and "@import" not in source and "url(#tip)" in source


def test_html_escapes(odd):
    source = to_html(odd)
    assert "<c>" not in source and "&lt;c&gt;" in source and "&quot;b&quot;" in source


def test_html_boxes_lie_inside_the_drawing(dqn, odd):
    for graph in (dqn, odd):
        parsed = Tags(to_html(graph))
        size = [float(n) for n in next(a["viewbox"] for t, a in parsed.tags if t == "svg").split()]
        boxes = [a for t, a in parsed.tags if t == "rect"]
        for a in boxes:
            assert float(a["x"]) + float(a["width"]) <= size[2] and float(a["y"]) + float(a["height"]) <= size[3]
        apis = sorted(float(a["y"]) for a in boxes if "class" not in a)
        assert all(b - a >= 38 for a, b in itertools.pairwise(apis))


# -- JSON
def test_dict_round_trip(dqn, odd):
    for graph in (dqn, odd):
        data = to_dict(graph)
        assert json.loads(json.dumps(data, allow_nan=False)) == data
        assert data["format_version"] == 1
        assert [c["path"] for c in data["components"]] == list(graph.nodes)
        assert len(data["edges"]) == len(graph.edges)
        assert sum(v["size"] for c in data["components"] for v in c["variables"]) == data["totals"]["values"]


def test_dict_content(dqn, odd):
    data = to_dict(dqn)
    assert data["root"] == "DQN" and data["totals"]["trained_parameters"] == dqn.num_parameters == 4675
    assert data["apis"]["act"]["inputs"]["observation"] == {"shape": ["B", 4], "dtype": "float32"}
    assert data["apis"]["act"]["noise"][0]["kind"] == "uniform" and data["apis"]["sync"]["outputs"] is None
    parts = {c["path"]: c for c in data["components"]}
    assert parts["optimizer"]["apis"]["minimize"]["inputs"]["loss_fn"] == "function"
    assert parts["target_network"]["copy_of"] == "q_network" and parts["target_network.head"]["role"] == "frozen"
    assert parts["q_network"]["role"] == "trained" and parts["exploration"]["role"] == "stateless"
    frozen = parts["target_network.head.value"]["variables"][0]
    assert not frozen["trainable"] and frozen["init_path"] == "q_network.head.value.kernel"

    data = to_dict(odd)
    parts = {c["path"]: c for c in data["components"]}
    assert parts["torso"]["aliases"] == ["branches.left.torso", f"branches.{ODD}.torso"]
    assert parts["copy"]["role"] == "frozen" and parts["copy"]["copy_of"] == "torso"
    assert parts["group.inner"]["parent"] == "" and parts["branches.left.out"]["parent"] == "branches.left"
    assert {"caller": "", "caller_api": "act", "callee": "", "callee_api": "both", "count": 1} in data["edges"]


# -- pieces
def test_short_specs():
    tree = {f"sensor_{i}": {"x": TensorSpec(("B", i))} for i in range(9)}
    assert spec_text(tree).count("float32") == 9
    short = spec_text(tree, 60)
    assert len(short) <= 60 and short.startswith("{sensor_0: {…}") and "more}" in short
    assert len(spec_text(tree, 8)) == 8
    assert spec_text({"a": np.int64(3), "b": None, "c": "function"}) == "{a: 3, b: None, c: function}"
    assert signature("__call__", {"x": TensorSpec(())}, None) == "float32[] -> nothing"
    assert signature("step", {}, None) == "step() -> nothing"
    assert len(signature("go", {"a": tree, "b": tree}, tree, 80)) <= 80


def test_a_root_without_parts():
    class Alone(Component):
        @api
        def go(self, x):
            return x

    graph = assemble(Alone(), {"go": {"x": VECTOR}})
    assert to_text(graph).endswith("1 component, 0 trained parameters, 0 variables with 0 values in all\n")
    assert "go" in to_mermaid(graph) and "go" in to_dot(graph)
    Tags(to_html(graph))
    assert GraphView(graph).role("") == "stateless"
