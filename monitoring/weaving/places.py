"""Functions by name, among what this process has loaded: nothing is loaded to be watched."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from operator import itemgetter
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

MOST = 1_000
"""Functions of one pointcut."""
NEVER = "monitoring"
"""What measures does not measure itself."""


class Place(NamedTuple):
    """A name, and what is there; else why nothing can be woven."""

    name: str
    function: Any
    """a FunctionType, or None"""
    why: str = ""


def places(pattern: str) -> list[Place]:
    """Return what a pattern names here; nothing where its module is not loaded."""
    parts = pattern.split(".")
    found: dict[str, Place] = {}
    loaded = [*sys.modules.items()]  # at once: others may load meanwhile
    for name, module in sorted(loaded, key=itemgetter(0)):
        own = name.split(".")
        if isinstance(module, ModuleType) and is_within(name, pattern):
            for each in _within(module, name, parts[len(own) :], module):
                found.setdefault(each.name, each)
                if len(found) > MOST:
                    return [Place(pattern, None, f"it names more than {MOST} functions")]
    return list(found.values())


def is_within(module: str, pattern: str) -> bool:
    """Whether a pattern may name what stands in a module."""
    own, parts = module.split("."), pattern.split(".")
    return len(own) < len(parts) and _fits(own, parts)


def _fits(names: list[str], patterns: list[str]) -> bool:
    return all(map(fnmatchcase, names, patterns))


def _within(holder: Any, name: str, parts: list[str], module: ModuleType) -> Iterator[Place]:
    """What stands in a module or a class, some levels deep; of packages the modules do not count.

    What a glob finds has to be of the module: else it had each name that it is imported by.
    """
    first, rest = parts[0], parts[1:]
    is_glob = set(first) & set("*?")
    held = vars(holder)
    for key in sorted(each for each in held if fnmatchcase(each, first)):
        value = held[key]
        if isinstance(value, ModuleType) or (is_glob and not _is_of(value, module)):
            continue
        own = f"{name}.{key}"
        if not rest:
            if not (is_glob and isinstance(value, type)):
                yield _place(own, value)
        elif isinstance(value, type):
            yield from _within(value, own, rest, module)
    if not is_glob and first not in held and not _is_package(name, first):
        yield Place(f"{name}.{'.'.join(parts)}", None, f"{name} has no {first}")


def _is_package(name: str, first: str) -> bool:
    """Whether it is a module that is not loaded here, or looks like one."""
    return hasattr(sys.modules.get(name), "__path__") or f"{name}.{first}" in sys.modules


def _is_of(value: Any, module: ModuleType) -> bool:
    inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    return getattr(inner, "__module__", None) == module.__name__ and (
        isinstance(inner, FunctionType | type) or hasattr(inner, "__wrapped__")
    )


def _place(name: str, value: Any) -> Place:
    if name.split(".")[0] == NEVER:
        return Place(name, None, "what measures does not measure itself")
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    elif isinstance(value, property | functools.cached_property):
        value = value.fget if isinstance(value, property) else value.func
    try:
        value = inspect.unwrap(value)
    except ValueError as error:
        return Place(name, None, str(error))
    if isinstance(value, FunctionType):
        return Place(name, value)
    if isinstance(value, type):
        return Place(name, None, "it is a class: name a method of it")
    if isinstance(value, functools.partial | functools.partialmethod):
        return Place(name, None, "it is a partial: name the function of it")
    if callable(value):
        return Place(name, None, "it is not written in Python: there is no code to weave into")
    return Place(name, None, "it is no function")
