"""What the terminal shows of the composite streams."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from demonstration.board import Board
from demonstration.series import Reading
from demonstration.templates import SHOWN

WATER = SHOWN[-1]


def a_frame(at: int, flow: float = 100.0, anomaly: bool = False) -> str:
    values = {"flow": flow, "anomaly": anomaly}
    channels = {name: {"current-value": value} for name, value in values.items()}
    return json.dumps({"channels": channels, "lastUpdate": at})


def test_no_row_is_wider_than_the_terminal(monkeypatch, capsys) -> None:
    """A row that wraps could not be redrawn in its place."""
    monkeypatch.setenv("COLUMNS", "80")
    board = Board(SHOWN)
    for at in range(1, 3000):
        board.seen(WATER, a_frame(at, at % 7, anomaly=at % 100 == 0))
    board.draw(at_once=True)

    rows = capsys.readouterr().out.splitlines()
    assert max(map(len, rows)) <= 80
    assert "29 alarms" in rows[len(SHOWN) - 1]


@pytest.mark.parametrize(("alarms", "told"), [("0110", 1), ("0101", 2), ("0000", 0)])
def test_alarms_are_counted_by_episode(alarms: str, told: int, capsys) -> None:
    board = Board((WATER,))
    for at, alarm in enumerate(alarms, 1):
        board.seen(WATER, a_frame(at, anomaly=alarm == "1"))
    board.draw(at_once=True)

    assert ("alarms" in capsys.readouterr().out) == (told > 0)
    assert board.newest(WATER) == 4


def test_the_way_from_a_device_to_the_screen_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: 7.0)
    monkeypatch.setattr("demonstration.board.time", clock)
    board = Board((WATER,))
    assert board.median_milliseconds() is None

    board.sent(Reading("flow", 7, 100.0))
    clock.monotonic = lambda: 7.25
    board.seen(WATER, a_frame(7))

    assert board.median_milliseconds() == 250.0
