"""Measurements through a named pipe, and who reads them."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from waiting import until

from monitoring.applications.handler import MAX_LINE, Handler
from monitoring.configuration import Publish
from monitoring.model import Node, RuntimePerformance
from monitoring.publishers.every import Every, Surroundings
from monitoring.publishers.pipe import PipePublisher
from monitoring.publishers.sums import Sums
from servioticy.errors import Unavailable

NODE = Node("here/loop/1", "stepping")


def a_step(number: int, links: int = 0) -> RuntimePerformance:
    some = tuple(f"{each:032x}-{each:016x}" for each in range(links))
    return RuntimePerformance(NODE, "f", number, number + 1, f"s{number}", links=some)


class Reading:
    """A handler, and what it has stored."""

    def __init__(self, folder: Path) -> None:
        self.pipe, self.file = folder / "pipe", folder / "stored.ndjson"
        self.handler = Handler(self.pipe, Every(Publish(), Surroundings(self.file, Sums())))

    def stored(self) -> list[int | None]:
        self.handler.close()
        text = self.file.read_bytes() if self.file.exists() else b""
        return [msgspec.json.decode(x, type=RuntimePerformance).start for x in text.splitlines()]


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Reading]:
    return Reading(tmp_path)


def test_what_many_write_at_once_comes_whole(reading: Reading) -> None:
    """And by each in its order, though far more comes than the pipe holds."""

    def write(first: int) -> None:
        publisher = PipePublisher(reading.pipe)
        for number in range(first, first + 1_000, 100):
            publisher.publish([a_step(each) for each in range(number, number + 100)])
        publisher.close()

    threads = [threading.Thread(target=write, args=(each * 1_000,)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = reading.stored()

    assert sorted(found) == [*range(4_000)]  # type: ignore[type-var]
    for first in range(0, 4_000, 1_000):
        own = [each for each in found if each is not None and first <= each < first + 1_000]
        assert own == sorted(own)
    assert (reading.handler.stored, reading.handler.lost) == (4_000, 0)


def test_what_is_too_long_to_be_written_at_once_is_counted(reading: Reading) -> None:
    publisher = PipePublisher(reading.pipe)
    assert publisher.publish([a_step(1), a_step(2, links=100), a_step(3)]) == 1
    publisher.close()

    assert reading.stored() == [1, 3]


def test_without_a_reader_it_may_come(reading: Reading, tmp_path: Path) -> None:
    publisher = PipePublisher(tmp_path / "nowhere")
    with pytest.raises(Unavailable):
        publisher.publish([a_step(1)])
    publisher = PipePublisher(reading.pipe)
    publisher.publish([a_step(1)])
    reading.handler.close()
    with pytest.raises(Unavailable):
        publisher.publish([a_step(2)])
    again = Reading(tmp_path)
    publisher.publish([a_step(3)])

    assert again.stored() == [1, 3]


def test_a_full_pipe_is_waited_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitoring.publishers.pipe.FULL_SECONDS", 0.01)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    publisher = PipePublisher(tmp_path / "pipe")
    try:
        with pytest.raises(Unavailable):
            for number in range(100_000):
                publisher.publish([a_step(number)])
    finally:
        publisher.close()
        os.close(reader)


def test_what_is_no_measurement_is_counted(reading: Reading) -> None:
    """Whatever an application writes there: its monitor stores what it can."""
    line = msgspec.json.encode(a_step(7)) + b"\n"
    writer = os.open(reading.pipe, os.O_WRONLY)
    for part in (b"{}\n", b"\xff\n\n", b"x" * select.PIPE_BUF, b"\n", line[:10], line[10:], b"{"):
        os.write(writer, part)
    os.close(writer)

    assert reading.stored() == [7]
    assert reading.handler.lost == 4


def test_a_line_without_an_end_is_forgotten(reading: Reading) -> None:
    writer = os.open(reading.pipe, os.O_WRONLY)
    for _ in range(MAX_LINE // select.PIPE_BUF + 1):
        os.write(writer, b"x" * select.PIPE_BUF)
    until(lambda: reading.handler.lost == 1)
    os.write(writer, b"\n" + msgspec.json.encode(a_step(7)) + b"\n")
    os.close(writer)

    assert reading.stored() == [7]
