"""Who is refused too often is stopped, others are not, and it passes."""

from __future__ import annotations

import pytest

from api.http import attempts as module
from api.http.attempts import Attempts
from api.http.errors import Conflict, NotFound, Refused, TooMany


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def attempts(clock: Clock) -> Attempts:
    return Attempts(clock)


def tried(attempts: Attempts, address: str, error: Exception | None = None) -> bool:
    """Whether what was tried from there was looked at."""
    seen = False
    try:
        with attempts.counted(address):
            seen = True
            if error is not None:
                raise error
    except Refused:
        pass
    return seen


def test_so_many_are_refused_and_no_more_until_later(attempts: Attempts, clock: Clock) -> None:
    most = int(module.OF_AN_ADDRESS.most)
    found = [tried(attempts, "192.0.2.1", NotFound("x")) for _ in range(most + 1)]

    assert found == [True] * most + [False]
    assert not tried(attempts, "192.0.2.1")
    assert tried(attempts, "192.0.2.2")
    clock.now += 1 / module.OF_AN_ADDRESS.per_second
    assert tried(attempts, "192.0.2.1", Conflict("x"))
    assert not tried(attempts, "192.0.2.1")


def test_what_succeeds_or_is_only_mistyped_does_not_count(attempts: Attempts) -> None:
    for _ in range(100):
        assert tried(attempts, "192.0.2.1")
        assert tried(attempts, "192.0.2.1", Refused("x"))


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "", True),
        ("unix", "192.0.2.1", False),
    ],
)
def test_a_network_of_the_sixth_version_is_one(
    attempts: Attempts, one: str, other: str, is_one: bool
) -> None:
    for _ in range(int(module.OF_AN_ADDRESS.most)):
        tried(attempts, one, NotFound("x"))

    assert tried(attempts, other) is not is_one


def test_all_together_are_bounded_and_so_is_what_is_kept(
    attempts: Attempts, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ADDRESSES", 10)
    for number in range(int(module.OF_ALL.most)):
        assert tried(attempts, f"address {number}", NotFound("x"))

    with pytest.raises(TooMany), attempts.counted("another"):
        pass
    assert len(attempts._of) == 10
    clock.now += 1 / module.OF_ALL.per_second
    assert tried(attempts, "another")
