"""With whom a request shares before it is known whose it is; also after a token is revoked."""

from __future__ import annotations

import pickle

import pytest

from servioticy.domain.known_tokens import GOOD_SECONDS, KnownTokens, share_of


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(clock: Clock) -> KnownTokens:
    return KnownTokens(clock, max_tokens=2)


def test_invented_tokens_share_with_their_address(tokens: KnownTokens) -> None:
    assert tokens.share("x1", "10.0.0.1") == tokens.share("x2", "10.0.0.1")
    assert tokens.share("x1", "10.0.0.1") != tokens.share("x1", "10.0.0.2")


def test_a_token_that_was_good_has_its_tenants_share_wherever_it_comes_from(
    tokens: KnownTokens,
) -> None:
    tokens.good("good", 7)
    tokens.good("also good", 7)

    assert tokens.share("good", "10.0.0.1") == tokens.share("also good", "10.0.0.2")
    assert tokens.share("good", "10.0.0.1") == share_of(7)
    assert tokens.share("good", "10.0.0.1") != tokens.share("x1", "10.0.0.1")


def test_a_token_that_may_have_been_revoked_takes_nothing_from_its_tenant(
    tokens: KnownTokens, clock: Clock
) -> None:
    """Nor from strangers at the same address, or from the tenants of other such tokens."""
    tokens.good("mine", 7)
    tokens.good("another's", 8)
    clock.now += GOOD_SECONDS
    assert tokens.share("mine", "here") == share_of(7)
    clock.now += 0.001

    unconfirmed = tokens.share("mine", "here")
    others = {share_of(7), tokens.share("x1", "here"), tokens.share("another's", "here")}
    assert unconfirmed not in others
    tokens.good("mine", 7)
    assert tokens.share("mine", "here") == share_of(7)


def test_a_token_that_was_refused_is_a_stranger_at_once(tokens: KnownTokens) -> None:
    tokens.good("revoked", 7)
    tokens.refused("revoked")
    tokens.refused("never seen")

    assert tokens.share("revoked", "here") == tokens.share("x1", "here")


def test_only_so_many_tokens_are_remembered(tokens: KnownTokens) -> None:
    for token in ("one", "two", "one", "three"):
        tokens.good(token, 7)

    unknown = tokens.share("never seen", "here")
    assert len(tokens) == 2
    assert tokens.share("two", "here") == unknown
    assert tokens.share("one", "here") == tokens.share("three", "here") != unknown


def test_a_long_token_takes_as_much_memory_as_a_short_one(tokens: KnownTokens) -> None:
    """Anything may be presented as a token, and whatever differs is another one."""
    long = "x" * 1_000_000
    tokens.good("x", 7)
    tokens.good(long, 8)
    held, differing = len(pickle.dumps(tokens._tenants)), long[:-1] + "y"

    assert held < 1_000
    assert tokens.share(long, "here") == share_of(8)
    assert tokens.share(differing, "here") == tokens.share("x1", "here")
