"""Trace contexts: read as W3C says, whatever comes; made only while somebody wants it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.records import EmittedRecord, LogRecord, UpdateRecord, read_record, write
from servioticy.domain.traces import LENGTH, Making, are_written, id_of, read, step_of

TRACE, STEP = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{STEP}-01"
SCHEMAS = Path(__file__).parents[2] / "schemas"


def test_a_context_is_kept_with_its_parts() -> None:
    assert read(CONTEXT) == CONTEXT
    assert (id_of(CONTEXT), step_of(CONTEXT), len(CONTEXT)) == (TRACE, STEP, LENGTH)
    assert read(f"\t {CONTEXT} ") == CONTEXT


@pytest.mark.parametrize(
    ("header", "flags"),
    [
        (f"00-{TRACE}-{STEP}-00", "00"),
        (f"00-{TRACE}-{STEP}-ff", "03"),
        (f"cc-{TRACE}-{STEP}-01", "01"),
        (f"cc-{TRACE}-{STEP}-01-what-will-the-future-be", "01"),
    ],
)
def test_what_later_versions_add_is_left_out(header: str, flags: str) -> None:
    assert read(header) == f"00-{TRACE}-{STEP}-{flags}"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "-",
        "00",
        TRACE,
        f"ff-{TRACE}-{STEP}-01",
        f"00-{'0' * 32}-{STEP}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{STEP}-01",
        f"00-{TRACE}-{STEP}-01-more",
        f"00-{TRACE}-{STEP}-0",
        f"00-{TRACE}-{STEP}-0g",
        f"cc-{TRACE}-{STEP}-01.what",
        f"cc-{TRACE}-{STEP}-01-{'x' * 1000}",
        f"00-{TRACE[:-1]}-{STEP}-01",
        f"{CONTEXT},{CONTEXT}",
        f"{CONTEXT}\r\nX: y",
        f"{CONTEXT}\n",
        CONTEXT.replace("4", "\u0664", 1),
    ],
)
def test_what_is_not_valid_is_none(header: str | None) -> None:
    assert read(header) == ""


@given(st.one_of(st.text(max_size=80), st.from_regex(r"[0-9a-f]{2}-[0-9a-f-]{0,60}")))
def test_whatever_comes_is_none_or_fits_a_record(header: str) -> None:
    found = read(header)

    record = UpdateRecord("so", "s", 1, msgspec.Raw(b"{}"), trace=found)
    assert read_record(write(record)) == record
    assert len(found) in (0, LENGTH)


@pytest.mark.parametrize(
    "other",
    [
        *(CONTEXT.replace("-01", "-09"), f" {CONTEXT}", CONTEXT[:-1], f"{CONTEXT},{CONTEXT}"),
        *("", CONTEXT.upper(), f"00-{'0' * 32}{CONTEXT[35:]}", f"{CONTEXT[:36]}{'0' * 16}-01"),
    ],
)
def test_several_are_known_to_be_contexts_together(other: str) -> None:
    """Where one is not, or not as we write them, each has to be read."""
    assert are_written([])
    assert are_written([CONTEXT] * 3)
    assert not are_written([CONTEXT, other])
    assert not are_written([other, CONTEXT])


def test_without_a_context_a_record_has_no_byte_for_it() -> None:
    """What nobody traces costs the log nothing."""
    plain = UpdateRecord("so", "s", 1, msgspec.Raw(b"{}"), at=5)

    assert write(plain) == (
        b'{"kind":"update","service_object":"so","stream":"s","timestamp":1,"update":{},"at":5}'
    )
    traced = msgspec.structs.replace(plain, trace=CONTEXT)
    assert write(traced) == write(plain)[:-1] + b',"trace":"%b"}' % CONTEXT.encode()


def test_contexts_are_made_only_while_somebody_wants_it() -> None:
    making = Making()
    nobody = making.of(None), making.of("nonsense"), making.of(CONTEXT)
    making.make = lambda: "made"

    assert nobody == ("", "", CONTEXT)
    assert (making.of(None), making.of("nonsense"), making.of(CONTEXT)) == (
        "made",
        "made",
        CONTEXT,
    )


def test_what_goes_on_comes_from_the_step_under_way() -> None:
    """So who receives it is a part of that step; without one the context goes on as it came."""
    making, step = Making(), "1" * 16
    as_it_came = making.onward(CONTEXT)
    making.step_under_way = lambda context: step if context == CONTEXT else ""
    unsampled = CONTEXT[:-2] + "02"

    assert as_it_came == CONTEXT
    assert making.onward(CONTEXT) == f"00-{id_of(CONTEXT)}-{step}-01"
    assert (making.onward(unsampled), making.onward("")) == (unsampled, "")
    making.step_under_way = lambda _context: step
    assert making.onward(unsampled) == f"00-{id_of(CONTEXT)}-{step}-03"
    assert making.onward("") == ""


def _fields() -> list[Any]:
    schema = json.loads((SCHEMAS / "log-record.json").read_text())
    told = {each["title"]: set(each["properties"]) for each in schema["oneOf"]}
    kinds = {each.__struct_config__.tag: each for each in get_args(LogRecord)}
    emitted = set(json.loads((SCHEMAS / "emitted-record.json").read_text())["properties"])
    return [
        *(
            (kind, {"kind", *struct.__struct_fields__}, told[kind])
            for kind, struct in kinds.items()
        ),
        ("emitted", set(EmittedRecord.__struct_fields__), emitted),
    ]


@pytest.mark.parametrize(("kind", "has", "told"), _fields(), ids=[each[0] for each in _fields()])
def test_the_schema_tells_every_field_of_a_record(
    kind: str, has: set[str], told: set[str]
) -> None:
    assert has == told, kind
