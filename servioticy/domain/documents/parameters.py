"""The parameters of a template: how they are declared, and whether values fit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from servioticy.domain.documents.codes import BAD_PARAMETER, REQUIRED, TOO_MUCH, WRONG_TYPE
from servioticy.domain.documents.errors import WHOLE, Part

Values: TypeAlias = Mapping[str, Any]
"""A value for each parameter, by its name."""

MAX_PARAMETERS = 100
MAX_TEXT = 1_000
MAX_ELEMENTS = 1_000
MAX_INTEGER = 2**53 - 1
NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
_NAME = re.compile(NAME)
_FIELDS = frozenset({"type", "default", "required", "choices", "example", "description"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as a template declares it. One without a default has to be given."""

    name: str
    type: str
    default: Any = None
    required: bool = True
    choices: tuple[Any, ...] = ()
    example: Any = None
    chosen: frozenset[Any] = frozenset()
    """The choices, as `_identity` tells them apart: each value is looked up, not compared."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT and "\0" not in value


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and (isinstance(value, float) or abs(value) <= MAX_INTEGER)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool) or _is_text(value) or _is_number(value)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and isinstance(value, int)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_array(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_ELEMENTS and all(map(_is_scalar, value))


# No type holds an object: a value could then bring code of its own into the document.
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": _is_text,
    "number": _is_number,
    "integer": _is_integer,
    "boolean": _is_boolean,
    "array": _is_array,
}


def parse_parameters(content: Any) -> dict[str, Parameter]:
    """Return the parameters that a template declares. Raises BadDocument."""
    whole = WHOLE.at("parameters", words="parameters")
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise whole.bad("has to be a JSON object", WRONG_TYPE)
    if len(content) > MAX_PARAMETERS:
        raise whole.bad(f"more than {MAX_PARAMETERS} of them", TOO_MUCH)
    return {name: _parameter(name, each, whole) for name, each in content.items()}


def _parameter(name: str, content: Any, whole: Part) -> Parameter:
    part = whole.at(name, words=f"parameter {name[:40]}")
    if not _NAME.fullmatch(name):
        raise part.bad("a name is a letter, then up to 99 letters, digits and _", BAD_PARAMETER)
    if not isinstance(content, dict):
        raise part.bad("has to be a JSON object", WRONG_TYPE)
    unknown = next((each for each in content if each not in _FIELDS), None)
    if unknown is not None:
        raise part.at(unknown).bad(f"there is no field {unknown[:40]!r}", BAD_PARAMETER)
    kind = content.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise part.at("type").bad(f"the type is one of {', '.join(_TYPES)}", BAD_PARAMETER)
    required = content.get("required", "default" not in content)
    if not isinstance(required, bool):
        raise part.at("required").bad("required is true or false", WRONG_TYPE)
    if not required and "default" not in content:
        raise part.bad("what is not required needs a default", BAD_PARAMETER)
    choices = content.get("choices", [])
    if not isinstance(choices, list) or len(choices) > MAX_ELEMENTS:
        raise part.at("choices").bad(f"an array of at most {MAX_ELEMENTS} values", WRONG_TYPE)
    parameter = Parameter(
        name,
        content["type"],
        content.get("default"),
        required,
        tuple(choices),
        content.get("example"),
    )
    for number, each in enumerate(choices):
        _check(parameter.type, each, part.at("choices", number))
    parameter = replace(parameter, chosen=frozenset(map(_identity, choices)))
    for field in ("default", "example"):
        if field in content:
            check(parameter, content[field], part.at(field))
    return parameter


def check(parameter: Parameter, value: Any, part: Part) -> None:
    """Raise BadDocument unless it may be the parameter's value."""
    _check(parameter.type, value, part)
    if parameter.choices and _identity(value) not in parameter.chosen:
        raise part.bad("the value is none of the choices", BAD_PARAMETER)


def _check(type_: str, value: Any, part: Part) -> None:
    if not _TYPES[type_](value):
        raise part.bad(f"the value has to be of type {type_}, and not too large", WRONG_TYPE)


def _identity(value: Any) -> Any:
    """Return what is the same for the same value: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, list):
        return tuple(map(_identity, value))
    return (bool, value) if isinstance(value, bool) else value


def complete(declared: Mapping[str, Parameter], given: Any, part: Part = WHOLE) -> dict[str, Any]:
    """Return a value for each parameter, defaults for what is not given.

    Raises BadDocument for the part, which is where they are given.
    """
    if not isinstance(given, dict):
        raise part.bad("parameters have to be a JSON object", WRONG_TYPE)
    unknown = next((name for name in given if name not in declared), None)
    if unknown is not None:
        reason = f"the template has no parameter {unknown[:40]!r}"
        raise part.at(unknown).bad(reason, BAD_PARAMETER)
    for name, parameter in declared.items():
        if name in given:
            check(parameter, given[name], part.at(name, words=f"parameter {name}"))
        elif parameter.required:
            raise part.bad(f"parameter {name} is required", REQUIRED)
    return {name: given.get(name, each.default) for name, each in declared.items()}


def examples(declared: Mapping[str, Parameter]) -> dict[str, Any] | None:
    """Return values to try the template with: examples, else defaults; None: some lack both."""
    found = {
        name: each.example if each.example is not None else each.default
        for name, each in declared.items()
    }
    return None if any(value is None for value in found.values()) else found
