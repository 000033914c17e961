"""With whom a request for a socket shares its turn."""

from __future__ import annotations

from delivery.admission.askers import Askers


def test_invented_tokens_share_the_turn_of_their_address() -> None:
    askers = Askers()

    assert askers.of("x1", "10.0.0.1") == askers.of("x2", "10.0.0.1")
    assert askers.of("x1", "10.0.0.1") != askers.of("x1", "10.0.0.2")


def test_a_token_that_was_good_has_its_tenants_turn_wherever_it_comes_from() -> None:
    askers = Askers()
    askers.note("good", 7)
    askers.note("also good", 7)

    assert askers.of("good", "10.0.0.1") == askers.of("also good", "10.0.0.2")
    assert askers.of("good", "10.0.0.1") != askers.of("x1", "10.0.0.1")


def test_only_so_many_tokens_are_remembered() -> None:
    askers = Askers(max_tokens=2)
    for token in ("one", "two", "one", "three"):
        askers.note(token, 7)

    unknown = askers.of("never seen", "here")
    assert askers.of("two", "here") == unknown
    assert askers.of("one", "here") == askers.of("three", "here") != unknown
