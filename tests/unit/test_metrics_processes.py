"""A program of several processes has one `/metrics`: the sum of what they tell."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_platform import until
from scraped import samples

from servioticy.metrics import Registry, join, processes, shared
from servioticy.metrics.names import BATCH_UPDATES, LAG, PROGRAM_STARTS
from servioticy.metrics.processes import FOLDER
from servioticy.metrics.server import Server

SECONDS = 20.0
STARTS = 'servioticy_program_starts_total{program="api"}'


@pytest.fixture
def first() -> Iterator[Registry]:
    """The metrics of the process that asks the others."""
    registry = Registry(with_process=False)
    with shared(registry):
        yield registry


def another(starts: int) -> Server:
    """One more process, as far as the first can tell, once it can be asked."""
    registry = Registry(with_process=False)
    registry.counter(PROGRAM_STARTS).labels("api").inc(starts)
    registry.gauge(LAG).labels("0").set(starts)
    registry.histogram(BATCH_UPDATES).observe(starts)
    before = len(written_down())
    server = join(registry)
    assert server is not None
    until(lambda: len(written_down()) > before, SECONDS)
    return server


def written_down() -> list[Path]:
    return [each for each in Path(os.environ[FOLDER]).iterdir() if not each.name.startswith(".")]


def test_metrics_add_up(first: Registry) -> None:
    servers = [another(1), another(10)]

    found = samples(first.text())
    assert found[STARTS] == 11
    assert found['servioticy_lag_records{partition="0"}'] == 11
    assert found["servioticy_batch_updates_count"] == 2
    for each in servers:
        each.close()


def test_what_an_ended_process_has_counted_still_counts(first: Registry) -> None:
    """A counter that went down would look as if it had begun anew."""
    staying, ending = another(1), another(10)
    first.text()
    ending.close()

    for _ in range(2):
        found = samples(first.text())
        assert found[STARTS] == 11
        assert found["servioticy_batch_updates_sum"] == 11
        assert found['servioticy_lag_records{partition="0"}'] == 1
    assert len(written_down()) == 1
    staying.close()
    assert samples(first.text())[STARTS] == 11
    assert written_down() == []


def test_a_process_that_is_gone_and_its_port_somebody_else_s(first: Registry) -> None:
    ended, other = another(1), another(10)
    first.text()
    (place,) = (each for each in written_down() if each.name == ended.path[1:])
    (port,) = (each.read_text().split()[1] for each in written_down() if each != place)
    ended.close()
    place.write_text(f"{os.getpid()} {port}")

    assert samples(first.text())[STARTS] == 11
    assert len(written_down()) == 1
    other.close()


def test_a_process_that_does_not_answer_counts_as_before(
    first: Registry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(processes, "SECONDS", 0.1)
    busy = another(5)
    first.text()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (place,) = written_down()
        answering = place.read_text()
        place.write_text(f"{os.getpid()} {silent.getsockname()[1]}")

        assert samples(first.text())[STARTS] == 5
        assert "metrics_not_read" in caplog.messages
    place.write_text(answering)
    assert samples(first.text())[STARTS] == 5
    busy.close()


def test_nonsense_in_the_folder_is_passed_over(first: Registry) -> None:
    (Path(os.environ[FOLDER]) / "nonsense").write_text("x")

    assert first.text() == b""


def test_alone_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or on another machine than the first process."""
    monkeypatch.delenv(FOLDER, raising=False)
    assert join(Registry(with_process=False)) is None
    monkeypatch.setenv(FOLDER, "/no/such/folder")
    assert join(Registry(with_process=False)) is None


def test_nothing_is_left_behind() -> None:
    with shared(Registry(with_process=False)):
        folder = Path(os.environ[FOLDER])

    assert not folder.exists()
    assert FOLDER not in os.environ
