"""What becomes of those who append when their producer is of no use any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import msgspec
import pytest
from kafka_faults import bring_fatal_error

from servioticy.domain.records import UpdateRecord
from servioticy.domain.topics import Topics
from servioticy.errors import Unavailable
from servioticy.messaging import log_writer
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.emitter import Emitter
from servioticy.messaging.log_writer import LogWriter

SECONDS = 60.0
"""The longest a test waits for what has to happen."""
NOBODY = KafkaConnection("127.0.0.1:1")
RECORD = UpdateRecord("so", "s", 1, msgspec.Raw(b'{"lastUpdate":1}'))


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[LogWriter]:
    """One whose broker never answers, and who waits for it longer than a test does."""
    monkeypatch.setattr(log_writer, "RENEWAL_SECONDS", 0.01)
    writer = LogWriter(NOBODY, Topics(), 2 * SECONDS)
    yield writer
    writer._grouped.producer.purge()
    writer.close()


def until_queued(writer: LogWriter) -> None:
    deadline = time.monotonic() + SECONDS
    while not len(writer._grouped.producer):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_who_waits_is_told_at_once_when_nothing_more_will_come(writer: LogWriter) -> None:
    """Each time: the one that follows may meet the same."""
    for _ in range(3):
        told: list[Exception] = []

        def append(told: list[Exception] = told) -> None:
            try:
                writer.append(0, RECORD)
            except Unavailable as error:
                told.append(error)

        used = writer._grouped.producer
        waiting = threading.Thread(target=append, daemon=True)
        waiting.start()
        until_queued(writer)
        bring_fatal_error(used)
        waiting.join(SECONDS)
        deadline = time.monotonic() + SECONDS
        while writer._grouped.producer is used:
            assert time.monotonic() < deadline
            time.sleep(0.005)

        assert len(told) == 1


def test_who_appends_many_is_told_as_soon_as_nothing_more_will_come(writer: LogWriter) -> None:
    told: list[Exception] = []

    def append() -> None:
        try:
            writer.append_all([(0, RECORD), (1, RECORD)])
        except Unavailable as error:
            told.append(error)

    waiting = threading.Thread(target=append, daemon=True)
    waiting.start()
    until_queued(writer)
    bring_fatal_error(writer._grouped.producer)
    waiting.join(SECONDS)

    assert len(told) == 1


def test_an_emitter_says_that_it_has_to_be_made_anew() -> None:
    """Then the partition begins again with another; any other error would be the record's."""
    emitter = Emitter(NOBODY, Topics(), 0)
    bring_fatal_error(emitter._producer)

    with pytest.raises(Unavailable, match="made anew"):
        emitter.poll()
