"""References in expressions (contract 2.2)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.model import Reference
from servioticy.references import BadReference, parse, resolve, selectors, substitute

UPDATE = {
    "channels": {"x": {"current-value": 5, "unit": "C"}, "l": {"current-value": [1, 2]}},
    "lastUpdate": 7,
    "text": "abc",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", UPDATE),
        (".", UPDATE),
        (" ", UPDATE),
        (".lastUpdate", 7),
        (".channels.x.current-value", 5),
        (".channels.x['current-value']", 5),
        ("['channels']['x'][ 'current-value' ]", 5),
        ('["channels"].x.unit', "C"),
        (".channels.l.current-value[1]", 2),
        (".channels.l.current-value[9]", None),
        (".channels.nothing.current-value", None),
        (".lastUpdate.deeper", None),
        (".text[0]", None),
        (".channels[0]", None),
        (".channels.*.unit", ["C"]),
        ("..unit", ["C"]),
        (".channels.*.current-value", [5, [1, 2]]),
        (".channels.*.nothing", None),
    ],
)
def test_a_path_finds_its_value(path: str, value: Any) -> None:
    assert resolve(parse("s", path), UPDATE) == value


def test_nothing_is_found_in_nothing() -> None:
    assert resolve(parse("s", ".a"), None) is None


def test_plain_paths_need_no_interpreter() -> None:
    assert parse("s", ".a['b c'][0]").steps == ("a", "b c", 0)
    assert parse("s", ".a[?(@.b > 1)]").steps is None


@pytest.mark.parametrize("path", [".[", "[", ".a[?(", "nonsense", "." + "a" * 2000])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(BadReference, match=r"\{\$s"):
        parse("s", path)


@pytest.mark.parametrize(
    "path",
    [
        ".a[?(@.b =~ '(x+x+)+y')]",
        ".a.`sub(/a/, b)`",
        ".a.`split(-, 0, -1)`",
        ".a * 9999999999",
        ".a.`sorted`",
        "..a..b..c",
    ],
)
def test_a_path_only_looks(path: str) -> None:
    """It is followed outside the sandbox: a regular expression could take for ever there."""
    with pytest.raises(BadReference, match=r"look|times"):
        parse("s", path)


def test_references_become_variables_each_once() -> None:
    """Values are bound, never pasted: `3-{$g}` with -5 is 8."""
    references: list[Reference] = []

    text = substitute("3-{$g.a}+{$h}+{$g.a}", references)

    assert text == "3-$0+$1+$0"
    assert [(each.source, each.steps) for each in references] == [("g", ("a",)), ("h", ())]


def test_braces_are_escaped() -> None:
    assert substitute(r"\{$g.a\} {a} {$ } \\", []) == r"{$g.a} {a} {$ } \\"


def test_a_source_may_have_dashes_and_letters_of_any_script() -> None:
    references: list[Reference] = []
    substitute("{$0a-é_$.x}", references)

    assert references[0].source == "0a-é_$"


@pytest.mark.parametrize("text", ["{$" + "a" * 200_000, "{$a.." * 40_000, "\\{" * 100_000])
def test_no_text_takes_long(text: str) -> None:
    started = time.perf_counter()
    substitute(text, [])

    assert time.perf_counter() - started < 1


@given(st.text(max_size=60))
def test_any_path_is_read_or_refused(path: str) -> None:
    try:
        reference = parse("s", path)
    except BadReference:
        return
    if reference.steps is not None:
        resolve(reference, UPDATE)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            ".channels.*.current-value",
            [("names", "channels"), ("children",), ("names", "current-value")],
        ),
        ("..x[0,-1]", [("below", (("names", "x"),)), ("items", 0, -1)]),
        ("['a','b'][1::2]", [("names", "a", "b"), ("slice", 1, None, 2)]),
        (".`this`", [("this",)]),
    ],
)
def test_a_path_below_the_result_becomes_selectors(path: str, expected: list[Any]) -> None:
    assert list(selectors(parse("result", path))) == expected


@pytest.mark.parametrize("path", [".a[?(@.x>1)]", "..a.`parent`", ".a.`len`"])
def test_what_the_sandbox_cannot_follow_is_refused(path: str) -> None:
    with pytest.raises(BadReference, match=r"is not possible below \$result"):
        selectors(parse("result", path))
