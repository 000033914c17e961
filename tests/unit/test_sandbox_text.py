"""Argument names are read before V8 sees the code: they decide what triggers a stream."""

from __future__ import annotations

import pytest

from sandbox import argument_names
from sandbox.text import without_end


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("function(A,g){return 1}", ("A", "g")),
        ("function (A, B) {}", ("A", "B")),
        ("function name($input, _b) {};", ("$input", "_b")),
        ("function(){}", ()),
        ("/* why */ function(A /* the */, // first\n B) {}", ("A", "B")),
        ("A => A", ("A",)),
        ("(A, B) => A", ("A", "B")),
        ("\n()=>1", ()),
        ("functions => 1", ("functions",)),
    ],
)
def test_names_are_read_and_trimmed(code: str, names: tuple[str, ...]) -> None:
    """The original did not trim, and `function(A, B)` never saw B."""
    assert argument_names(code) == names


@pytest.mark.parametrize("inside", ["", "a", " a , b ", "a,b,", "a\n,\t$b,\u00a0_c1 ,"])
def test_a_comment_among_them_changes_nothing(inside: str) -> None:
    """Without one they are read at once: a hundred thousand of them took a tenth of a second."""
    names = tuple(each.strip() for each in inside.split(",") if each.strip())

    assert argument_names(f"function({inside}){{}}") == names
    assert argument_names(f"function(/**/{inside}){{}}") == names
    assert argument_names(f"({inside}) => 1") == names


@pytest.mark.parametrize("inside", [",", "a b", "a,,b", "1a", "a,=", "a" * 10 + "("])
def test_what_is_no_list_of_names_is_refused(inside: str) -> None:
    for code in (f"function({inside}){{}}", f"function(/**/{inside}){{}}"):
        with pytest.raises(ValueError, match="must be"):
            argument_names(code)


@pytest.mark.parametrize(
    "code", ["", "1+1", "function", "function(A", "(A)", "A", "function([A]){}", "function*(A){}"]
)
def test_what_is_not_a_function_is_refused(code: str) -> None:
    """A caller learns at once, not at the first update."""
    with pytest.raises(ValueError, match="must be"):
        argument_names(code)


@pytest.mark.parametrize(
    ("code", "rest"),
    [("f;", "f"), ("f ; // done;", "f "), ("f;;\n/* ; */", "f"), ("f", None), ("f;g", None)],
)
def test_a_closing_semicolon_is_found_behind_comments(code: str, rest: str | None) -> None:
    """Documents end functions with `;`, which an expression cannot have."""
    assert without_end(code) == rest


@pytest.mark.parametrize("end", [";" * 4000, ";/*;*/" * 600, "; " * 2000])
def test_any_number_of_closing_semicolons_is_taken_away(end: str) -> None:
    """A text of nothing else ended the process that read it."""
    assert without_end("f" + end) == "f"
