"""What a terminal gets, and what anything else gets instead."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from command import doctor
from command.doctor import Check
from demonstration.board import Board
from demonstration.templates import BANDS, SHOWN
from servioticy import terminal
from servioticy.embedded import setup

CHECKS = [
    Check("java", True, "17 in /opt/[red]java"),
    Check("disk", False, "0.1 GB free " + "word " * 30, "make room"),
]
HIDE_CURSOR, SHOW_CURSOR, UP = "\x1b[?25l", "\x1b[?25h", "\x1b[1A"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def seen() -> Terminal:
    return Terminal()


@pytest.fixture
def console(seen: Terminal, monkeypatch: pytest.MonkeyPatch) -> Console:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Console(file=seen, force_terminal=True, width=70, color_system="standard")


def test_only_a_terminal_that_can_be_redrawn_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert terminal.console(io.StringIO()) is None
    assert terminal.console(Terminal()) is not None
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.console(Terminal()) is None


def test_the_doctor_prints_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.show(CHECKS, None)

    first, second, remedy = capsys.readouterr().out.splitlines()
    assert first == "ok    java  17 in /opt/[red]java"
    assert second.startswith("FAIL  disk  0.1 GB free word")
    assert remedy == "            -> make room"


def test_the_doctor_draws_a_table_that_fits(console: Console, seen: Terminal) -> None:
    doctor.show(CHECKS, console)

    assert "\x1b[1;31mFAIL" in seen.getvalue()
    plain = Console(file=io.StringIO(), width=70)
    doctor.show(CHECKS, plain)
    rows = plain.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert rows[0].rstrip() == "ok    java  17 in /opt/[red]java"
    assert rows[-1].rstrip() == "            -> make room"
    assert max(map(len, rows)) <= 70


def test_a_download_tells_its_first_and_last_file(capsys: pytest.CaptureFixture[str]) -> None:
    with setup._shown("jars", None) as shown:
        for done in (1, 2, 3):
            shown(done, 3, done * 1_000_000)

    assert capsys.readouterr().err.splitlines() == [
        "servioticy: downloading jars: 1 of 3, 1.0 MB",
        "servioticy: downloading jars: 3 of 3, 3.0 MB",
    ]


def test_a_download_shows_a_bar(console: Console, seen: Terminal) -> None:
    with setup._shown("jars", console) as shown:
        for done in (1, 2, 3):
            shown(done, 3, done * 1_000_000)

    assert "3 of 3, 3.0 MB" in seen.getvalue()
    assert "None" not in seen.getvalue()


def test_the_board_is_drawn_in_its_place_and_leaves_the_cursor(
    console: Console, seen: Terminal
) -> None:
    board = Board((SHOWN[-1],), console)
    channels = {"flow": {"current-value": 7.5}, "anomaly": {"current-value": True}}
    board.draw(at_once=True)
    board.seen(SHOWN[-1], json.dumps({"channels": channels, "lastUpdate": 1}))
    board.draw(at_once=True)

    drawn = seen.getvalue()
    assert "7.5" in drawn
    assert "1 alarms" in drawn
    assert drawn.rindex(SHOW_CURSOR) > drawn.rindex(HIDE_CURSOR)
    assert UP in drawn
    board.close()
    assert "\n" in seen.getvalue()[len(drawn) :]


def test_what_is_outside_its_band_is_red(console: Console, seen: Terminal) -> None:
    board = Board((BANDS[0],), console)
    for at, value in ((1, 20.0), (2, 30.0)):
        values = {"value": value, "smoothed": 20.0, "low": 19.0, "high": 21.0}
        channels = {name: {"current-value": each} for name, each in values.items()}
        board.seen(BANDS[0], json.dumps({"channels": channels, "lastUpdate": at}))
        board.draw(at_once=True)
    board.close()

    inside, _, outside = seen.getvalue().partition("30.0")
    assert "[····●····]" in inside
    assert "\x1b[1;31m!" not in inside
    assert "[·········] \x1b[1;31m!" in outside
