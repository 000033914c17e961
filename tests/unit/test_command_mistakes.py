"""Whatever a user gets wrong is a line that says so, of every command; never a traceback."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command import cli
from servioticy.embedded import tcp_ports

ID = "1423072260000" + "0" * 32
WORDS = {
    "apply": ["{folder}"],
    "try": ["{folder}/a.json"],
    "backfill": [ID, "s", "--from", "1", "--to", "2"],
    "trace": [ID, "s"],
    "operator": ["list"],
    "get": [ID, "s"],
    "put": [ID, "s", "x=1"],
    "history": [ID, "s"],
    "export": [ID, "s"],
    "import": [ID, "s", "{folder}/in.csv"],
    "tail": [ID, "s"],
    "status": [ID, "s"],
    "tenant create": ["acme"],
    "tenant quota": ["acme"],
    "tenant delete": ["acme"],
    "bench": ["start"],
    "monitoring compare": ["{folder}/none", "{folder}/none"],
    "monitoring trace": ["0" * 32, "{folder}/none"],
    "monitoring deploy": ["{folder}"],
    "monitoring stop": ["any"],
    "monitoring start": ["any"],
    "monitoring remove": ["any"],
    "backup": ["{folder}/made.backup"],
    "restore": ["{folder}/made.backup"],
    "pack": ["{folder}/made.tar.xz"],
    "spark worker": ["spark://127.0.0.1:7077"],
    "cluster cut": ["worker-1"],
    "cluster slow": ["store", "20"],
    "cluster run": ["true"],
}
"""How a command is called rightly, where it needs words."""
REMOTE = (
    *("apply", "try", "get", "put", "history", "trace"),
    *("export", "import", "tail", "status", "usage", "backfill", "operator"),
)
ALIASES = ("monitor",)
BECOMES = (*cli.PROGRAMS, "bench")
"""They are replaced by another process, which has the mistakes to tell."""
Told = Callable[..., str]


def commands() -> list[str]:
    """Every command there is, with its second word."""

    def of(parser: argparse.ArgumentParser, before: str = "") -> list[str]:
        groups = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        if not groups:
            return [before.strip()]
        return [
            name
            for word, under in groups[0].choices.items()
            if word not in ALIASES
            for name in of(under, f"{before} {word}")
        ]

    return of(cli.parser())


STORES = [each for each in commands() if each.split()[0] in ("migrate", "tenant")]


@pytest.fixture
def told(monkeypatch, capsys, tmp_path: Path) -> Told:
    """Runs a command that is to end badly, and returns what it says."""
    (tmp_path / "in.csv").write_text("lastUpdate,x\n1,1\n")
    (tmp_path / "a.json").write_text("{}")
    monkeypatch.setenv("SERVIOTICY_TOKEN", "t")
    monkeypatch.setenv("SERVIOTICY_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    # So long nobody waits here for a platform that there is not.
    monkeypatch.setattr("time.sleep", lambda _seconds: None)

    def run(command: str, *more: str) -> str:
        words = [each.format(folder=tmp_path) for each in WORDS.get(command, [])]
        try:
            code = cli.main([*command.split(), *words, *more])
        except SystemExit as end:
            code = int(str(end.code))
        err = capsys.readouterr().err
        assert code in (1, 2), err
        assert "error: " in err
        assert "Traceback" not in err
        return err

    return run


@pytest.mark.parametrize("command", commands())
def test_a_bad_setting(command: str, told: Told, monkeypatch) -> None:
    monkeypatch.setenv("SERVIOTICY_API_PORT", "eighty")

    assert "api_port" in told(command)


@pytest.mark.parametrize("command", commands())
def test_an_unknown_option(command: str, told: Told) -> None:
    if command in ("bench", "cluster run"):  # its options are of what it runs
        return
    assert "--colour" in told(command, "--colour")


@pytest.mark.parametrize("command", [each for each in commands() if each not in BECOMES])
def test_a_data_folder_that_can_be_none(command: str, told: Told, tmp_path, monkeypatch) -> None:
    """As one that this user may not write to."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SERVIOTICY_URL", f"http://127.0.0.1:{tcp_ports.free()}")
    if command == "doctor":  # it tells that as one of many things
        return
    told(command, "--data", str(tmp_path / "file" / "data"))


@pytest.mark.parametrize("url", ["nowhere", "ftp://host", "http://host:port", "http://[::1"])
@pytest.mark.parametrize("command", REMOTE)
def test_a_bad_address(command: str, url: str, told: Told) -> None:
    assert "--url" in told(command, "--url", url)


@pytest.mark.parametrize("command", REMOTE)
def test_nobody_there(command: str, told: Told) -> None:
    assert "servioticy up" in told(command, "--url", f"http://127.0.0.1:{tcp_ports.free()}")


@pytest.mark.parametrize("token", ["t\u00f6ken", "to\nken"])
@pytest.mark.parametrize("command", REMOTE)
def test_a_token_that_is_none(command: str, token: str, told: Told) -> None:
    assert "token" in told(command, "--token", token, "--url", "http://127.0.0.1:1")


@pytest.mark.parametrize("command", STORES)
def test_a_postgres_that_is_not_there(command: str, told: Told, monkeypatch) -> None:
    monkeypatch.setenv("SERVIOTICY_DSN", f"postgresql://127.0.0.1:{tcp_ports.free()}/nothing")

    told(command)


@pytest.mark.parametrize("command", ["apply", "import"])
def test_a_file_that_is_not_there(command: str, told: Told, monkeypatch) -> None:
    monkeypatch.setitem(WORDS, "apply", ["{folder}/nothing"])
    monkeypatch.setitem(WORDS, "import", [ID, "s", "{folder}/nothing.csv"])

    assert "nothing" in told(command, "--url", "http://127.0.0.1:1")


@pytest.mark.parametrize("words", [["up", "--ports", "0"], ["up", "--api-port", "70000"]])
def test_a_port_that_is_none(words: list[str], told: Told) -> None:
    assert "65" in told(*words)


@pytest.mark.slow
@pytest.mark.parametrize("program", cli.PROGRAMS)
def test_a_program_without_stores(program: str, tmp_path: Path) -> None:
    """It is another process by then."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SERVIOTICY_DATA": str(tmp_path / "data"),
        "SERVIOTICY_API_PORT": str(tcp_ports.free()),
        "SERVIOTICY_LIVE_PORT": str(tcp_ports.free()),
    }
    command = [sys.executable, "-m", "command.cli", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert done.returncode == 1
    assert "error: no " in done.stderr
    assert "Traceback" not in done.stderr
