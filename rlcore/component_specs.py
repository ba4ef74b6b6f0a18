"""Component specs: what a config file says, checked, and turned into objects.

A spec is a name (``adam``), a mapping of a name and options (``{name: mlp, hidden: [64]}``), a class, a dotted path
(``my_package.networks:Residual``), or a JSON or YAML file that holds one of these. Names are compared without case,
``-`` and ``_``. Options are the arguments of the class; those that are components take specs again.
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcore.errors import ConfigError, nearest
from rlcore.registry import COMPONENT_KINDS, Registry, SpecProblem, builtin_registry, import_path, known

FILES = (".json", ".yaml", ".yml")


@dataclass(frozen=True)
class ComponentSpec:
    """A checked spec: plain data that travels to another process, where :meth:`build` needs no registry.

    :ivar name: as the user wrote it. ``path``: ``module:Class``.
    :ivar options: arguments of the class; other specs where it takes components.
    :ivar given_class: the class itself, where the user gave that: it may be one that no module holds.
    """

    kind: str
    name: str
    path: str
    options: Mapping[str, Any]
    given_class: type | None = None

    @property
    def cls(self) -> Any:
        return self.given_class or import_path(self.path)

    def build(self, **given: Any) -> Any:
        """A new object.

        :param given: used where the class takes it and the spec does not say it.
        :raises ConfigError: what the class says of its options.
        """
        cls = self.cls
        parameters = _parameters(cls)
        options = {k: v for k, v in given.items() if k in parameters} | {k: _built(v) for k, v in self.options.items()}
        positional: list[Any] = []
        for name, parameter in parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += options.pop(name, ())
        try:
            return cls(*positional, **options)
        except ConfigError as e:
            raise ConfigError(f"{self.kind} '{self.name}': {e}") from e

    def takes(self, argument: str) -> bool:
        return argument in _parameters(self.cls)

    def plain(self) -> Any:
        """The spec as a config file holds it."""
        options = {k: _plain(v) for k, v in self.options.items()}
        return {"name": self.name, **options} if options else self.name


def from_spec(kind: str, spec: Any, *, registry: Registry | None = None, **given: Any) -> Any:
    """An object from a spec, in one step.

    :raises ConfigError: with the path of keys to what is wrong.
    """
    try:
        return check_spec(kind, spec, registry).build(**given)
    except SpecProblem as e:
        raise ConfigError(f"{'.'.join((kind, *e.path))}: {e}") from e


def read_spec(spec: Any) -> Any:
    """A spec with a file's content in place of the file's name; a copy, the caller's mapping stays as it is.

    :raises SpecProblem: if the file can't be read.
    """
    if isinstance(spec, Path) or (isinstance(spec, str) and spec.endswith(FILES)):
        return read_file(spec)
    return dict(spec) if isinstance(spec, Mapping) else spec


def read_file(path: str | Path) -> Any:
    """The content of a JSON or YAML file.

    :raises SpecProblem: if it can't be read, with line and column where it is no JSON or YAML.
    """
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(text) if str(path).endswith(".json") else yaml.safe_load(text)
    except OSError as e:
        raise SpecProblem(f"{path} can't be read: {e.strerror}") from e
    except (ValueError, yaml.YAMLError) as e:
        raise SpecProblem(f"{path} is no {'JSON' if str(path).endswith('.json') else 'YAML'}: {e}") from e


def check_spec(kind: str, spec: Any, registry: Registry | None = None, *, inner: bool = False) -> ComponentSpec:
    """A checked spec of any kind but ``agent``.

    :param inner: whether it is part of another spec, where nobody supplies what the kind is given otherwise.
    :raises SpecProblem: for an unknown name or option, a value of the wrong type, or a missing one.
    """
    if isinstance(spec, ComponentSpec):
        return spec
    registry = registry or builtin_registry()
    spec = read_spec(spec)
    options = dict(spec) if isinstance(spec, Mapping) else {}
    name = options.pop("name", None) if isinstance(spec, Mapping) else spec
    if name is None:
        raise SpecProblem(f"a {kind} needs a 'name'.{known(registry.names(kind))}", ("name",))
    if not isinstance(name, (str, type)):
        raise SpecProblem(f"expected a name, a class, a mapping with a name, or a file, for a {kind}; got {spec!r}")
    cls = registry.class_of(kind, name)
    path = f"{cls.__module__}:{cls.__qualname__}"
    parameters, given = _parameters(cls), () if inner else COMPONENT_KINDS[kind].given
    checked = {}
    for key, value in options.items():
        if key not in parameters:
            hint = nearest(key, parameters) + known(parameters)
            raise SpecProblem(f"{kind} {_text(name)} has no option '{key}'.{hint}", (key,))
        checked[key] = _check(_hints(cls).get(key, Any), value, key, registry, parameters[key])
    for key, parameter in parameters.items():
        required = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        if required and key not in checked and key not in given:
            raise SpecProblem(f"{kind} {_text(name)} needs the option '{key}'", (key,))
    if isinstance(name, str):
        return ComponentSpec(kind, name, path, checked)
    return ComponentSpec(kind, path, path, checked, name)


class SpecOf:
    """Type of a pydantic field that holds a spec: ``Annotated[Any, SpecOf("optimizer")]``.

    The registry comes with the validation context (``{"registry": ...}``); without one, rlcore's own names count.
    """

    def __init__(self, kind: str, *, optional: bool = False) -> None:
        self.kind, self.optional = kind, optional

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        def validate(value: Any, info: Any) -> Any:
            if value is None and self.optional:
                return None
            return check_spec(self.kind, value, (info.context or {}).get("registry"))

        ser = core_schema.plain_serializer_function_ser_schema(_plain)
        return core_schema.with_info_plain_validator_function(validate, serialization=ser)


# ----------------------------------------------------------------------------------------------------------------
def _check(hint: Any, value: Any, key: str, registry: Registry, parameter: inspect.Parameter) -> Any:
    kind, many = _component_in(hint)
    many = many or parameter.kind is parameter.VAR_POSITIONAL
    if kind is None:
        return _typed(hint, value, key, many=parameter.kind is parameter.VAR_POSITIONAL)
    if value is None and type(None) in typing.get_args(hint):
        return None
    if not many:
        return _nested(kind, value, (key,), registry)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise SpecProblem(f"a list of {kind}s is expected, got {value!r}", (key,))
    return [_nested(kind, item, (key, str(i)), registry) for i, item in enumerate(value)]


def _nested(kind: str, value: Any, path: tuple[str, ...], registry: Registry) -> ComponentSpec:
    try:
        return check_spec(kind, value, registry, inner=True)
    except SpecProblem as e:
        raise SpecProblem(str(e), (*path, *e.path)) from e


def _typed(hint: Any, value: Any, key: str, *, many: bool) -> Any:
    import pydantic

    hint = list[hint] if many else hint
    try:
        config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        return pydantic.TypeAdapter(hint, config=config).validate_python(value)
    except pydantic.errors.PydanticSchemaGenerationError:
        return value  # a type of which only the class knows what it takes
    except pydantic.ValidationError as e:
        first = e.errors()[0]
        loc = tuple(str(part) for part in first["loc"] if isinstance(part, int))
        message = first["msg"].removeprefix("Value error, ")
        raise SpecProblem(f"{message[:1].lower() + message[1:]}, got {first['input']!r}", (key, *loc)) from e


def _component_in(hint: Any) -> tuple[str | None, bool]:
    """The component kind that an annotation takes, and whether it is a list of them."""
    if inspect.isclass(hint) and typing.get_origin(hint) is None:
        if not issubclass(hint, import_path("rlcore.component:Component")):
            return None, False
        bases = {k: c.base for k, c in COMPONENT_KINDS.items()}
        own = f"{hint.__module__}:{hint.__qualname__}"
        return next((k for k, base in bases.items() if base == own and k == "optimizer"), "layer"), False
    origin = typing.get_origin(hint)
    for part in typing.get_args(hint):
        kind, many = _component_in(part)
        if kind is not None:
            return kind, many or origin not in (typing.Union, types.UnionType)
    return None, False


def _parameters(cls: type) -> Mapping[str, inspect.Parameter]:
    found = inspect.signature(cls).parameters
    return {k: p for k, p in found.items() if p.kind is not p.VAR_KEYWORD}


def _hints(cls: Any) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(cls.__init__)
    except (NameError, TypeError):  # names that exist for the type checker only
        return {}


def _built(value: Any) -> Any:
    if isinstance(value, ComponentSpec):
        return value.build()
    return [_built(v) for v in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, ComponentSpec):
        return value.plain()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _text(name: Any) -> str:
    return f"'{name}'" if isinstance(name, str) else name.__qualname__
