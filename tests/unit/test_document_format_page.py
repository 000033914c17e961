"""docs/document-format.md: its keys are the schema's, its limits the code's, its examples true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from page_commands import blocks

from sandbox import argument_names
from servioticy.domain import actuations, retention
from servioticy.domain.documents import (
    actions,
    aliases,
    callbacks,
    composites,
    durations,
    emitting,
    limits,
    parameters,
    parse_service_object,
    service_objects,
    templates,
    windows,
)
from servioticy.domain.documents.folds import MAX_FOLDED
from servioticy.domain.evaluators.windows.folding import MAX_STATE_BYTES
from servioticy.domain.windows import sketches


def merged(schema: dict[str, Any]) -> dict[str, Any]:
    """What an object of any of several forms may have, and what each of them has to."""
    forms = schema["anyOf"]
    keys = dict.fromkeys(key for each in forms for key in each["properties"])
    return {
        "required": set.intersection(*(set(each["required"]) for each in forms)),
        "properties": {
            key: {
                "anyOf": [each["properties"][key] for each in forms if key in each["properties"]]
            }
            for key in keys
        },
    }


ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "document-format.md").read_text("utf-8")
SCHEMA = json.loads((ROOT / "schemas" / "service-object.json").read_text("utf-8"))
DEFS = SCHEMA["$defs"]
PARTS: dict[str, dict[str, Any]] = {
    "The document": SCHEMA,
    "Streams": {
        "required": DEFS["stream"]["required"],
        "properties": {**DEFS["stream"]["properties"], **DEFS["composite"]["properties"]},
    },
    "Channels": DEFS["channel"],
    "Groups": {**DEFS["group"], "required": ["stream"]},
    "Windows": merged(DEFS["window"]),
    "Actions": SCHEMA["properties"]["actions"]["items"],
    "Actions of a stream": DEFS["composite"]["properties"]["actions"]["items"],
    "`actuationCallback`": SCHEMA["properties"]["actuationCallback"],
}
"""The headings of the page, and what they are of the schema."""

LIMITS = {
    "streams": limits.MAX_STREAMS.most,
    "groups": limits.MAX_MEMBERS.most,
    "aliases": limits.MAX_ALIASES.most,
    "channels": service_objects.MAX_CHANNELS_OF_A_STREAM,
    "pre-filter": composites.MAX_CODE,
    "post-filter": composites.MAX_CODE,
    "fold": composites.MAX_CODE,
    "current-value": composites.MAX_CODE,
    "if": composites.MAX_CODE,
    "soIds": limits.MAX_MEMBERS.most,
    "stream": service_objects.MAX_NAME,
    "where": DEFS["group"]["properties"]["where"]["maxProperties"],
    **dict.fromkeys(
        ("size", "every", "offset", "gap", "max", "delay", "idle", "lateness", "silent"),
        durations.MAX_DAYS,
    ),
    "timeout": actuations.MAX_TIMEOUT,
    "parameters": actuations.MAX_PARAMETERS,
    "destination": callbacks.MAX_DESTINATION,
    "dataTTL": retention.MAX_SECONDS,
}
"""What the code allows of each key that has a limit in the table of its part."""

SAID = (
    f"{limits.MAX_CHANNELS.most:,} in all streams",
    f"{actions.MOST} in a document",
    f"1 to {service_objects.MAX_NAME} characters",
    f"{limits.MAX_ARGUMENTS.most:,} arguments",
    f"{limits.MAX_REFERENCES.most:,} references",
    f"{limits.MAX_PATHS.most:,} paths that do more",
    f"{aliases.MAX_EXPANDED:,} characters",
    f"{windows.MAX_COUNT:,} updates of `count`",
    f"a window has at most {windows.MAX_PANES:,} pieces",
    f"{windows.MAX_PANES:,} pieces with `size`",
    f"{emitting.LEAST_EARLY} ms at least",
    f"an update is in at most {windows.MAX_REVISED} windows",
    f"{windows.MAX_BY} channels a stream",
    f"any JSON of {MAX_STATE_BYTES:,} bytes",
    f"each window that it is in, at most {MAX_FOLDED} (",
    f"up to {durations.MAX_MONTHS} months",
    f'`max` | string | `"{windows.DEFAULT_MAX}"`',
    f"at most {sketches.MAX_BUCKETS:,} buckets",
    f"{parameters.MAX_PARAMETERS} parameters, {templates.MAX_PLACES:,} places",
    f"{parameters.MAX_TEXT:,} characters at most, an array {parameters.MAX_ELEMENTS:,} elements",
)
EXAMPLES = [each for each in blocks(PAGE) if each.language == "json"]


def rows(heading: str) -> dict[str, list[str]]:
    """The table below a heading: type, default, limit and meaning by key."""
    part = re.split(r"^#", PAGE.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", part, re.MULTILINE)
    return {key: [cell.strip() for cell in cells.split("|")] for key, cells in found}


def types(schema: dict[str, Any]) -> set[str]:
    """The JSON types that it takes; {"any"} for all of them."""
    if "$ref" in schema:
        return types(DEFS[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return set().union(*map(types, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return {"string"}
    found = schema.get("type", "any")
    return {found} if isinstance(found, str) else set(found)


@pytest.mark.parametrize("heading", PARTS)
def test_each_key_stands_there_with_its_type_and_whether_it_is_needed(heading: str) -> None:
    part, table = PARTS[heading], rows(heading)

    assert table.keys() == part["properties"].keys()
    for key, (of_type, default, *_) in table.items():
        assert set(of_type.split(", ")) == types(part["properties"][key]), key
        assert (default == "no default") is (key in part.get("required", ())), key


@pytest.mark.parametrize("heading", PARTS)
def test_limits_are_those_of_the_code(heading: str) -> None:
    told = {
        key: int(number[0].replace(",", ""))
        for key, (_type, _default, most, *_) in rows(heading).items()
        if (number := re.match(r"[\d,]+", most)) and (key, heading) != ("actions", "Streams")
    }

    assert told == {key: LIMITS[key] for key in told}
    assert set(LIMITS) & rows(heading).keys() - {"actions"} == told.keys()


@pytest.mark.parametrize("sentence", SAID)
def test_other_limits_stand_in_the_text(sentence: str) -> None:
    assert sentence in PAGE


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"line {each.line}")
def test_each_example_is_accepted(example: Any) -> None:
    """By the parser, by what reads what streams ask for, and by the schema."""
    document = json.loads(example.text)

    parse_service_object(document, "so", argument_names)
    actions.check_actions(document, "so", argument_names)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_every_part_has_an_example() -> None:
    """Each key that the parser looks at is used by one of them."""
    text = "".join(each.text for each in EXAMPLES)
    keys = {key for heading in PARTS for key in rows(heading)} - {"serviceObject"}

    assert {key for key in keys if f'"{key}"' not in text} == set()
