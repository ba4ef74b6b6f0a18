"""Does a plugin object fit the hook specs? All that is wrong at once, each with what was probably meant."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from rlcore.errors import nearest
from rlcore.plugins import hookspecs
from rlcore.plugins.errors import PluginContractError

MARK = f"{hookspecs.PROJECT}_impl"


def check_hooks(plugin: Any, *, kind: str, name: str, label: str, requires: Iterable[str] = ()) -> None:
    """Raise unless every hook of a plugin object can be called as its spec says.

    :param label: of the distribution, for the message.
    :param requires: hooks that a plugin of this kind must have.
    :raises PluginContractError: lists everything that is wrong.
    """
    if isinstance(plugin, type):
        wrong = [f"the class {plugin.__name__} was given, not an instance of it; write {plugin.__name__}()"]
    else:
        functions = _functions(plugin)
        requires = list(requires)
        wrong = [why for attribute, function in functions for why in _problems(attribute, function, requires)]
        present = {attribute for attribute, function in functions if getattr(function, MARK, None)}
        if not wrong:
            wrong = [f"it does not implement {hook}" for hook in requires if hook not in present]
    if wrong:
        lines = "\n  ".join(wrong)
        raise PluginContractError(f"{kind} '{name}' ({label}):\n  {lines}", kind=kind, name=name, dist=label)


def _functions(plugin: Any) -> list[tuple[str, Any]]:
    """Functions that are hooks or look like one; properties are not run."""
    found = []
    for attribute in dir(type(plugin)):
        value = inspect.getattr_static(type(plugin), attribute)
        value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if inspect.isfunction(value) and (attribute.startswith("rlcore_") or getattr(value, MARK, None)):
            found.append((attribute, value))
    return found


def _problems(attribute: str, function: Any, own: list[str]) -> list[str]:
    options = getattr(function, MARK, None)
    hook = (options or {}).get("specname") or attribute
    if hook not in hookspecs.ALL_HOOKS:
        if (options or {}).get("optionalhook"):
            return []
        return [f"hook '{hook}' doesn't exist.{nearest(hook, hookspecs.ALL_HOOKS)}"]
    if options is None:
        return [f"hook '{hook}' lacks @hookimpl, so it would never be called"]
    wrong = []
    if options["wrapper"] or options["hookwrapper"]:
        if hook not in hookspecs.DRIVER_HOOKS:
            wrong.append(f"hook '{hook}' can't be wrapped; only {' and '.join(hookspecs.DRIVER_HOOKS)} can")
    elif hook in hookspecs.DRIVER_HOOKS and hook not in own:
        wrong.append(f"hook '{hook}' is not for this kind of plugin; it may only wrap it: @hookimpl(wrapper=True)")
    elif inspect.isgeneratorfunction(function) and hook != "rlcore_doctor":
        wrong.append(f"hook '{hook}' is a generator, whose body would never run")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        wrong.append(f"hook '{hook}' is a coroutine; hooks are synchronous")
    known = list(inspect.signature(getattr(hookspecs, hook)).parameters)
    parameters = list(inspect.signature(function).parameters.values())
    for p in parameters[1:] if parameters and parameters[0].name == "self" else parameters:
        if p.kind is p.KEYWORD_ONLY:
            wrong.append(f"hook '{hook}': argument '{p.name}' is keyword-only and would not be given; drop the *")
        elif p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            stars = "**" if p.kind is p.VAR_KEYWORD else "*"
            wrong.append(f"hook '{hook}': {stars}{p.name} would stay empty; name the arguments: {', '.join(known)}")
        elif p.name not in known:
            wrong.append(f"hook '{hook}' has no argument '{p.name}'.{nearest(p.name, known)} It has: {_list(known)}")
    return wrong


def _list(names: list[str]) -> str:
    return ", ".join(names) or "none"
