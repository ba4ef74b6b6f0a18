"""Assembly: a root component and input specs -> ComponentGraph.

The NumPy backend is the shape oracle. Each root api runs on two probe batches of different lengths,
sampled from its input specs. The first run creates the variables, both are recorded: a length that
follows the probe is a named axis, any other is fixed.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlcore.backends.numpy.gradients import value_and_grad
from rlcore.backends.numpy.ops import ops_class
from rlcore.component import ApiInfo, Component, Parameters, Variable, apis_of, join, spec_of, walk
from rlcore.component_graph import ApiGraph, ComponentGraph, Edge, Node, NoiseInput
from rlcore.errors import BuildError, RLCoreError, SpecError, nearest
from rlcore.layout import find_parameters, slots_of
from rlcore.specs import SpecTree, TensorSpec, describe, is_spec, map_specs, sample, spec_leaves

ApiInputs = Mapping[str, Mapping[str, SpecTree]]
_PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)


def assemble(root: Component, inputs: ApiInputs) -> ComponentGraph:
    """Find out what ``root`` is made of.

    :param root: left untouched; its own copy is assembled.
    :param inputs: root api -> argument -> tree of TensorSpecs, in the order in which to probe. Only these
        apis, and the variables they reach, become part of the graph.
    :raises BuildError: names the component's path, the api, the specs given and what was expected.
    """
    known = apis_of(type(root))
    for name, arguments in inputs.items():
        if name not in known:
            raise BuildError(
                f"no api '{name}'.{nearest(name, known)} Its apis: {', '.join(known) or 'none'}",
                path="",
                component=type(root).__name__,
            )
        wanted = set(known[name].inputs)
        if set(arguments) - wanted or any(
            known[name].signature.parameters[a].default is inspect.Parameter.empty for a in wanted - set(arguments)
        ):
            raise BuildError(
                "the input specs don't name its arguments",
                path="",
                component=type(root).__name__,
                api=name,
                given=", ".join(arguments),
                expected=", ".join(known[name].inputs),
            )
    leaves = [leaf for arguments in inputs.values() for leaf in spec_leaves(dict(arguments))]
    axes = sorted({a for leaf in leaves for a in leaf.axes if a})
    taken = {d for leaf in leaves for d in leaf.shape if isinstance(d, int)}
    taken |= {v for _, c in walk(root) for v in vars(c).values() if isinstance(v, int)}
    free = [p for p in _PRIMES if p not in taken]
    problem: RLCoreError | None = None
    for attempt in range(2):  # a fixed length can equal a probe's by chance: then other probes tell
        start = 2 * attempt * len(axes)
        lengths = free[start : start + 2 * len(axes)]
        probes = [dict(zip(axes, lengths[i::2], strict=True)) for i in range(2)]
        try:
            return _Assembly(root, inputs, probes).run()
        except _Coincidence as e:
            problem = e
        except BuildError as e:
            if not axes or problem is not None:
                raise
            problem = e
    assert problem is not None
    raise problem


class _Coincidence(RLCoreError):
    """A fixed length equalled a probe's length when a component was built."""


@dataclass
class _Call:
    path: str
    api: str
    caller: tuple[str, str] | None
    inputs: Any
    outputs: Any = None
    built_with: Any = None


class _Assembly:
    def __init__(self, root: Component, inputs: ApiInputs, probes: Sequence[Mapping[str, int]]) -> None:
        self.root, self.inputs, self.probes = copy.deepcopy(root), inputs, probes
        self.ops = _ProbeOps(self)
        self.rng = np.random.default_rng(0)
        self.sizes = probes[0]
        self.calls: list[_Call] = []
        self.stack: list[_Call] = []
        self.noise: list[NoiseInput] = []
        self.adopted: dict[str, Component] = {}
        self.aliases: dict[str, list[str]] = {}
        self.values: list[tuple[Component, str, Variable]] = []

    # -- the run ---------------------------------------------------------------------------------
    def run(self) -> ComponentGraph:
        self.adopt()
        for _, handle in find_parameters(self.root):
            handle.__class__ = _ProbeParameters
        apis: dict[str, ApiGraph] = {}
        edges: dict[tuple[str, str, str, str], int] = {}
        nodes: dict[str, Node] = {}
        for api_name, specs in self.inputs.items():
            passes = [self.probe(api_name, specs, sizes) for sizes in self.probes]
            (calls, noise), (calls_2, _) = passes[0], passes[1] if len(passes) > 1 else passes[0]
            if [(c.path, c.api) for c in calls] != [(c.path, c.api) for c in calls_2]:
                raise BuildError(
                    "which components it calls depends on the values or the length of the batch",
                    path="",
                    component=type(self.root).__name__,
                    api=api_name,
                )
            for one, two in zip(calls, calls_2, strict=True):
                inputs, outputs = self.merge(one.inputs, two.inputs), self.merge(one.outputs, two.outputs)
                if one.built_with is not None and one.built_with != {n: inputs[n] for n in one.built_with}:
                    raise _Coincidence(f"{one.path}.{one.api}: {one.built_with} is {inputs}")
                node = nodes.setdefault(one.path, Node(one.path, self.name_of(self.adopted[one.path])))
                node.apis.setdefault(one.api, (inputs, outputs))
                if one.caller is not None:
                    key = (*one.caller, one.path, one.api)
                    edges[key] = edges.get(key, 0) + 1
            root_call = calls[0]
            outputs = self.merge(root_call.outputs, calls_2[0].outputs)
            reached = frozenset(c.path for c in calls)
            apis[api_name] = ApiGraph(
                api_name, dict(specs), outputs, tuple(noise), reached, self.writes, self.gradients
            )
        ordered: dict[str, Node] = {}
        for path, component in self.adopted.items():
            if path in nodes or component._bindings:
                node = ordered[path] = nodes.get(path) or Node(path, self.name_of(component))
                node.variables = list((component._bindings or {}).values())
                node.aliases = self.aliases.get(path, [])
        self.release()
        sorted_edges = tuple(Edge(*key, count) for key, count in edges.items())
        return ComponentGraph(self.root, apis, ordered, sorted_edges)

    def probe(
        self, api_name: str, specs: Mapping[str, SpecTree], sizes: Mapping[str, int]
    ) -> tuple[list[_Call], list[NoiseInput]]:
        self.sizes, self.calls, self.noise, self.writes, self.gradients = sizes, [], [], False, False
        arguments = {name: sample(tree, self.rng, sizes) for name, tree in specs.items()}
        for component in self.adopted.values():
            component._noise = _ProbeNoise(self, component)
        with np.errstate(all="ignore"):
            getattr(self.root, api_name)(**arguments)
        for component, attribute, variable in self.values:  # an update changes what the next api should see
            setattr(component, attribute, variable.draw(0))
        return self.calls, self.noise

    # -- instrumentation: only while assembling ---------------------------------------------------
    def adopt(self) -> None:
        """Give every component of the tree its path, the probe's ops, and apis that record."""
        known = {id(c): p for p, c in self.adopted.items()}
        paths: dict[int, list[str]] = {}

        def visit(path: str, component: Component) -> None:
            paths.setdefault(id(component), []).append(path)
            if len(paths[id(component)]) > 1:
                return
            if id(component) not in known:
                self.adopted[path] = component
                component._path, component.ops = path, self.ops
                component._noise = _ProbeNoise(self, component)
                vars(component)["_assembly"] = self
                cls: Any = type(component)
                component.__class__ = _recording(cls)
            for name, child in component.children():
                visit(join(path, name), child)

        visit("", self.root)
        self.aliases = {ps[0]: ps[1:] for ps in paths.values() if len(ps) > 1}
        for component in list(self.adopted.values()):
            if component._mirrors is not None:
                source = component._mirrors._path
                if source is None:
                    raise BuildError(
                        "it is a frozen copy of a component that is not in the tree",
                        path=component._path or "",
                        component=self.name_of(component),
                        expected="the source of frozen_copy(...) as an attribute too",
                    )
                for sub, part in walk(component):
                    part._drawn_as = join(source, sub) if sub else source

    def release(self) -> None:
        """Give the components back their own classes; take out everything of the probe."""
        for component in self.adopted.values():
            component.__class__ = type(component).__mro__[1]
            for name in ("ops", "_noise", "_assembly"):
                vars(component).pop(name, None)
            for name, variable in (component._bindings or {}).items():
                setattr(component, name, variable)
            component._bindings = component._bindings or {}
        for _, handle in find_parameters(self.root):
            handle.__class__ = Parameters

    @staticmethod
    def name_of(component: Component) -> str:
        cls = type(component)
        return cls.__mro__[1].__name__ if "_rl_recording" in vars(cls) else cls.__name__

    def call(self, component: Component, info: ApiInfo, method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        path = component._path or ""
        given: dict[str, Any] = {}
        try:
            bound = info.signature.bind(component, *args, **kwargs) if not info.noise else None
            values = dict(list(bound.arguments.items())[1:]) if bound else {**dict(zip(info.inputs, args)), **kwargs}  # noqa: B905
            given = {n: self.named(spec_of(v)) for n, v in values.items() if n not in info.noise}
            caller = (self.stack[-1].path, self.stack[-1].api) if self.stack else None
            call = _Call(path, info.name, caller, {n: spec_of(values[n]) for n in given})
            self.calls.append(call)
            self.stack.append(call)
            try:
                if component._bindings is None and all(n in given for n in _build_inputs(component)):
                    call.built_with = self.build(component, given)
                out = method(component, *args, **kwargs)
            finally:
                self.stack.pop()
            call.outputs = spec_of(out)
            return out
        except BuildError:
            raise
        except Exception as e:
            raise BuildError(
                self.reason(e),
                path=path,
                component=self.name_of(component),
                api=info.name,
                given=", ".join(f"{n}: {describe(s)}" for n, s in given.items()),
                expected=f"a key {e}" if isinstance(e, KeyError) else getattr(e, "expected", None),
            ) from e

    @staticmethod
    def reason(e: Exception) -> str:
        if isinstance(e, KeyError):
            return f"no key {e} in its input"
        return str(e) if isinstance(e, SpecError) else f"{type(e).__name__}: {e}"

    def build(self, component: Component, given: Mapping[str, Any]) -> dict[str, Any]:
        specs = {n: given[n] for n in _build_inputs(component)}
        component._building = True
        try:
            component.build(**specs)
        finally:
            del component._building
        bindings = {n: v for n, v in vars(component).items() if isinstance(v, Variable)}
        for attribute, variable in bindings.items():
            setattr(component, attribute, variable.draw(0))
            self.values.append((component, attribute, variable))
        component._bindings = bindings
        self.adopt()  # build() may have made sub-components
        return specs

    # -- specs -----------------------------------------------------------------------------------
    def named(self, specs: Any) -> Any:
        """Concrete specs with the lengths of the running probe replaced by axis names."""
        lengths = _derived(self.sizes)

        def name(spec: Any) -> Any:
            if not is_spec(spec):
                return spec
            return TensorSpec(tuple(lengths.get(d, d) for d in spec.shape), spec.dtype)

        return map_specs(name, specs)

    def merge(self, one: Any, two: Any) -> Any:
        """One spec tree of the same call in two probes."""
        if len(self.probes) < 2 or not self.probes[0]:
            return one
        first, second = (_derived(p) for p in self.probes)

        def axis(a: Any, b: Any) -> Any:
            if a == b:
                return a
            return first[a] if a in first and first[a] == second.get(b) else f"{a}|{b}"

        def merge(a: Any, b: Any) -> Any:
            if not (is_spec(a) and is_spec(b)):
                return a
            if len(a.shape) != len(b.shape):
                raise SpecError(f"the rank of a tensor depends on the length of the batch: {a}, {b}")
            return TensorSpec(tuple(axis(x, y) for x, y in zip(a.shape, b.shape, strict=True)), a.dtype)

        return map_specs(merge, one, two)


def _build_inputs(component: Component) -> list[str]:
    """Names of the api arguments whose specs build() takes; it runs before the first call that has them all."""
    parameters = inspect.signature(component.build).parameters.values()
    return [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_POSITIONAL]


def _derived(sizes: Mapping[str, int]) -> dict[int, str]:
    """Length -> name, for each axis, pairs of axes folded into one, and T+1."""
    names = {a + 1: f"{n}+1" for n, a in sizes.items()}
    names |= {a * b: f"{m}*{n}" for m, a in sizes.items() for n, b in sizes.items() if m > n}
    return names | {a: n for n, a in sizes.items()}


class _ProbeParameters(Parameters):
    """While probing, ``flat`` is a fresh copy of the current values: writes to it go nowhere."""

    @property
    def flat(self) -> Any:
        values = [np.ravel(getattr(s.component, s.attribute)) for s in slots_of(self)]
        if not values:
            raise SpecError(
                "its Parameters have no variables yet", expected="an earlier api that builds the components"
            )
        return np.concatenate(values)


class _ProbeNoise:
    """Stands for a component's queue of noise: draws what is asked for, and notes it."""

    def __init__(self, assembly: _Assembly, component: Component) -> None:
        self.assembly, self.component = assembly, component

    def __getitem__(self, api: str) -> Any:
        return _ProbeQueue(self, api)


class _ProbeQueue:
    def __init__(self, owner: _ProbeNoise, api: str) -> None:
        self.owner, self.api = owner, api

    def pop(self, index: int) -> dict[str, np.ndarray]:
        assembly, component = self.owner.assembly, self.owner.component
        path, drawn = component._path or "", {}
        call = len({n.call for n in assembly.noise if (n.path, n.api) == (path, self.api)})
        for name, noise in apis_of(type(component))[self.api].noise.items():
            shape = tuple(
                d if not isinstance(d, str) or d in assembly.sizes else getattr(component, d) for d in noise.shape
            )
            site = NoiseInput(path, self.api, name, call, noise, shape)
            assembly.noise.append(site)
            drawn[name] = noise.sample(assembly.rng, site.spec.concrete(assembly.sizes))
        return drawn


@functools.cache
def _recording(cls: type[Component]) -> type[Component]:
    """A sub-class of ``cls`` whose apis report to the assembly."""

    def record(name: str, info: ApiInfo) -> Any:
        method = getattr(cls, name)

        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._assembly.call(self, info, method, args, kwargs)

        return call

    body = {name: record(name, info) for name, info in apis_of(cls).items()}
    return type(cls.__name__, (cls,), {**body, "_rl_recording": True, "__module__": cls.__module__})


_PlainOps: Any = ops_class()


class _ProbeOps(_PlainOps):  # type: ignore[misc]
    """NumPy's ops; before gradients are taken, the loss runs once so that all it needs is built."""

    def __init__(self, assembly: _Assembly) -> None:
        super().__init__()
        self._assembly = assembly

    def assign(self, variable: Any, value: Any) -> None:
        self._assembly.writes = True
        super().assign(variable, value)

    def value_and_grad(self, loss_fn: Callable[[], Any], parameters: Parameters) -> Any:
        self._assembly.writes = self._assembly.gradients = True  # it binds other arrays for a moment
        assembly = self._assembly
        calls, noise = list(assembly.calls), list(assembly.noise)
        out = loss_fn()
        if not (isinstance(out, tuple) and len(out) == 2 and getattr(out[0], "shape", None) == ()):
            raise SpecError(f"loss_fn returned {describe(spec_of(out))}", expected="(scalar loss, aux)")
        built = {(c.path, c.api): c.built_with for c in assembly.calls[len(calls) :] if c.built_with is not None}
        assembly.calls[:], assembly.noise[:] = calls, noise
        result = value_and_grad(self, loss_fn, slots_of(parameters))
        for call in assembly.calls[len(calls) :]:
            call.built_with = call.built_with or built.pop((call.path, call.api), None)
        return result
