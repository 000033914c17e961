"""What the terminal shows of the composite streams."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from demonstration import checking, series
from demonstration.board import Board
from demonstration.series import Reading
from demonstration.templates import BANDS, SHOWN

WATER, CO2 = SHOWN[-1], BANDS[2]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "anomalies.md"


def a_frame(at: int, flow: float = 100.0, anomaly: bool = False) -> str:
    return of_values(at, {"flow": flow, "anomaly": anomaly})


def of_values(at: int, values: checking.Values) -> str:
    channels = {name: {"current-value": value} for name, value in values.items()}
    return json.dumps({"channels": channels, "lastUpdate": at})


def in_band(at: int, value: float) -> str:
    return of_values(at, {"value": value, "smoothed": 500.0, "low": 400.0, "high": 600.0})


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
    assert board.newest(WATER, "watch") == 4


def test_the_way_from_a_device_to_the_screen_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: 7.0)
    monkeypatch.setattr("demonstration.board.time", clock)
    board = Board((WATER,))
    assert board.median_milliseconds() is None

    board.sent(Reading("flow", 7, 100.0))
    clock.monotonic = lambda: 7.25
    board.seen(WATER, a_frame(7))

    assert board.median_milliseconds() == 250.0


def test_an_anomaly_is_told_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    board = Board((WATER, CO2))
    board.seen(CO2, in_band(1423072263, 500.0))
    board.draw(at_once=True)
    _, _, inside, *_ = capsys.readouterr().out.splitlines()
    board.seen(CO2, in_band(1423073223, 650.0))
    board.flagged(CO2, of_values(1423073223, {"value": 650.0}))
    board.draw(at_once=True)

    _, _, outside, newest, *_ = capsys.readouterr().out.splitlines()
    assert "  500.0 ppm   [····●····]  " in inside
    assert "flagged" not in inside
    assert "  650.0 ppm   [·········] !" in outside
    assert outside.endswith("    2, 1 flagged")
    assert newest == "  newest anomaly: co2 650.0 ppm at 2015-02-04 18:07 UTC"
    assert board.anomalies(CO2) == 1
    assert [board.newest(CO2, each) for each in ("band", "anomalies")] == [1423073223] * 2


def test_the_page_prints_what_the_demonstration_shows_at_its_end(monkeypatch, capsys) -> None:
    """Drawn of what is computed apart; a row that wraps could not be redrawn in its place."""
    monkeypatch.setenv("COLUMNS", "80")
    board = Board(BANDS)
    wanted = checking.expected(list(series.room()), list(series.water()))
    flags = []
    for shown in BANDS:
        for at, values in wanted[shown.document, shown.stream].items():
            board.seen(shown, of_values(at, values))
        updates = wanted[shown.document, shown.anomalies].items()
        flags += [(at, shown, of_values(at, values)) for at, values in updates]
    for _, shown, frame in sorted(flags, key=lambda each: each[0]):
        board.flagged(shown, frame)
    board.draw(at_once=True)

    drawn = capsys.readouterr().out.strip("\n")
    assert max(map(len, drawn.splitlines())) <= 80
    assert f"```text\n{drawn}\n```" in PAGE.read_text("utf-8")
