"""What a composite stream may choose, and what is said to a word that is no choice."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox import argument_names
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.model import Options


def options_of(**fields: Any) -> Options:
    channels = {"v": {"type": "number", "current-value": "function(a){return 1}"}}
    streams = {"a": {"channels": {"v": {"type": "number"}}}, "b": {"channels": channels, **fields}}
    document = {"version": "0.2.0", "streams": streams}
    stream = parse_service_object(document, "so", argument_names).stream("b")
    assert stream is not None
    assert stream.composite is not None
    return stream.composite.options


def test_without_a_choice_the_rules_are_the_papers() -> None:
    assert options_of() == Options("first", "output", "null")


def test_a_document_may_choose() -> None:
    chosen = options_of(diamonds="settle", staleness="input", missing="skip")

    assert chosen == Options("settle", "input", "skip")


@pytest.mark.parametrize("name", ["diamonds", "staleness", "missing"])
@pytest.mark.parametrize("word", ["", "last", None, 1, ["first"], {}])
def test_a_word_that_is_no_choice_is_refused(name: str, word: Any) -> None:
    """The message names the place and the choices there are."""
    with pytest.raises(BadDocument, match=f"stream b: {name} has to be one of '"):
        options_of(**{name: word})
