"""The commands of a tenant, with their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from servioticy.settings import Settings

Run = Callable[[argparse.Namespace, Settings], int]
Command = Callable[..., Any]
"""Adds a command to a group: its name, what it does in a line, what runs it, and more words."""


def add(group: Any, command: Command) -> None:
    """Add all of them."""
    _apply(group, command)
    get = _of_a_stream(group, command, "get", "print a document, or a stream's newest update")
    get.add_argument("stream", metavar="STREAM", nargs="?", help="print its newest update")
    put = _of_a_stream(
        group,
        command,
        "put",
        "send an update",
        "Without CHANNEL=VALUE, whole updates are read from standard input, a line each.",
    )
    put.add_argument("stream", metavar="STREAM", help="its name")
    put.add_argument("values", metavar="CHANNEL=VALUE", nargs="*", help="as JSON, or text")
    put.add_argument("--at", type=int, metavar="LASTUPDATE", help="default: now, in milliseconds")
    history = _of_a_stream(group, command, "history", "print a stream's updates, a line each")
    history.add_argument("stream", metavar="STREAM", help="its name")
    _bounds(history)
    history.add_argument("--limit", type=int, metavar="N", help="so many at most")
    history.add_argument("--newest-first", action="store_true", help="default: oldest first")
    export = _of_a_stream(group, command, "export", "write a stream's history to a file")
    export.add_argument("stream", metavar="STREAM", help="its name")
    _bounds(export)
    export.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    export.add_argument("--format", help="csv, ndjson, parquet or arrow (default: as FILE ends)")
    import_ = _of_a_stream(
        group,
        command,
        "import",
        "send the updates of a CSV or Parquet file",
        "Its columns are lastUpdate and channels, as `export` writes them. Sent again, it "
        "changes nothing. Exit code 1 where an update was refused.",
    )
    import_.add_argument("stream", metavar="STREAM", help="its name")
    import_.add_argument("file", type=Path, metavar="FILE")


def _apply(group: Any, command: Command) -> None:
    apply = command(
        group,
        "apply",
        "make Service Objects as the documents of a folder say",
        _later("applying", "run"),
        "Each file *.json is a document. Its name is its field `name`, else the file's; groups "
        "may name documents in the place of ids. Shows the differences, then asks. Exit code "
        "3: there are differences, and nothing was changed.",
    )
    apply.add_argument("folder", metavar="FOLDER")
    apply.add_argument("--yes", action="store_true", help="do not ask")
    apply.add_argument("--dry-run", action="store_true", help="show the differences only")
    _platform(apply)


def _of_a_stream(group: Any, command: Command, name: str, text: str, more: str = "") -> Any:
    run = _later("transfer", "import_" if name == "import" else name)
    added = command(group, name, text, run, more)
    added.add_argument("service_object", metavar="SERVICE_OBJECT", help="its id, or its name")
    _platform(added)
    return added


def _platform(command: Any) -> None:
    command.add_argument("--token", help="the tenant's token (default: SERVIOTICY_TOKEN)")
    command.add_argument(
        "--url",
        help="http://HOST:PORT of the API (default: SERVIOTICY_URL, else as in the settings)",
    )


def _bounds(command: Any) -> None:
    command.add_argument(
        "--from", dest="after", type=int, metavar="LASTUPDATE", help="from this timestamp on"
    )
    command.add_argument(
        "--to", dest="before", type=int, metavar="LASTUPDATE", help="up to this timestamp"
    )


def _later(module: str, function: str) -> Run:
    """Return a function of a module that is imported only when it runs."""

    def run(parsed: argparse.Namespace, settings: Settings) -> int:
        found = import_module(f"command.remote.{module}")
        return int(getattr(found, function)(parsed, settings))

    return run
