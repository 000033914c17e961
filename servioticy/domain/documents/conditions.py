"""Dynamic groups: a query in a document says who belongs, instead of ids.

The platform answers it and writes the ids beside it, as `soIds`; whoever reads the document
sees the query alone. So everything that computes knows groups of ids and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from servioticy.domain.documents.codes import BAD_CONDITION, INCOMPLETE_GROUP, TOO_MUCH
from servioticy.domain.documents.errors import WHOLE, Part

WHERE, MEMBERS, STREAM = "where", "soIds", "stream"
OTHERS = "public"
"""A condition: whether public Service Objects of other tenants may belong, too."""
FIELD = "customFields."
MAX_DYNAMIC_MEMBERS = 10_000
"""Of one dynamic group: the oldest ones belong."""
MAX_CONDITIONS = 20
MAX_CHOICES = 100
MAX_LEVELS = 5
"""Of customFields: how deep the listing of Service Objects looks."""
MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class GroupConditions:
    """Who belongs to a dynamic group: all conditions hold, of each one of its choices.

    `fields` are `path=value`, as Service Objects are listed by them.
    """

    stream: str
    fields: tuple[tuple[str, ...], ...] = ()
    names: tuple[str, ...] | None = None
    templates: tuple[str, ...] | None = None
    others: bool = False


def dynamic_groups(document: dict[str, Any]) -> dict[str, GroupConditions]:
    """Return the conditions of the document's dynamic groups, by name. Raises BadDocument.

    A group that names ids beside its conditions is refused: the ids are ours to write.
    """
    groups = document.get("groups")
    if not isinstance(groups, dict):
        return {}
    found = {}
    for name, content in groups.items():
        if isinstance(content, dict) and WHERE in content:
            part = WHOLE.at("groups", name, words=f"group {name[:40]}")
            if MEMBERS in content:
                raise part.at(MEMBERS).bad("a group has soIds or where, not both", BAD_CONDITION)
            found[name] = parse_conditions(content, part)
    return found


def parse_conditions(group: dict[str, Any], part: Part = WHOLE) -> GroupConditions:
    """Return the conditions of a dynamic group. Raises BadDocument."""
    where = group[WHERE]
    place = part.at(WHERE)
    if not isinstance(where, dict):
        raise place.bad("where has to be a JSON object of conditions", BAD_CONDITION)
    if not 1 <= len(where) <= MAX_CONDITIONS:
        raise place.bad(f"where has 1 to {MAX_CONDITIONS} conditions", BAD_CONDITION)
    texts = {key: _choices(each, place.at(key)) for key, each in where.items() if key != OTHERS}
    for key in texts:
        if not (key in ("name", "template", STREAM) or _is_field(key)):
            reason = f"there is no condition {key[:40]!r}: ask for customFields.*, name, template"
            raise place.at(key).bad(reason, BAD_CONDITION)
    others = where.get(OTHERS, False)
    if not isinstance(others, bool):
        raise place.at(OTHERS).bad("public is true or false", BAD_CONDITION)
    return GroupConditions(
        _stream(group, texts.get(STREAM), part),
        tuple(
            tuple(f"{key.removeprefix(FIELD)}={each}" for each in choices)
            for key, choices in texts.items()
            if key.startswith(FIELD)
        ),
        texts.get("name"),
        texts.get("template"),
        others,
    )


def _stream(group: dict[str, Any], asked: tuple[str, ...] | None, part: Part) -> str:
    """Return the stream that is read, which may be said beside the conditions or among them."""
    named = group.get(STREAM, asked[0] if asked and len(asked) == 1 else None)
    if not isinstance(named, str):
        raise part.bad("without stream", INCOMPLETE_GROUP)
    if asked is not None and asked != (named,):
        raise part.at(WHERE, STREAM).bad("is not the stream of the group", BAD_CONDITION)
    return named


def _is_field(key: str) -> bool:
    path = key.removeprefix(FIELD)
    return key.startswith(FIELD) and bool(path) and path.count(".") < MAX_LEVELS


def _choices(value: Any, part: Part) -> tuple[str, ...]:
    """Return what a condition may be, as the listing writes it."""
    choices = value if isinstance(value, list) else [value]
    if len(choices) > MAX_CHOICES:
        raise part.bad(f"at most {MAX_CHOICES} choices", TOO_MUCH)
    return tuple(dict.fromkeys(_written(each, part) for each in choices))


def _written(value: Any, part: Part) -> str:
    if not isinstance(value, str | int | float):
        raise part.bad("compare with texts, numbers, true and false", BAD_CONDITION)
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if len(text) > MAX_TEXT or "\0" in text:
        raise part.bad(f"a text of at most {MAX_TEXT} characters, without NUL", BAD_CONDITION)
    return text


def with_members(document: dict[str, Any], members: dict[str, list[str]]) -> dict[str, Any]:
    """Return the document as it is stored: the ids beside the conditions of these groups."""
    if not members:
        return document
    groups = {
        name: {**content, MEMBERS: members[name]} if name in members else content
        for name, content in document["groups"].items()
    }
    return {**document, "groups": groups}


def without_members(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document as its tenant wrote it: conditions, and not who fulfils them."""
    groups = document.get("groups")
    if not isinstance(groups, dict):
        return document
    shown = {
        name: {key: each for key, each in content.items() if key != MEMBERS}
        if isinstance(content, dict) and WHERE in content
        else content
        for name, content in groups.items()
    }
    return {**document, "groups": shown}
