"""The check of a document's code has an end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from api.documents.snippets import SECONDS, Snippets
from sandbox import HadToWait, InfraError, Program, TookTooLong, argument_names
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.errors import Unavailable

CODE = {"channels": {"x": {"type": "number", "current-value": "function(a){return a}"}}}
DOCUMENT = {
    "version": "0.2.0",
    "streams": {"a": {"channels": {"x": {"type": "number"}}}, "b": CODE, "c": CODE},
}


class Checker:
    """Answers this about the first program, or raises what it is given."""

    def __init__(self, error: Exception | None = None, *, answers: Sequence[str] = ()) -> None:
        self.asked: list[tuple[str, int, float | None, float | None]] = []
        self._error = error
        self._answers = list(answers)

    def check_all(
        self,
        programs: Sequence[Program],
        within: float | None = None,
        tenant: str = "",
        patience: float | None = None,
    ) -> list[list[str]]:
        self.asked.append((tenant, len(programs), within, patience))
        if self._error:
            raise self._error
        return [self._answers, []]


def problems(
    checker: Checker, seconds: float = SECONDS, patience: float = 1.0
) -> list[BadDocument]:
    definition = parse_service_object(DOCUMENT, "so", argument_names)
    return Snippets(checker, seconds, lambda: patience).problems(7, definition)


def test_all_programs_of_a_tenant_are_checked_within_a_time() -> None:
    checker = Checker()

    assert problems(checker, 3.0, 2.0) == []
    assert checker.asked == [("7", 2, 3.0, 2.0)]


def test_what_is_wrong_is_told_with_its_place() -> None:
    """The sandbox says in words in which snippet it is."""
    found = {
        "channel x: line 1, column 3: no": "/streams/b/channels/x/current-value",
        "post-filter: line 2, column 1: no": "/streams/b/post-filter",
        "the program cannot be checked: timeout": "/streams/b",
    }

    assert [
        (each.reason, each.pointer, each.code) for each in problems(Checker(answers=list(found)))
    ] == [(f"stream b: {text}", pointer, "bad-code") for text, pointer in found.items()]


def test_code_that_takes_too_long_is_refused() -> None:
    with pytest.raises(BadDocument, match="takes too long to check") as refused:
        problems(Checker(TookTooLong(3.1, 3.0)))

    assert refused.value.code == "too-slow"


def test_code_that_waited_for_others_may_be_sent_again() -> None:
    """The document is not to blame: 503, and not 400."""
    with pytest.raises(Unavailable, match="try again later"):
        problems(Checker(HadToWait(3.1, 3.0)))


def test_a_sandbox_that_cannot_say_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="the sandbox cannot look at the code"):
        problems(Checker(InfraError("no zygote")))
