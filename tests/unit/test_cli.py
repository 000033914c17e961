"""The command line: what it promises to people, and that it stays light."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from command import cli, running, up
from servioticy.client import follower as tail
from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable
from servioticy.settings import Settings

COMMANDS = [
    *(
        "up",
        "api",
        "pipeline",
        "delivery",
        "broker",
        "functions",
        "migrate",
        "rebalance",
        "tenant",
        "doctor",
        "pack",
        "tail",
        "bench",
        "backup",
        "restore",
        "monitoring",
        "spark",
        "cluster",
    ),
    *("apply", "try", "backfill", "get", "put", "history", "trace", "export", "import"),
    *("status", "usage", "top", "operator"),
]
PUMP = "1423072260000" + "0" * 32
PAGE = (Path(__file__).parents[2] / "docs" / "command.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("SERVIOTICY_TOKEN", raising=False)
    monkeypatch.setenv("SERVIOTICY_DATA", str(tmp_path / "data"))


@pytest.mark.parametrize(
    "command",
    [
        "",
        *COMMANDS,
        "tenant create",
        "monitoring status",
        "monitoring analyse",
        "monitoring trace",
        "monitoring compare",
        "spark master",
        "spark worker",
        "cluster status",
        "cluster cut",
        "cluster heal",
        "cluster promote",
        "cluster slow",
        "cluster run",
    ],
)
def test_every_command_explains_itself(command: str, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([*command.split(), "--help"])

    assert end.value.code == 0
    assert "usage: servioticy" in capsys.readouterr().out


def test_the_page_names_every_command_of_a_tenant_with_its_options() -> None:
    groups = [
        each for each in cli.parser()._actions if isinstance(each, argparse._SubParsersAction)
    ]
    commands = groups[0].choices
    assert set(commands) == {*COMMANDS, "monitor"}  # as `monitoring`
    for name in [*COMMANDS[-12:], "tail"]:
        assert f"`servioticy {name} " in PAGE
        options = {each for action in commands[name]._actions for each in action.option_strings}
        assert {
            each for each in options - {"-h", "--help", "--data"} if f"`{each}" not in PAGE
        } == set()


@pytest.mark.parametrize(
    "words", ["history a --from {}", "export a --to {}", "usage --from {}", "tail a --after {}"]
)
def test_a_time_is_a_number_or_a_date(words: str) -> None:
    for text in ("1795512600250", "2026-11-24T10:30:00.250+01:00"):
        parsed = cli.parser().parse_args(words.format(text).split())
        assert 1_795_512_600_250 in (parsed.after, getattr(parsed, "before", None))


def test_a_time_that_is_none_is_told_what_it_may_be(capsys) -> None:
    with pytest.raises(SystemExit):
        cli.parser().parse_args(["put", "a", "--at", "yesterday"])

    assert "or a date as 2026-11-24T09:30:00Z" in capsys.readouterr().err


def test_the_command_line_imports_no_program() -> None:
    """`servioticy --help` must answer at once, and the kernel knows no program."""
    code = (
        "import sys, command.cli as c; c.parser().format_help();"
        "print([m for m in sys.modules if m.split('.')[0] in"
        " ('api', 'pipeline', 'delivery', 'broker',"
        " 'flask', 'pyspark', 'psycopg2', 'confluent_kafka',"
        " 'httpx', 'websockets', 'pyarrow', 'rich')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.stdout.strip() == "[]", done.stderr


def test_an_expected_failure_is_one_line(monkeypatch, capsys) -> None:
    def fails(*_: object) -> int:
        raise Unavailable("no broker: start one")

    monkeypatch.setattr(up, "run", fails)

    assert cli.main(["up"]) == 1
    assert capsys.readouterr().err == "error: no broker: start one\n"


def test_a_bad_setting_is_one_line(monkeypatch, capsys) -> None:
    monkeypatch.setenv("SERVIOTICY_API_PORT", "eighty")

    assert cli.main(["doctor"]) == 1
    assert "api_port" in capsys.readouterr().err


def test_options_win_over_the_environment(monkeypatch) -> None:
    seen: list[tuple[Settings, object, bool]] = []
    monkeypatch.setenv("SERVIOTICY_API_PORT", "1")
    monkeypatch.setattr(up, "run", lambda *all_: seen.append(all_) or 0)

    cli.main(["up", "--api-port", "2", "--live-port", "3", "--demo", "--speed", "4"])

    settings, demonstration, exit_after = seen[0]
    assert (settings.api.port, settings.delivery.port) == (2, 3)
    assert demonstration == ["--speed", "4.0"]
    assert not exit_after


def test_the_token_stands_alone_on_standard_output(monkeypatch, capsys) -> None:
    """Scripts take it with $(...)."""
    monkeypatch.setattr(running, "create_tenant", lambda _settings, name: f"token-of-{name}")

    assert cli.main(["tenant", "create", "acme"]) == 0
    assert capsys.readouterr() == ("token-of-acme\n", "")


def test_tail_without_a_token_says_where_to_put_one(capsys) -> None:
    assert cli.main(["tail", "pump", "flow"]) == 1
    assert "SERVIOTICY_TOKEN" in capsys.readouterr().err


def test_tail_shows_what_no_terminal_can() -> None:
    """A string may hold half a surrogate pair; the next update is worth following."""
    frame = r'{"channels":{"v":{"current-value":"\ud800é"}},"lastUpdate":7}'

    assert tail.line(frame).encode() == '7  {"v": "\\ud800é"}'.encode()


def test_tail_prints_a_line_an_update(monkeypatch, capsys) -> None:
    frame = '{"channels":{"c":{"current-value":1.5}},"lastUpdate":1423072260}'
    followed: list[tail.Follower] = []
    monkeypatch.setattr(
        tail.Follower, "updates", lambda self: followed.append(self) or iter([frame])
    )

    assert cli.main(["tail", PUMP, "flow", "--token", "t", "--after", "7"]) == 0
    assert capsys.readouterr().out == '2015-02-04T17:51:00Z  {"c": 1.5}\n'
    assert followed == [
        tail.Follower("ws://127.0.0.1:8081", StreamRef(PUMP, "flow"), "t", after=7)
    ]


def test_tail_says_what_is_early_and_which_revision_it_is() -> None:
    frame = '{"channels":{"c":{"current-value":1}},"lastUpdate":7,"revision":3%s}'
    assert tail.line(frame % ',"early":true') == '7  {"c": 1}  early'
    assert tail.line(frame % "") == '7  {"c": 1}  revision 3'


def test_who_follows_goes_on_behind_what_is_final() -> None:
    """The result of a window comes with the timestamp of the early ones."""
    follower = tail.Follower("ws://127.0.0.1:8081", StreamRef(PUMP, "flow"), "t")
    frame = '{"channels":{},"lastUpdate":%d%s}'
    follower._seen(frame % (9, ""))
    follower._seen(frame % (19, ',"revision":1,"early":true'))
    assert follower.after == 9
    follower._seen(frame % (9, ',"revision":2'))
    follower._seen(frame % (19, ""))
    assert follower.after == 19


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [(1, "1"), (1401819725, "2014-06-03T18:22:05Z"), (1401819725500, "2014-06-03T18:22:05Z")],
)
def test_timestamps_are_dates_only_where_they_look_like_one(timestamp: int, text: str) -> None:
    """Devices may count 1, 2, 3; nothing is ever rescaled."""
    assert tail.written(timestamp) == text


def test_nobody_there_is_told_with_the_remedy(capsys) -> None:
    assert cli.main(["tail", PUMP, "b", "--token", "t", "--url", "ws://127.0.0.1:1"]) == 1
    assert "servioticy up" in capsys.readouterr().err


@pytest.mark.parametrize("moves", ["0", "101", "00000000001999", "x", "²", "٣"])
def test_as_many_moves_as_may_be_are_a_number_that_fits(moves: str, capsys) -> None:
    with pytest.raises(SystemExit):
        cli.parser().parse_args(["rebalance", "--moves", moves])

    assert "a whole number from 1 to 100" in capsys.readouterr().err
    assert cli.parser().parse_args(["rebalance", "--moves", "100"]).moves == 100
