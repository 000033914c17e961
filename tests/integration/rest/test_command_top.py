"""`servioticy top`, run against an API that serves."""

from __future__ import annotations

import io
import json
from unittest.mock import Mock

import pytest
from api_builders import Caller, Served
from command_runs import Run, run
from rich.console import Console

from command.remote import top

__all__ = ["run"]

OTHER_SCREEN, BACK = "\x1b[?1049h", "\x1b[?1049l"
"""What a terminal is told."""


@pytest.fixture
def operator(served: Served) -> Caller:
    return served.tenant("examples")


def test_one_look_has_what_is_told_of_programs(
    run: Run, operator: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("top", "--once", "--every", 1, "--token", operator.token) == 0

    told = capsys.readouterr().out.splitlines()
    assert told[0].split() == ["program", "processor", "memory", "starts"]
    assert {each.split()[0] for each in told[1:] if each} >= {"api", "pipeline", "broker"}


def test_for_programs_it_is_what_the_api_tells(
    run: Run, operator: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("top", "--once", "--json", "--by", "each", "--token", operator.token) == 0

    told = json.loads(capsys.readouterr().out)
    assert set(told) == {*operator.ask("GET", "/platform").get_json(), "slowest"}


def test_it_goes_on_until_it_is_ended(
    run: Run,
    operator: Caller,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where nobody looks each board stands below the one before."""
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(top.time, "sleep", sleep)

    assert run("top", "--every", 7, "--token", operator.token) == 130

    assert waited == [7.0] * 3
    assert capsys.readouterr().out.count("processor  memory  starts") == 3


def test_in_a_terminal_it_is_redrawn_and_what_was_there_comes_back(
    run: Run, operator: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=60, height=3, highlight=False)
    monkeypatch.setattr(top.terminal, "console", lambda _stream: console)
    monkeypatch.setattr(top.time, "sleep", Mock(side_effect=[None, KeyboardInterrupt]))

    assert run("top", "--token", operator.token) == 130

    shown = drawn.getvalue()
    assert shown.count("processor  memory  starts") == 2
    assert "broker" not in shown  # there is room for two lines
    assert shown.index(OTHER_SCREEN) < shown.index("processor") < shown.rindex(BACK)


def test_who_may_not_is_told_why(
    run: Run, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("top", "--once", "--token", alice.token) == 1
    assert "operator_tenant" in capsys.readouterr().err


@pytest.mark.parametrize("every", ["0", "0.5", "nan", "-1", "1e9", "x"])
def test_it_does_not_ask_all_the_time(
    run: Run, every: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run("top", f"--every={every}")
    assert "a number of seconds from 1 to 86,400" in capsys.readouterr().err
