"""Applications that are not ours: deployed, looked at, stopped, begun again, removed."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from command import shown
from servioticy.errors import SettingsError
from servioticy.settings import Settings

if TYPE_CHECKING:
    from monitoring.applications.states import State

STOP_SECONDS = 30.0
"""Longer than a monitor and who runs it take to stop anything."""


def add(actions: Any, command: Any) -> None:
    """Add what is done with applications to the actions of `servioticy monitoring`."""
    deploy = command(
        actions,
        "deploy",
        "run an application of another kind on this machine, watched",
        _deploy,
        "FOLDER has its code and application.toml. It is checked, kept in the data folder, and "
        "begun where `servioticy up` runs on that. Its code runs as you.",
    )
    deploy.add_argument("folder", metavar="FOLDER", type=Path)
    listed = command(
        actions,
        "applications",
        "tell how each application is",
        _applications,
        "Exit code 1 where one has failed, or was lost with its monitor.",
    )
    listed.add_argument("--json", action="store_true", help="print it for programs")
    for name, text, run in (
        ("stop", "stop an application", _stop),
        ("start", "begin an application again that was stopped, or has ended", _start),
        ("remove", "stop an application and forget it, with all that was measured", _remove),
    ):
        command(actions, name, text, run).add_argument("name", metavar="NAME")
    driver = command(
        actions,
        "driver",
        "supply the driver of an engine, or list the engines that have one",
        _driver,
        "FILE is Python, with `start(deployment)`, and `check(deployment)` if it likes.",
    )
    driver.add_argument("engine", metavar="ENGINE", nargs="?")
    driver.add_argument("file", metavar="FILE", nargs="?", type=Path)


def _deploy(parsed: argparse.Namespace, settings: Settings) -> int:
    """Register a package, once it is known that it loads."""
    from monitoring.applications import deploying

    found, nowhere = deploying.deploy(_here(settings), parsed.folder)
    told = [f"{found.name}: version {found.version} is registered, its id is {found.id}"]
    told += [f"  nothing is there yet that {each} names" for each in nowhere]
    shown.say([shown.plain(each) for each in told])
    return 0


def _applications(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print how each is."""
    from monitoring.applications import states

    found = states.of_all(_here(settings).data_path)
    if parsed.json:
        shown.say_json(msgspec.to_builtins(found))
    elif not found:
        shown.say(["no application is registered"])
    else:
        head = ("application", "version", "engine", "is", "begun", "measurements", "lost", "")
        table = shown.columns([head, *map(_row, found)], (1, 4, 5, 6))
        shown.say([shown.plain(each) for each in table])
    return 1 if any(each.state in ("failed", "lost") for each in found) else 0


def _row(each: State) -> tuple[str, ...]:
    return (
        *(each.name, str(each.version), each.engine, each.state),
        *(f"{each.starts:,}", f"{each.stored:,}", f"{each.lost:,}", each.why),
    )


def _stop(parsed: argparse.Namespace, settings: Settings) -> int:
    """Return when it has ended, if it ran."""
    _ended(_here(settings), parsed.name)
    return 0


def _start(parsed: argparse.Namespace, settings: Settings) -> int:
    """Let it run from now on."""
    from monitoring.applications import repository

    repository.wish(_here(settings).data_path, parsed.name, "running")
    return 0


def _remove(parsed: argparse.Namespace, settings: Settings) -> int:
    """Forget it, once it has ended."""
    from monitoring.applications import repository

    _ended(_here(settings), parsed.name)
    repository.remove(settings.data_path, parsed.name)
    return 0


def _ended(settings: Settings, name: str) -> None:
    """Have it stopped, and wait for that. Raises SettingsError where it does not."""
    from monitoring.applications import repository, states

    found = repository.wish(settings.data_path, name, "stopped")
    until = time.monotonic() + STOP_SECONDS
    while states.of(settings.data_path, found).state == "stopping":
        if time.monotonic() > until:
            raise SettingsError(f"{name} has not stopped in {STOP_SECONDS:g} s; ask again")
        time.sleep(0.1)


def _driver(parsed: argparse.Namespace, settings: Settings) -> int:
    """Keep it, or print which there are."""
    from monitoring.applications.drivers import engines

    data = _here(settings).data_path
    if parsed.engine is None:
        shown.say(engines.known(data))
    elif parsed.file is None:
        raise SettingsError(f"which file is the driver of {parsed.engine}?")
    else:
        engines.supply(data, parsed.engine, parsed.file)
    return 0


def _here(settings: Settings) -> Settings:
    if not settings.data_path.is_dir():
        raise SettingsError(f"there is no data folder {settings.data_path}: name it with --data")
    return settings
