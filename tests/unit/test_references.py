"""References in expressions."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain import references
from servioticy.domain.references import BadReference, parse, substitute


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", []),
        (" . ", []),
        (".a['b c'][0]", ["a", "b c", 0]),
        (".channels.x.current-value", ["channels", "x", "current-value"]),
        ("['channels']['x'][ 'current-value' ]", ["channels", "x", "current-value"]),
        (
            ".channels.*.current-value",
            [("names", "channels"), ("children",), ("names", "current-value")],
        ),
        ("..x[0,-1]", [("below", (("names", "x"),)), ("items", 0, -1)]),
        ("['a','b'][1::2]", [("names", "a", "b"), ("slice", 1, None, 2)]),
        (".`this`", [("this",)]),
        (".a.$", [("names", "a"), ("root",)]),
        (".☺['\\u263a'][\"a'\\n\\\"\"]['it\\'s']", ["☺", "☺", "a'\n\"", "it's"]),
        ("['\\u0061','b\\\\c']", [("names", "a", "b\\c")]),
        (".a\r[\r0\r,1]", [("names", "a"), ("items", 0, 1)]),
        (
            "[?(@.a > 1 && !@.b)]",
            [
                (
                    "where",
                    ("value", ">", (("this",), ("names", "a")), 1),
                    ("not", ("found", (("this",), ("names", "b")))),
                )
            ],
        ),
        (
            "[?(@.a == $.b || @.c)]",
            [
                (
                    "where",
                    (
                        "or",
                        (
                            "both",
                            "==",
                            (("this",), ("names", "a")),
                            (("root",), ("names", "b")),
                        ),
                        ("found", (("this",), ("names", "c"))),
                    ),
                )
            ],
        ),
    ],
)
def test_a_path_is_keys_or_selectors(path: str, expected: list[Any]) -> None:
    found = parse("s", path)

    assert list(found.path) == expected
    assert found.plain == all(not isinstance(each, tuple) for each in expected)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("['a\tb']", "no JSON text has"),
        (r"['\a']", "no JSON text has"),
        (r'["\'"]', "no JSON text has"),
        (r"['\ud800']", "no JSON text has"),
        ("['a", "a quotation mark has no other"),
        ("[01]", "leading zero"),
        ("[-0]", "-0 is no index"),
        (".. a", "no blank comes after a dot"),
        ("[?@.a == True]", "a text stands in quotes"),
        ("[?@.a == 1e2]", "a number has no exponent"),
        ("[?true]", "begins with @ or"),
        ("[?'C' == @.unit]", "begins with @ or"),
        ("[?length(@.a) > 1]", "a function is more than looking"),
    ],
)
def test_a_path_is_spelled_as_the_standard_says(path: str, reason: str) -> None:
    """The library that parses reads each of these as something else."""
    with pytest.raises(BadReference, match=reason):
        parse("s", path)


@pytest.mark.parametrize("path", [".[", "[", ".a[?(", "nonsense", "." + "a" * 2000])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(BadReference, match=r"\{\$s"):
        parse("s", path)


def test_a_lack_of_memory_is_no_fault_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_text: str) -> None:
        raise MemoryError

    monkeypatch.setattr(references._parser, "parse", fail)
    with pytest.raises(MemoryError):
        parse("s", "..that_nobody_has_parsed_yet")


@pytest.mark.parametrize(
    "path",
    [
        ".a[?(@.b =~ '(x+x+)+y')]",
        ".a.`sub(/a/, b)`",
        ".a.`split(-, 0, -1)`",
        ".a * 9999999999",
        ".a.`sorted`",
        "..a.`parent`",
        ".a.`len`",
    ],
)
def test_a_path_only_looks(path: str) -> None:
    with pytest.raises(BadReference, match=r"is more than looking"):
        parse("s", path)


@pytest.mark.parametrize("path", ["[?@" * 255 + "]" * 255, "..(a" * 200 + ")" * 200])
def test_a_path_is_not_nested_without_end(path: str) -> None:
    with pytest.raises(BadReference, match="nested more than 20 times"):
        parse("s", path)


@pytest.mark.parametrize(
    "path", [".*" * 511, "..a" * 340, "[0,0]" * 204, "[?" + "@||" * 300 + "@]"]
)
def test_a_long_path_is_no_nested_one(path: str) -> None:
    assert not parse("s", path).plain


@pytest.mark.parametrize("path", ["[%d]", "[0,%d]", "[-%d:]", "[?(@.a > %d)]", "[::%d]"])
def test_numbers_in_a_path_are_those_of_javascript(path: str) -> None:
    """A longer one ends the process that is to follow it."""
    assert parse("s", path % (2**53 - 1)).path
    for larger in (2**53, 10**900):
        with pytest.raises(BadReference, match="larger than 9007199254740991"):
            parse("s", path % larger)


def spelled(text: str) -> list[tuple[str, str]]:
    """Sources and paths as they stand in the text."""
    found: list[tuple[str, str]] = []
    substitute(text, lambda source, path: found.append((source, path)) or 0)  # type: ignore[func-returns-value]
    return found


def test_references_become_variables() -> None:
    """Values are bound, never pasted: `3-{$g}` with -5 is 8."""
    text = substitute("3-{$g.a}+{$h}+{$g.a}", lambda source, path: "gh".index(source))

    assert text == "3-$0+$1+$0"
    assert spelled("3-{$g.a}+{$h}") == [("g", ".a"), ("h", "")]


def test_braces_are_escaped() -> None:
    text = r"\{$g.a\} {a} {$ } \\"

    assert spelled(text) == []
    assert substitute(text, lambda source, path: 0) == r"{$g.a} {a} {$ } \\"


def test_a_source_may_have_dashes_and_letters_of_any_script() -> None:
    assert spelled("{$0a-é_$.x}") == [("0a-é_$", ".x")]


@pytest.mark.parametrize("text", ["{$" + "a" * 200_000, "{$a.." * 40_000, "\\{" * 100_000])
@pytest.mark.timeout(60)
def test_no_text_takes_for_ever(text: str) -> None:
    """A pattern that looks again from each place needs minutes for each of these."""
    substitute(text, lambda source, path: 0)


@given(st.text(max_size=60))
def test_any_path_is_read_or_refused(path: str) -> None:
    with contextlib.suppress(BadReference):
        assert parse("s", path).expression
