"""How far a roll-out has come where some of its Service Objects could not be changed."""

from __future__ import annotations

from api.fleets.jobs import before_changed
from servioticy.changes import Changed, StillRead


def test_what_is_refused_for_good_is_passed_over() -> None:
    assert before_changed(["a", "b", "c"], {"b": StillRead([])}) == ["a", "b", "c"]


def test_from_the_first_that_has_changed_meanwhile_it_is_done_again() -> None:
    """Whoever changed it may have made it fit, or not; nothing behind it is told twice."""
    refused = {"d": Changed(), "a": StillRead([]), "c": Changed()}

    assert before_changed(["a", "b", "c", "d"], refused) == ["a", "b"]
    assert before_changed(["c", "d"], refused) == []
