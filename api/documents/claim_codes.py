"""The body that says what claim codes are for, checked, as the statement `make` takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from servioticy.domain.claim_codes import MAX_TEXT, is_name
from servioticy.domain.documents.codes import (
    BAD_PARAMETER,
    DUPLICATE,
    NO_CHOICE,
    REQUIRED,
    TOO_MUCH,
    WRONG_TYPE,
)
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.documents.parameters import Parameter, check

MAX_COUNT = 1_000
"""Codes made by one request."""
MAX_USES = 10_000
MAX_USES_OF_ONE = 100
"""Of all codes of one Service Object: each use is another token of it."""
MAX_SECONDS = 100 * 366 * 86_400
SECONDS = 30 * 86_400
"""So long a code is good unless it is said."""
OF_TEMPLATES = ("parameters", "allowed", "deviceAs")

Declared = Mapping[str, Parameter]


def read_wanted(sent: dict[str, Any], declared: Declared | None) -> dict[str, Any]:
    """Return what is wanted. `declared`: the parameters of their template, if they have one.

    Raises BadDocument.
    """
    most = MAX_USES_OF_ONE if declared is None else MAX_USES
    count, devices = _number(sent, "count", 1, MAX_COUNT), _devices(sent, most)
    for name in ("count", "uses") if devices is not None else ():
        if name in sent:
            reason = f"{name} follows from devices: one code, and a use for each"
            raise WHOLE.at(name).bad(reason, NO_CHOICE)
    uses = _number(sent, "uses", len(devices or [0]), most)
    if declared is None and count * uses > most:
        reason = f"count times uses has to be {most} at most for one Service Object"
        raise WHOLE.at("count").bad(reason, TOO_MUCH)
    pattern = sent.get("devicePattern")
    if pattern is not None and not is_name(pattern):
        reason = f"devicePattern has to be text of 1 to {MAX_TEXT} visible characters"
        raise WHOLE.at("devicePattern").bad(reason, WRONG_TYPE)
    return {
        "count": count,
        "uses": uses,
        "seconds": _number(sent, "expiresIn", SECONDS, MAX_SECONDS),
        "devices": devices,
        "pattern": pattern,
        **_parameters(sent, declared),
    }


def _number(sent: dict[str, Any], name: str, default: int, most: int) -> int:
    number = sent.get(name, default)
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise WHOLE.at(name).bad(f"{name} has to be a whole number from 1 to {most}", WRONG_TYPE)
    return number


def _devices(sent: dict[str, Any], most: int) -> list[str] | None:
    place = WHOLE.at("devices")
    devices = sent.get("devices")
    if devices is None:
        return None
    if not isinstance(devices, list) or not devices:
        raise place.bad("devices has to be a list of names", WRONG_TYPE)
    if len(devices) > most:
        raise place.bad(f"more than {most} devices", TOO_MUCH)
    for number, each in enumerate(devices):
        if not is_name(each):
            reason = f"a device is text of 1 to {MAX_TEXT} visible characters"
            raise place.at(number).bad(reason, WRONG_TYPE)
    if len(set(devices)) < len(devices):
        raise place.bad("a device is named twice", DUPLICATE)
    return devices


def _parameters(sent: dict[str, Any], declared: Declared | None) -> dict[str, Any]:
    """Return who gives which parameter: the tenant now, or the device."""
    if declared is None:
        named = next((each for each in OF_TEMPLATES if each in sent), None)
        if named is not None:
            raise WHOLE.at(named).bad("Only codes of a template have parameters", NO_CHOICE)
        declared = {}
    given, allowed, device_as = (sent.get(each, d) for each, d in _DEFAULTS)
    if not isinstance(given, dict):
        raise WHOLE.at("parameters").bad("parameters have to be a JSON object", WRONG_TYPE)
    if not isinstance(allowed, list) or not all(isinstance(each, str) for each in allowed):
        raise WHOLE.at("allowed").bad("allowed has to be a list of parameters", WRONG_TYPE)
    by_device = [*allowed] if device_as is None else [*allowed, device_as]
    _check(declared, given, by_device)
    if device_as is not None and declared[device_as].type != "string":
        raise WHOLE.at("deviceAs").bad("it has to be a parameter of type string", BAD_PARAMETER)
    return {
        "parameters": orjson.dumps(given).decode(),
        "allowed": allowed,
        "device_as": device_as,
    }


_DEFAULTS: tuple[tuple[str, Any], ...] = (("parameters", {}), ("allowed", []), ("deviceAs", None))


def _check(declared: Declared, given: dict[str, Any], by_device: list[Any]) -> None:
    names = [*given, *by_device]
    for name in names:
        if not isinstance(name, str) or name not in declared:
            reason = f"the template has no parameter {str(name)[:40]!r}"
            raise WHOLE.bad(reason, BAD_PARAMETER)
    twice = next((name for name in by_device if names.count(name) > 1), None)
    if twice is not None:
        raise WHOLE.bad(f"parameter {twice} would be given twice", DUPLICATE)
    for name, value in given.items():
        check(declared[name], value, WHOLE.at("parameters", name))
    for name, each in declared.items():
        if each.required and name not in names:
            raise WHOLE.bad(f"parameter {name} is required, and nobody gives it", REQUIRED)
