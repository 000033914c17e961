"""Stored progress and the log: when they belong together, and what is done when not."""

from __future__ import annotations

import logging

import pytest

from servioticy.domain import log_loss
from servioticy.domain.log_loss import Bounds, LogLost, Loss, Present, Stored


class Identity:
    """The twin of what Postgres keeps."""

    def __init__(self, stored: Stored) -> None:
        self.kept = stored
        self.lost: list[Loss] = []

    def stored(self) -> Stored:
        return self.kept

    def note(self, topic: str, topic_id: str) -> None:
        self.kept = Stored(topic, topic_id, self.kept.progress)

    def accept(self, topic: str, topic_id: str, losses: list[Loss]) -> None:
        moved = {each.partition: each.next_offset for each in losses}
        self.kept = Stored(topic, topic_id, {**self.kept.progress, **moved})
        self.lost += losses


def a_log(*bounds: tuple[int, int], topic_id: str = "A") -> Present:
    return Present("updates", topic_id, {n: Bounds(*each) for n, each in enumerate(bounds)})


@pytest.mark.parametrize("progress", [3, 5, 9])
def test_progress_within_the_log_is_as_it_should_be(progress: int) -> None:
    identity = Identity(Stored("updates", "A", {0: progress}))

    log_loss.check(identity, lambda: a_log((3, 9)))


@pytest.mark.parametrize(
    ("progress", "goes_on_at", "words"),
    [(10, 9, "offsets 9 to 9 are lost"), (2, 3, "offsets 2 to 2 are lost")],
)
def test_progress_outside_the_log_is_refused(
    progress: int, goes_on_at: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One offset beyond either end: it is said what is lost and what to do. Once accepted it
    goes on there, and the log of events names it."""
    identity = Identity(Stored("updates", "A", {0: progress, 1: 0}))
    log = a_log((3, 9), (0, 0))

    with pytest.raises(LogLost, match=words) as refused:
        log_loss.check(identity, lambda: log)
    assert "servioticy doctor --accept-log-loss" in str(refused.value)

    with caplog.at_level(logging.WARNING):
        log_loss.accept(identity, lambda: log)
    assert caplog.messages == ["log_loss_accepted"]
    assert identity.kept.progress == {0: goes_on_at, 1: 0}
    log_loss.check(identity, lambda: log)


def test_another_topic_is_refused_however_long_it_is() -> None:
    """It has grown past what is stored of the old one: by offsets alone nothing is wrong."""
    identity = Identity(Stored("updates", "A", {0: 7}))
    other = a_log((2, 100), topic_id="B")

    with pytest.raises(LogLost, match=r"present one has 2 to 100.*has id B.*with id A"):
        log_loss.check(identity, lambda: other)

    log_loss.accept(identity, lambda: other)
    assert identity.kept.progress == {0: 2}, "the new one is read from its beginning"
    log_loss.check(identity, lambda: other)


def test_another_topic_is_no_loss_where_nothing_is_stored() -> None:
    identity = Identity(Stored("updates", "A", {0: 0}))

    log_loss.check(identity, lambda: a_log((0, 5), topic_id="B"))

    assert identity.kept.topic_id == "B"


def test_the_first_start_notes_which_log_it_is() -> None:
    identity = Identity(Stored(None, None, {}))

    log_loss.check(identity, lambda: a_log((0, 5)))

    assert (identity.kept.topic, identity.kept.topic_id) == ("updates", "A")


def test_a_partition_that_is_gone_is_a_loss() -> None:
    identity = Identity(Stored("updates", "A", {0: 4, 1: 4}))

    with pytest.raises(LogLost, match="partition 1"):
        log_loss.check(identity, lambda: a_log((0, 9)))


def test_progress_is_asked_before_the_log() -> None:
    """Both grow while we look: the other way round a busy platform would be refused."""
    identity = Identity(Stored("updates", "A", {0: 4}))
    log = {"end": 4}

    def look() -> Present:
        log["end"] += 5
        identity.kept = Stored("updates", "A", {0: log["end"]})
        return a_log((0, log["end"]))

    log_loss.check(identity, look)
