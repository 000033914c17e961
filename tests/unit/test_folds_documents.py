"""A fold beside a window, as documents have it: what is understood, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from bad_documents import refusal, resolved

from sandbox.text import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.documents.folds import MAX_FOLDED
from servioticy.domain.model import Input, WindowRef
from servioticy.domain.scripts import programs_of
from servioticy.domain.windowed import WindowsOf, parts
from servioticy.domain.windows.model import Fold

TUMBLING = {"type": "tumbling", "size": "20m"}
FOLD = "function(state, a){return (state || 0) + iot.value(a, 'v')}"


def document(
    fold: Any = FOLD, window: Any = TUMBLING, code: str = "function(state){return state}"
) -> dict[str, Any]:
    number = {"channels": {"v": {"type": "number"}}}
    c = {"channels": {"m": {"type": "number", "current-value": code}}, "fold": fold}
    c |= {} if window is None else {"window": window}
    return {"version": "0.2.0", "streams": {"a": number, "b": number, "c": c}}


def test_its_windows_bring_a_state_beside_what_they_are() -> None:
    content = document(code="function(state, b){return state / b.count}")
    definition = parse_service_object(content, "so", argument_names)
    (c,) = [each for each in definition.streams if each.composite]
    windows, result = parts(c)
    assert windows.composite is not None and result.composite is not None
    operator = windows.composite.operator
    assert isinstance(operator, WindowsOf)
    assert operator.fold == Fold(FOLD, ("a",))
    assert [each.name for each in windows.composite.inputs] == ["b", "a"]
    assert windows.composite.looks_at_others, "b wakes it, too, and then a is as it stands"
    assert result.composite.inputs[-1] == Input("state", (WindowRef("so", "c"),))
    fold, other = programs_of(c)
    assert (fold.arguments, other.arguments) == (("state", "b", "a"), ("b", "a", "state"))


def test_with_one_input_nothing_else_is_read() -> None:
    definition = parse_service_object(document(), "so", argument_names)
    windows, _result = parts(definition.streams[-1])
    assert windows.composite is not None
    assert not windows.composite.looks_at_others


def test_a_stream_without_a_fold_has_the_windows_that_it_had() -> None:
    """Or all that are open would be abandoned with the first version that knows folds."""
    content = document(None, code="function(a){return a.count}")
    definition = parse_service_object(content, "so", argument_names)
    operator = parts(definition.streams[-1])[0].composite.operator  # type: ignore[union-attr]
    assert isinstance(operator, WindowsOf)
    assert len(operator.cut) == 8  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ({"fold": 7}, "wrong-type", "has to be text"),
        ({"fold": "function(a, state){return 1}"}, "bad-code", "first argument is state"),
        ({"fold": "function(){return 1}"}, "bad-code", "first argument is state"),
        ({"fold": "state + 1"}, "bad-code", "function"),
        ({"fold": "function(state){return 1}"}, "bad-code", "has to name an input"),
        ({"fold": "function(state, $input){return 1}"}, "bad-code", "no $input"),
        ({"fold": "function(state, x){return 1}"}, "unknown-source", "'x'"),
        ({"window": None}, "bad-window", "a stream with a window"),
        ({"window": {"type": "sliding", "size": "1m"}}, "bad-window", "cannot be merged"),
        ({"window": {"type": "session", "gap": "1m"}}, "bad-window", "cannot be merged"),
        (
            {"window": {**TUMBLING, "emit": "updates", "revisions": "discard"}},
            *("bad-window", "none is beside discard"),
        ),
        (
            {"window": {"type": "hopping", "size": "51m", "every": "1m"}},
            "too-much",
            f"more than {MAX_FOLDED} windows",
        ),
        ({"window": {"type": "count", "size": 511, "every": 10}}, "too-much", "longer every"),
        ({"fold": "function(state, a){" + " " * 70_000 + "}"}, "too-much", "65536 bytes"),
    ],
)
def test_what_is_no_fold_is_refused(more: dict[str, Any], code: str, words: str) -> None:
    content = document(**more)
    error = refusal(content)
    assert error is not None
    assert (error.code, error.pointer) == (code, "/streams/c/fold")
    assert words in str(error)
    resolved(error.pointer, content)


@pytest.mark.parametrize(
    "window",
    [
        {"type": "hopping", "size": "50m", "every": "1m"},
        {"type": "count", "size": 500, "every": 10},
        {"type": "tumbling", "size": "1mo", "timezone": "Europe/Berlin"},
        {"type": "global"},
    ],
)
def test_so_many_windows_are_folded(window: dict[str, Any]) -> None:
    assert refusal(document(window=window)) is None


def test_it_needs_the_dialect_of_functions() -> None:
    content = document(code="{$a.count}")
    content["version"] = "0.1.0"
    error = refusal(content)
    assert error is not None
    assert (error.code, error.pointer) == ("bad-code", "/streams/c/fold")


def test_a_simple_stream_has_no_fold() -> None:
    content = document()
    content["streams"]["a"] = {**content["streams"]["a"], "fold": FOLD}
    error = refusal(content)
    assert error is not None
    assert (error.code, error.pointer) == ("bad-window", "/streams/a/fold")


def test_nothing_else_is_called_state_beside_it() -> None:
    content = document()
    content["streams"]["state"] = content["streams"]["a"]
    error = refusal(content)
    assert error is not None
    assert (error.code, error.pointer) == ("bad-code", "/streams/c/fold")
    content["streams"]["c"] = content["streams"]["b"]
    assert refusal(content) is None
