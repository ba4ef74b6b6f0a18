"""Component, Variable, Parameters and the ``@api`` decorator: all that an algorithm is made of.

A component says what it computes with ``self.ops`` and other components. It never names a framework:
a graph backend binds ``self.ops`` and the variables when it builds the tree.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from rlcore import initializers
from rlcore.errors import BuildError, NotBuiltError
from rlcore.specs import TensorSpec, describe

if TYPE_CHECKING:
    from rlcore.ops import Ops

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
Array = Any  # a tensor of whichever backend built the component


# -- noise ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Noise:
    """A random input that the runtime feeds from the run's seeded generator (float32).

    :param shape: ints, names of the root api's axes (``"B"``), or names of int attributes of the component.
    """

    kind: str
    shape: tuple[int | str, ...]

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if self.kind == "uniform":
            return rng.random(shape, dtype=np.float32)
        return rng.standard_normal(shape, dtype=np.float32)


def Uniform(*shape: int | str) -> Noise:
    """Noise in [0, 1)."""
    return Noise("uniform", shape)


def Normal(*shape: int | str) -> Noise:
    """Standard normal noise."""
    return Noise("normal", shape)


# -- api -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ApiInfo:
    """What ``@api`` notes about a method."""

    name: str
    signature: inspect.Signature
    noise: Mapping[str, Noise]

    @property
    def inputs(self) -> list[str]:
        """Names of the arguments that a caller gives (all but self and the noise)."""
        return [p for p in list(self.signature.parameters)[1:] if p not in self.noise]


@overload
def api(fn: F) -> F: ...
@overload
def api(*, noise: Mapping[str, Noise]) -> Callable[[Callable[..., R]], Callable[..., R]]: ...
def api(fn: Any = None, *, noise: Mapping[str, Noise] | None = None) -> Any:
    """Mark a method as part of a component's interface: wiring and arithmetic in one.

    :param noise: random inputs by name; each is a keyword-only argument of the method. A caller that
        leaves them out gets fresh noise, fed by the runtime as an input of the root api.
    """
    if fn is None:
        return functools.partial(api, noise=noise or {})
    info = ApiInfo(fn.__name__, inspect.signature(fn), dict(noise or {}))
    if not info.noise:
        fn.__rl_api__ = info  # the plain function: nothing is left between caller and method
        return fn
    for name in info.noise:
        parameter = info.signature.parameters.get(name)
        if parameter is None or parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            raise TypeError(f"@api {fn.__qualname__}: noise '{name}' must be a keyword-only argument of the method")

    first = next(iter(info.noise))

    @functools.wraps(fn)
    def fed(self: Any, *args: Any, **kwargs: Any) -> Any:
        if first not in kwargs:
            if self._noise is None:
                raise _not_built(self)
            kwargs.update(self._noise[fn.__name__].pop(0))
        return fn(self, *args, **kwargs)

    fed.__rl_api__ = info  # type: ignore[attr-defined]
    return fed


def apis_of(cls: type) -> dict[str, ApiInfo]:
    """All apis of a component class, by name."""
    found: dict[str, ApiInfo] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            info = getattr(value, "__rl_api__", None)
            if info is not None:
                found[name] = info
    return found


# -- variables -----------------------------------------------------------------------------------
@dataclass(eq=False)
class Variable:
    """A declared variable; the backend puts its own tensor in its place.

    :param path: path of its component, a dot, its name.
    :param init_path: path that its initial value is drawn for (a target network draws for its source).
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    init: initializers.Initializer
    init_path: str

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def draw(self, seed: int) -> np.ndarray:
        """The initial value: a function of the seed and ``init_path`` alone, whatever else is in the tree."""
        rng = np.random.default_rng([seed, zlib.crc32(self.init_path.encode())])
        return np.array(self.init(rng, self.shape), dtype=self.dtype).reshape(self.shape)

    def __deepcopy__(self, memo: Any) -> Variable:
        return self  # a declaration, never changed


class Parameters:
    """A handle on all trainable-by-shape variables of some components, as one flat vector.

    Made in a component's ``__init__``; the backend binds ``flat`` (float32 ``[N]``). Assign to it with
    ``ops.assign(parameters.flat, value)``; take gradients with ``ops.value_and_grad(loss_fn, parameters)``.
    """

    flat: Array

    def __init__(self, *components: Component) -> None:
        self.components = components


class Component:
    """Base of all components. Sub-components are plain attributes, or lists and dicts of them.

    Override :meth:`build` to make variables and :func:`api` methods to compute.
    """

    ops: Ops
    _path: str | None = None  # set by the assembly
    _building = False
    _frozen = False
    _mirrors: Component | None = None
    _bindings: Mapping[str, Variable] | None = None  # attribute -> Variable; None before the build
    _drawn_as: str | None = None  # path that initial values are drawn for, where it isn't the own one
    _noise: Any = None  # api -> queue of noise dicts, while a root api runs

    def __init__(self) -> None:
        """Nothing to set up: sub-classes may leave the call out."""

    def build(self, *specs: TensorSpec) -> None:
        """Make the variables. Called once, with specs of the first api call that has them all.

        Name the parameters after the api's arguments whose specs are needed.
        """

    def variable(
        self,
        name: str,
        shape: tuple[Any, ...],
        init: Any = "zeros",
        *,
        trainable: bool = True,
        dtype: str = "float32",
    ) -> Array:
        """Declare a variable; assign what is returned to an attribute. Only inside :meth:`build`.

        :param shape: ints only.
        :param init: see :mod:`rlcore.initializers`.
        :param trainable: False for state that is assigned, not learned (moments, counters).
        :raises BuildError: outside ``build``, or for a shape that is not all ints.
        """
        if not self._building:
            raise BuildError(
                f"variable '{name}' was made outside build()",
                path=self._path or "",
                component=type(self).__name__,
                expected="self.variable(...) inside build()",
            )
        if not all(isinstance(d, (int, np.integer)) for d in shape):
            raise BuildError(
                f"variable '{name}' has a shape that varies from call to call: {list(shape)}",
                path=self._path or "",
                component=type(self).__name__,
                expected="fixed lengths only",
            )
        return Variable(
            path=join(self._path or "", name),
            shape=tuple(int(d) for d in shape),
            dtype=dtype,
            trainable=trainable and not self._frozen,
            init=initializers.get(init),
            init_path=join(self._init_path(), name),
        )

    def _init_path(self) -> str:
        return self._path or "" if self._drawn_as is None else self._drawn_as

    def children(self) -> Iterator[tuple[str, Component]]:
        """Direct sub-components with their attribute path (``layers.0``)."""
        for name, value in vars(self).items():
            if not name.startswith("_"):
                yield from _components_in(name, value)

    def __getattr__(self, name: str) -> Any:  # only reached when the attribute is missing
        if name == "ops":
            raise _not_built(self)
        raise AttributeError(
            f"{type(self).__name__} has no attribute '{name}'"
            + ("" if self._path is not None or name.startswith("__") else " (variables exist after the build only)")
        )


def _components_in(prefix: str, value: Any) -> Iterator[tuple[str, Component]]:
    if isinstance(value, Component):
        yield prefix, value
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _components_in(f"{prefix}.{i}", item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _components_in(f"{prefix}.{key}", item)


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def walk(root: Component, path: str = "") -> Iterator[tuple[str, Component]]:
    """Every component of the tree with its path, parents first; a shared one once, at its first path."""
    seen: set[int] = set()

    def visit(path: str, component: Component) -> Iterator[tuple[str, Component]]:
        if id(component) in seen:
            return
        seen.add(id(component))
        yield path, component
        for name, child in component.children():
            yield from visit(join(path, name), child)

    yield from visit(path, root)


_T = TypeVar("_T", bound=Component)


def frozen_copy(component: _T) -> _T:
    """A copy that starts with the same weights and is never trained: a target network."""
    twin = copy.deepcopy(component)
    for _, part in walk(twin):
        part._frozen = True
    twin._mirrors = component
    return twin


def _not_built(component: Component) -> NotBuiltError:
    """The error of an api that ran before the build, with the api's name and what it was given."""
    known, api_name, given = apis_of(type(component)), None, None
    frame: Any = sys._getframe(1)
    while frame is not None:
        values = frame.f_locals
        fed = frame.f_code.co_name == "fed"  # the wrapper of an api with noise
        name = values["fn"].__name__ if fed else frame.f_code.co_name
        if name in known and values.get("self") is component:
            api_name, inputs = name, known[name].inputs
            if fed:
                values = {**dict(zip(inputs, values["args"])), **values["kwargs"]}  # noqa: B905
            given = ", ".join(f"{n}: {describe(spec_of(values[n]))}" for n in inputs if n in values)
            break
        frame = frame.f_back
    return NotBuiltError(
        "called before the build",
        path=component._path or "",
        component=type(component).__name__,
        api=api_name,
        given=given,
        expected="a component built by assemble(...) and a graph builder, or by rlcore.testing.ComponentTest",
    )


def spec_of(value: Any) -> Any:
    """The concrete specs of a tree of arrays; of other objects the name of their type, plain values as they are."""
    if isinstance(value, Mapping):
        return {k: spec_of(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [spec_of(v) for v in value] if isinstance(value, list) else tuple(spec_of(v) for v in value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = getattr(value.dtype, "name", None) or str(value.dtype).rpartition(".")[2]
        return TensorSpec(tuple(value.shape), dtype)
    if isinstance(value, Parameters):
        return "Parameters"
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__
