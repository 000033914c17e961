"""The window of a stream as its document has it: what is understood, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bad_documents import resolved

from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import CODES
from servioticy.domain.documents.errors import WHOLE, Part
from servioticy.domain.documents.windows import KEYS, parse_window
from servioticy.domain.windows.grid import grid_of
from servioticy.domain.windows.model import Length, Uses, Window

FOLDER = Path(__file__).parents[2] / "schemas"
SCHEMA = json.loads((FOLDER / "service-object.json").read_text("utf-8"))
WINDOW = jsonschema.Draft202012Validator(
    {"$ref": "#/$defs/window", "$defs": SCHEMA["$defs"]},
)
NOT_SAID = {
    *("there are none, as a win", "in several of them", "merge sessions"),
    *("from 1ms to 366d", "from 0ms to 366d", "gap: has to be from 1ms", "from 1mo to 12mo"),
    *("at most 29000 ms long", "at most 86400000 ms long", "shorter than the", "at most 1000"),
    *("at most 1000; take an every that", "shorter than the size", "no 'Berlin'", "there is no"),
    *("updates between two windows would be", "updates between two windows would be lost"),
    *(
        "no 'Europe'",
        "from 100ms to",
        "in more than 100 windows",
        "together may have at most 1000",
    ),
}
"""What is told of windows that fit the schema."""

STREAM = WHOLE.at("streams", "b", words="stream b")
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
TUMBLING = {"type": "tumbling", "size": "20m"}
HOPPING = {"type": "hopping", "size": "5m", "every": "2m"}
SLIDING = {"type": "sliding", "size": "5m"}
SESSION = {"type": "session", "gap": "30s"}
COUNT = {"type": "count", "size": 100}

UNDERSTOOD: list[tuple[dict[str, Any], Window]] = [
    (TUMBLING, Window("tumbling", Length(20 * MINUTE))),
    (HOPPING, Window("hopping", Length(5 * MINUTE), Length(2 * MINUTE))),
    (SLIDING, Window("sliding", Length(5 * MINUTE))),
    (SESSION, Window("session", gap=30_000, max=DAY)),
    (SESSION | {"max": "1h"}, Window("session", gap=30_000, max=HOUR)),
    (COUNT, Window("count", count=100, every_count=100)),
    (COUNT | {"every": 10}, Window("count", count=100, every_count=10)),
    (
        {"type": "count", "size": 100_000, "every": 100},
        Window("count", None, count=100_000, every_count=100),
    ),
    ({"type": "global"}, Window("global")),
    (TUMBLING | {"size": "500ms"}, Window("tumbling", Length(500))),
    (TUMBLING | {"size": "2h"}, Window("tumbling", Length(2 * HOUR))),
    (TUMBLING | {"size": "1d"}, Window("tumbling", Length(1, "days"))),
    (TUMBLING | {"size": "366d"}, Window("tumbling", Length(366, "days"))),
    (TUMBLING | {"size": "2w"}, Window("tumbling", Length(14, "days"))),
    (TUMBLING | {"size": "12mo"}, Window("tumbling", Length(12, "months"))),
    (
        TUMBLING | {"size": "1mo", "timezone": "Europe/Berlin", "offset": "6h"},
        Window("tumbling", Length(1, "months"), offset=6 * HOUR, timezone="Europe/Berlin"),
    ),
    (TUMBLING | {"offset": "0s"}, Window("tumbling", Length(20 * MINUTE))),
    (
        HOPPING | {"offset": "1m", "delay": "10s", "idle": "1h", "time": "event"},
        Window("hopping", Length(5 * MINUTE), Length(2 * MINUTE), MINUTE, delay=10_000, idle=HOUR),
    ),
    (SLIDING | {"time": "arrival"}, Window("sliding", Length(5 * MINUTE), time="arrival")),
    (SLIDING | {"delay": "0ms"}, Window("sliding", Length(5 * MINUTE))),
    (
        {"type": "hopping", "size": "1000m", "every": "1m"},
        Window("hopping", Length(1000 * MINUTE), Length(MINUTE)),
    ),
    (
        {"type": "hopping", "size": "1w", "every": "1d"},
        Window("hopping", Length(7, "days"), Length(1, "days")),
    ),
]

LATE = {"lateness": "1m"}
UNDERSTOOD += [
    (TUMBLING | LATE, Window("tumbling", Length(20 * MINUTE), lateness=MINUTE)),
    (TUMBLING | {"emit": "final", "lateness": "0s"}, Window("tumbling", Length(20 * MINUTE))),
    (TUMBLING | {"emit": "updates"}, Window("tumbling", Length(20 * MINUTE), early=0)),
    (TUMBLING | {"emit": {"when": "1"}}, Window("tumbling", Length(20 * MINUTE), early=0)),
    (
        HOPPING | LATE | {"emit": {"every": "10s"}},
        Window("hopping", Length(5 * MINUTE), Length(2 * MINUTE), early=10_000, lateness=MINUTE),
    ),
    (
        {"type": "hopping", "size": "100m", "every": "1m", "lateness": "900m"},
        Window("hopping", Length(100 * MINUTE), Length(MINUTE), lateness=900 * MINUTE),
    ),
    (
        TUMBLING | LATE | {"revisions": "discard"},
        Window("tumbling", Length(20 * MINUTE), lateness=MINUTE, revisions="discard"),
    ),
    (
        HOPPING | LATE | {"revisions": "retract"},
        Window(
            "hopping",
            Length(5 * MINUTE),
            Length(2 * MINUTE),
            lateness=MINUTE,
            revisions="retract",
        ),
    ),
    (
        SESSION | LATE | {"revisions": "retract"},
        Window("session", gap=30_000, max=DAY, lateness=MINUTE, revisions="retract"),
    ),
    (
        SESSION | {"emit": "updates", "revisions": "accumulate"},
        Window("session", gap=30_000, max=DAY, early=0),
    ),
    (
        SESSION | {"emit": {"every": "100ms"}},
        Window("session", gap=30_000, max=DAY, early=100),
    ),
]

REFUSED: list[tuple[Any, str, str, str]] = [
    (5, "wrong-type", "", "window: has to be a JSON object"),
    (None, "wrong-type", "", "JSON object"),
    ([], "wrong-type", "", "JSON object"),
    ({}, "required", "", "has to have a type: one of 'tumbling', 'hopping'"),
    ({"type": "round"}, "no-choice", "/type", "type: has to be one of 'tumbling'"),
    ({"type": ["count"]}, "no-choice", "/type", "type: has to be one of"),
    ({"type": "tumbling"}, "required", "", "a tumbling window has to have size"),
    ({"type": "hopping", "size": "1m"}, "required", "", "a hopping window has to have every"),
    ({"type": "sliding"}, "required", "", "a sliding window has to have size"),
    ({"type": "session"}, "required", "", "a session window has to have gap"),
    ({"type": "count"}, "required", "", "a count window has to have size"),
    (
        TUMBLING | {"every": "1m"},
        *("bad-window", "/every", "a tumbling window has no 'every'; it may have type, size, off"),
    ),
    (HOPPING | {"timezone": "UTC"}, "bad-window", "/timezone", "a hopping window has no"),
    (SLIDING | {"offset": "1m"}, "bad-window", "/offset", "a sliding window has no 'offset'"),
    (SESSION | {"size": "1m"}, "bad-window", "/size", "a session window has no 'size'"),
    (COUNT | {"time": "event"}, "bad-window", "/time", "may have type, size, every$"),
    ({"type": "global", "size": "1m"}, "bad-window", "/size", "it may have type$"),
    (TUMBLING | {"a/b": 1}, "bad-window", "/a~1b", "has no 'a/b'"),
    (TUMBLING | {"size": 5}, "wrong-type", "/size", 'size: has to be text such as "500ms", "30s"'),
    (TUMBLING | {"size": None}, "wrong-type", "/size", "has to be text"),
    (TUMBLING | {"size": "20"}, "bad-duration", "/size", 'a unit such as .* or "1mo"'),
    (TUMBLING | {"size": "20 m"}, "bad-duration", "/size", "a whole number and a unit"),
    (TUMBLING | {"size": "1.5h"}, "bad-duration", "/size", "a whole number and a unit"),
    (TUMBLING | {"size": "-1s"}, "bad-duration", "/size", "a whole number and a unit"),
    (TUMBLING | {"size": "1S"}, "bad-duration", "/size", "a whole number and a unit"),
    (TUMBLING | {"size": "²s"}, "bad-duration", "/size", "a whole number and a unit"),
    (TUMBLING | {"size": "1s\n"}, "bad-duration", "/size", "a whole number and a unit"),
    (TUMBLING | {"size": "1" * 5000 + "s"}, "bad-duration", "/size", "a whole number and a unit"),
    (TUMBLING | {"size": "0s"}, "bad-duration", "/size", "from 1ms to 366d"),
    (TUMBLING | {"size": "367d"}, "bad-duration", "/size", "from 1ms to 366d"),
    (TUMBLING | {"size": "0mo"}, "bad-duration", "/size", "from 1mo to 12mo"),
    (TUMBLING | {"size": "13mo"}, "bad-duration", "/size", "from 1mo to 12mo"),
    (SLIDING | {"size": "1mo"}, "bad-duration", "/size", "a whole number and a unit"),
    (HOPPING | {"size": "1mo"}, "bad-duration", "/size", "a whole number and a unit"),
    (HOPPING | {"every": "0ms"}, "bad-duration", "/every", "from 1ms to 366d"),
    (HOPPING | {"every": "6m"}, "bad-window", "/every", "updates between two windows would be"),
    (HOPPING | {"every": "299999ms"}, "too-much", "/every", "at most 1000; take an every that"),
    ({"type": "hopping", "size": "1001m", "every": "1m"}, "too-much", "/every", "at most 1000"),
    (SESSION | {"gap": "0s"}, "bad-duration", "/gap", "gap: has to be from 1ms"),
    (SESSION | {"gap": 30}, "wrong-type", "/gap", "gap: has to be text"),
    (SESSION | {"max": "29s"}, "bad-window", "/max", "at most 29000 ms long"),
    (SESSION | {"gap": "25h"}, "bad-window", "/gap", "at most 86400000 ms long"),
    (SESSION | {"max": "1mo"}, "bad-duration", "/max", "a whole number and a unit"),
    (COUNT | {"size": "100"}, "wrong-type", "/size", "a whole number of updates"),
    (COUNT | {"size": True}, "wrong-type", "/size", "a whole number of updates"),
    (COUNT | {"size": 1.5}, "wrong-type", "/size", "a whole number of updates"),
    (COUNT | {"size": 0}, "too-much", "/size", "from 1 to 100000 updates"),
    (COUNT | {"size": 100_001}, "too-much", "/size", "from 1 to 100000 updates"),
    (COUNT | {"every": 0}, "too-much", "/every", "from 1 to 100000 updates"),
    (COUNT | {"every": 101}, "bad-window", "/every", "updates between two windows would be lost"),
    (COUNT | {"size": 1001, "every": 1}, "too-much", "/every", "at most 1000"),
    (TUMBLING | {"offset": "20m"}, "bad-window", "/offset", "shorter than the size"),
    (TUMBLING | {"offset": 5}, "wrong-type", "/offset", "offset: has to be text"),
    (TUMBLING | {"size": "1mo", "offset": "28d"}, "bad-window", "/offset", "shorter than the"),
    (TUMBLING | {"timezone": "UTC"}, "bad-window", "/timezone", "only sizes in days, weeks and"),
    (TUMBLING | {"size": "1d", "timezone": 1}, "wrong-type", "/timezone", "has to be text"),
    (TUMBLING | {"size": "1d", "timezone": "Berlin"}, "no-choice", "/timezone", "no 'Berlin'"),
    (TUMBLING | {"size": "1d", "timezone": "Europe"}, "no-choice", "/timezone", "no 'Europe'"),
    (TUMBLING | {"size": "1d", "timezone": "../zones"}, "no-choice", "/timezone", "there is no"),
    (
        TUMBLING | {"time": "now"},
        "no-choice",
        "/time",
        "time: has to be one of 'event', 'arrival'",
    ),
    (SLIDING | {"time": "arrival", "delay": "1s"}, "bad-window", "/delay", "there is no delay"),
    (SLIDING | {"time": "arrival", "idle": "1s"}, "bad-window", "/idle", "there is no idle"),
    (SLIDING | {"delay": "-1s"}, "bad-duration", "/delay", "a whole number and a unit"),
    (SLIDING | {"delay": "367d"}, "bad-duration", "/delay", "from 0ms to 366d"),
    (SLIDING | {"idle": "0s"}, "bad-duration", "/idle", "from 1ms to 366d"),
    (TUMBLING | {"time": "arrival"} | LATE, "bad-window", "/lateness", "there is no lateness"),
    (TUMBLING | {"lateness": 5}, "wrong-type", "/lateness", "lateness: has to be text"),
    (SLIDING | LATE, "bad-window", "/lateness", "a sliding window has no 'lateness'"),
    (SESSION | {"time": "arrival"} | LATE, "bad-window", "/lateness", "there is no lateness"),
    (SESSION | LATE | {"revisions": "discard"}, "bad-window", "/revisions", "merge sessions"),
    (SLIDING | {"emit": "updates"}, "bad-window", "/emit", "a sliding window has no 'emit'"),
    (COUNT | {"emit": "updates"}, "bad-window", "/emit", "a count window has no 'emit'"),
    (
        TUMBLING | {"emit": "early"},
        "no-choice",
        "/emit",
        'emit: has to be "final", "updates", {"every"',
    ),
    (TUMBLING | {"emit": None}, "no-choice", "/emit", "has to be"),
    (TUMBLING | {"emit": {}}, "required", "/emit", "has to have every"),
    (TUMBLING | {"emit": {"at": 1}}, "bad-window", "/emit/at", "every or when and nothing else"),
    (TUMBLING | {"emit": {"when": 1}}, "wrong-type", "/emit/when", "when: has to be text"),
    (
        TUMBLING | {"emit": {"when": "a.count", "every": "1s"}},
        *("bad-window", "/emit/every", "there is when, too"),
    ),
    (TUMBLING | {"emit": {"every": 10}}, "wrong-type", "/emit/every", "has to be text"),
    (TUMBLING | {"emit": {"every": "99ms"}}, "bad-duration", "/emit/every", "from 100ms to"),
    (
        {"type": "hopping", "size": "101m", "every": "1m", "emit": "updates"},
        *("too-much", "/emit", "in more than 100 windows"),
    ),
    (
        {"type": "hopping", "size": "101m", "every": "1m", "lateness": "1s"},
        *("too-much", "/lateness", "in more than 100 windows"),
    ),
    (TUMBLING | {"revisions": "retract"}, "bad-window", "/revisions", "there are none, as a win"),
    (
        TUMBLING | LATE | {"revisions": "undo"},
        "no-choice",
        "/revisions",
        "one of 'accumulate', 're",
    ),
    (TUMBLING | LATE | {"revisions": 1}, "no-choice", "/revisions", "one of 'accumulate', 're"),
    (HOPPING | LATE | {"revisions": "discard"}, "bad-window", "/revisions", "in several of them"),
    (SLIDING | {"revisions": "retract"}, "bad-window", "/revisions", "a sliding window has no"),
    (TUMBLING | {"lateness": "334h"}, "too-much", "/lateness", "together may have at most 1000"),
]


def uses_of(*codes: str) -> Uses:
    return parse_window(STREAM, {"type": "global"}, codes).uses


@pytest.mark.parametrize(("content", "window"), UNDERSTOOD)
def test_a_window_is_understood(content: dict[str, Any], window: Window) -> None:
    found = parse_window(STREAM, content, ["function(air) { return air.count }"])

    assert found == window
    assert hash(found) == hash(window)


@pytest.mark.parametrize(("content", "code", "pointer", "words"), REFUSED)
def test_a_bad_window_is_told_with_its_place(
    content: Any, code: str, pointer: str, words: str
) -> None:
    with pytest.raises(BadDocument, match=words) as raised:
        parse_window(STREAM, content, [])
    error = raised.value

    assert (error.code, error.pointer) == (code, f"/streams/b/window{pointer}")
    assert error.code in CODES
    assert error.reason.startswith("stream b: window")
    resolved(error.pointer, {"streams": {"b": {"window": content}}})


@pytest.mark.parametrize(("content", "window"), UNDERSTOOD)
def test_what_is_understood_fits_the_schema(content: dict[str, Any], window: Window) -> None:
    WINDOW.validate(content)


@pytest.mark.parametrize(("content", "code", "pointer", "words"), REFUSED)
def test_what_is_refused_does_not_fit_the_schema(
    content: Any, code: str, pointer: str, words: str
) -> None:
    """But for what a schema cannot say. A line end behind a pattern is one to Python only."""
    fits = WINDOW.is_valid(content)

    assert fits == (words in NOT_SAID or content == TUMBLING | {"size": "1s\n"})


def test_the_page_has_the_types_and_their_keys() -> None:
    """Those that have to be there in bold."""
    page = (FOLDER.parent / "docs" / "document-format.md").read_text("utf-8")
    _, _, table = page.partition("### Types of windows")
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*?) ?\|$", table.partition("\n#")[0], re.MULTILINE)

    assert rows[1:] == [
        (
            kind,
            ", ".join(
                [*(f"**`{key}`**" for key in keys.required), *(f"`{key}`" for key in keys.others)]
            ),
        )
        for kind, keys in KEYS.items()
    ]


def test_every_kind_is_understood_and_refused_something() -> None:
    """And each of its keys is given in some window that is understood."""
    for kind, keys in KEYS.items():
        given = [content for content, _ in UNDERSTOOD if content["type"] == kind]

        assert set().union(*given) >= {"type", *keys.required}
        assert any(isinstance(each, dict) and each.get("type") == kind for each, *_ in REFUSED)
    assert set().union(*(content for content, _ in UNDERSTOOD)) == {
        key for keys in KEYS.values() for key in keys.all
    }


@pytest.mark.parametrize(("content", "window"), UNDERSTOOD)
def test_what_is_understood_can_be_computed(content: dict[str, Any], window: Window) -> None:
    """In milliseconds nothing is too fine."""
    if window.size is not None:
        grid = grid_of(parse_window(STREAM, content, []), 1000)
        pane = grid.pane_of(1_700_000_000_000)

        assert grid.ends(pane, pane.begin, 2**63)


def test_what_is_asked_of_windows_is_known_from_the_code() -> None:
    assert uses_of("function(air) { return air.mean('celsius') }") == Uses()
    assert uses_of("1", "air.quantile('celsius', 0.9)").sketches
    assert uses_of("air.updates.length").updates
    assert uses_of('air.by("a")', "air . by ( 'b' )", "air?.by(`c`).by('a')").by == ("a", "b", "c")
    assert uses_of("air.byte(1) + air.standby('x')").by == ()
    assert uses_of('air.by("it\'s")').by == ("it's",)


@pytest.mark.parametrize(
    "code", ["air.by(name)", "air.by('a' + b)", "air.by()", "air.by(`a${b}`)", r"air.by('a\'b')"]
)
def test_by_takes_only_a_text(code: str) -> None:
    """What is kept has to be known before any code runs."""
    with pytest.raises(BadDocument, match="by has to name its channel as a text") as raised:
        uses_of("air.by('fine')", code)

    assert (raised.value.code, raised.value.pointer) == ("bad-code", "/streams/b")


def test_by_takes_few_channels() -> None:
    assert len(uses_of(*(f"air.by('{n % 4}')" for n in range(9))).by) == 4
    with pytest.raises(BadDocument, match="more than 4 channels") as raised:
        uses_of(*(f"air.by('{n}')" for n in range(5)))

    assert (raised.value.code, raised.value.pointer) == ("too-much", "/streams/b")


def test_the_stream_is_named_as_it_is_given() -> None:
    with pytest.raises(BadDocument) as raised:
        parse_window(Part(("streams", "x"), "stream x"), {"type": "tumbling"}, [])

    assert str(raised.value) == "stream x: window: a tumbling window has to have size"
