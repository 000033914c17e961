"""A composite stream that a program of a tenant's own computes: it has `operator`, and no code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from servioticy.domain.documents.code import POST_FILTER, PRE_FILTER, Context
from servioticy.domain.documents.codes import (
    BAD_NAME,
    BAD_OPERATOR,
    REQUIRED,
    TOO_MUCH,
    UNKNOWN_SOURCE,
    WRONG_TYPE,
)
from servioticy.domain.documents.errors import Part
from servioticy.domain.documents.options import FIELDS
from servioticy.domain.documents.spelling import OPERATOR_KEYS, check_keys
from servioticy.domain.model import Channel, Composite, Input, StreamRef
from servioticy.domain.program_code import OPERATOR, PROGRAMS, ProgramCode, SideCode

MAX_INPUTS = 100
"""Of one stream."""

MAX_VERSION = 2**31 - 1

MEANS_NOTHING = (
    PRE_FILTER,
    POST_FILTER,
    "window",
    "silent",
    "fold",
    "follow",
    *[field.encode_name for field in FIELDS],
)
"""What a stream may not have beside it: the program decides what comes out, and of what."""

OF = "of"
"""The key of an operator by which it is the program of another stream that makes the updates."""

FORM = 'It is {"name":"fraud-filter","version":3}'
_NAME = re.compile(r"(?:[^/\x00-\x1f\x7f]{1,200}/)?[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def parse_operator(
    ref: StreamRef,
    content: dict[str, Any],
    channels: tuple[Channel, ...],
    stream: Part,
    context: Context,
) -> Composite:
    """Return how the stream is computed. Raises BadDocument.

    Whether there is such a program is not looked at.
    """
    part = stream.at(OPERATOR, words=OPERATOR)
    found = content[OPERATOR]
    if not isinstance(found, dict):
        raise part.bad("has to be a JSON object", WRONG_TYPE).hinted(FORM)
    check_keys(found, OPERATOR_KEYS, part)
    for key in found:
        if key not in OPERATOR_KEYS:
            raise part.at(key).bad(f"{OPERATOR} has no {key[:40]!r}", BAD_OPERATOR)
    for key in MEANS_NOTHING:
        if content.get(key) is not None:
            raise stream.at(key, words=key).bad(f"has no meaning beside {OPERATOR}", BAD_OPERATOR)
    for each in channels:
        if each.code is not None:
            reason = f"channel {each.name}: a program computes it, so it has no current-value"
            raise stream.at("channels", each.name, words=stream.words).bad(reason, BAD_OPERATOR)
    if not channels:
        raise stream.at("channels", words="channels").bad("there is none", REQUIRED)
    code: ProgramCode | SideCode
    inputs: tuple[Input, ...]
    if found.get(OF) is not None:
        code = SideCode(_of(found, part, context), ref.stream)
        inputs = (Input(code.of, context.members[code.of]),)
    else:
        code = ProgramCode(_name(found, part), _version(found, part))
        inputs = _inputs(ref, found, part, context)
    return Composite(context.dialect, inputs, channels, evaluator=PROGRAMS, operator=code)


def _of(found: dict[str, Any], part: Part, context: Context) -> str:
    """The stream whose program makes this one's updates, too."""
    name, where = found[OF], part.at(OF, words=f"{OF} of {OPERATOR}")
    for key in found:
        if key != OF and found[key] is not None:
            raise part.at(key, words=f"{key} of {OPERATOR}").bad(
                f"has no meaning beside {OF}: the program is that of the other stream",
                BAD_OPERATOR,
            )
    if not isinstance(name, str):
        raise where.bad("has to be the name of a stream", WRONG_TYPE)
    if name not in context.programs:
        reason = f"{name[:40]!r} is no stream of this document that names a program"
        raise where.bad(reason, UNKNOWN_SOURCE)
    return name


def _name(found: dict[str, Any], part: Part) -> str:
    name, where = found.get("name"), part.at("name", words=f"name of {OPERATOR}")
    if name is None:
        raise where.bad("is not there", REQUIRED).hinted(FORM)
    if not isinstance(name, str):
        raise where.bad("has to be text", WRONG_TYPE).hinted(FORM)
    if not _NAME.fullmatch(name):
        reason = "is at most 63 letters from a to z, digits and hyphens"
        raise where.bad(f"{reason}; of another tenant's OWNER/NAME", BAD_NAME)
    return name


def _version(found: dict[str, Any], part: Part) -> int:
    version, where = found.get("version"), part.at("version", words=f"version of {OPERATOR}")
    if version is None:
        raise where.bad("is not there", REQUIRED).hinted(FORM)
    is_whole = isinstance(version, int) and not isinstance(version, bool)
    if not is_whole or not 1 <= version <= MAX_VERSION:
        raise where.bad(f"has to be an integer from 1 to {MAX_VERSION}", WRONG_TYPE)
    return int(version)


def _inputs(
    ref: StreamRef, found: dict[str, Any], part: Part, context: Context
) -> tuple[Input, ...]:
    """What wakes it: what it names; else every group, or every simple stream, of its document."""
    where = part.at("inputs", words=f"inputs of {OPERATOR}")
    names = found.get("inputs")
    if names is None:
        names = list(context.by_default)
        if not names:
            reason = "are not there, and the document has neither groups nor simple streams"
            raise where.bad(reason, REQUIRED)
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise where.bad("have to be an array of names", WRONG_TYPE)
    if not names:
        raise where.bad("are none: what wakes it?", REQUIRED)
    if len(names) > MAX_INPUTS:
        raise where.bad(f"are more than {MAX_INPUTS}", TOO_MUCH)
    for number, name in enumerate(names):
        if name not in context.members:
            reason = f"{name[:40]!r} is neither a stream nor a group of this document"
            raise where.at(number).bad(reason, UNKNOWN_SOURCE)
        if context.members[name] == (ref,):
            raise where.at(number).bad("a program is not woken by its own output", UNKNOWN_SOURCE)
    return tuple([Input(name, context.members[name]) for name in dict.fromkeys(names)])


def by_default(streams: dict[str, Any], groups: Iterable[str]) -> tuple[str, ...]:
    """Return what wakes a program of a document that does not say: groups, or simple streams."""
    named = tuple(groups)
    return named or tuple(name for name, each in streams.items() if not _is_computed(each))


def naming_programs(streams: dict[str, Any]) -> frozenset[str]:
    """Return the streams of a document that name a program."""
    contents = {
        name: each.get(OPERATOR) for name, each in streams.items() if isinstance(each, dict)
    }
    return frozenset(
        name
        for name, each in contents.items()
        if isinstance(each, dict) and each.get("name") is not None and each.get(OF) is None
    )


def _is_computed(content: Any) -> bool:
    if not isinstance(content, dict):
        return True
    channels = content.get("channels")
    found = channels.values() if isinstance(channels, dict) else ()
    has_code = any(isinstance(each, dict) and each.get("current-value") for each in found)
    return has_code or content.get(OPERATOR) is not None
