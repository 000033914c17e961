"""The commands of a tenant, with their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from servioticy import dates
from servioticy.numbers import LARGEST
from servioticy.settings import Settings

Run = Callable[[argparse.Namespace, Settings], int]
Command = Callable[..., Any]
"""Adds a command to a group: its name, what it does in a line, what runs it, and more words."""
BY = ("all", "hour", "day", "serviceObject", "stream", "provider", "grant")
"""What usage is summed up by (docs/rest/usage.md)."""
LONGEST_SECONDS = 86_400
STREAM_WORDS = (
    "SERVICE_OBJECT is an id, or a name that only one has; without it STREAM is one that only "
    "one Service Object has."
)


def add(group: Any, command: Command) -> None:
    """Add all of them."""
    _apply(group, command)
    _try(group, command)
    _of_a_stream(
        group,
        command,
        "get",
        "print a document, or a stream's newest update",
        "[SERVICE_OBJECT] [STREAM]",
    )
    put = _of_a_stream(
        group,
        command,
        "put",
        "send an update",
        "[SERVICE_OBJECT] STREAM [CHANNEL=VALUE ...]",
        "A VALUE is JSON, or text. Without any, whole updates are read from standard input, a "
        "line each.",
        most=None,
    )
    put.add_argument(
        "--at", type=moment, metavar="LASTUPDATE", help="or a date; default: now, in milliseconds"
    )
    history = _of_a_stream(group, command, "history", "print a stream's updates, a line each")
    _bounds(history)
    history.add_argument("--limit", type=int, metavar="N", help="so many at most")
    history.add_argument("--newest-first", action="store_true", help="default: oldest first")
    export = _of_a_stream(group, command, "export", "write a stream's history to a file")
    _bounds(export)
    export.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    export.add_argument("--format", help="csv, ndjson, parquet or arrow (default: as FILE ends)")
    _of_a_stream(
        group,
        command,
        "import",
        "send the updates of a CSV or Parquet file",
        "[SERVICE_OBJECT] STREAM FILE",
        "Its columns are lastUpdate and channels, as `export` writes them. Sent again, it "
        "changes nothing. Exit code 1 where an update was refused.",
        least=2,
        most=3,
    )
    _tail(group, command)
    _status(group, command)
    _backfill(group, command)
    _operator(group, command)
    _trace(group, command)
    _usage(group, command)
    _top(group, command)


def _status(group: Any, command: Command) -> None:
    status = command(
        group,
        "status",
        "tell how computations of a stream ended, or how the platform is",
        _later("status", "run"),
        "With a Service Object, a line for each of its streams. Without one, the platform on the "
        "data folder: its programs, what listens, health, and how far the pipeline is behind; "
        f"exit code 1 where something of it is not well. {STREAM_WORDS}",
    )
    _words(status, "[SERVICE_OBJECT] [STREAM]", 0, 2)
    status.add_argument("--json", action="store_true", help="print it for programs")
    _platform(status)


def _backfill(group: Any, command: Command) -> None:
    filled = command(
        group,
        "backfill",
        "compute a composite stream, and what is derived from it, from history",
        _later("backfilling", "run"),
        "As if the definitions in force had been so in that span. What was computed there before "
        f"goes. Waits until it is done; with Ctrl-C it goes on by itself. {STREAM_WORDS}",
    )
    _words(filled, "[SERVICE_OBJECT] STREAM", 1, 2)
    filled.add_argument(
        "--from",
        dest="after",
        type=moment,
        required=True,
        metavar="LASTUPDATE",
        help="from this timestamp, or date",
    )
    filled.add_argument(
        "--to",
        dest="before",
        type=moment,
        required=True,
        metavar="LASTUPDATE",
        help="the first timestamp, or date, that is not computed",
    )
    filled.add_argument("--json", action="store_true", help="print the job for programs")
    _platform(filled)


def _operator(group: Any, command: Command) -> None:
    operator = command(
        group,
        "operator",
        "push programs of your own that compute composite streams, list and remove them",
        _later("operating", "run"),
        "new FOLDER makes a folder with a sample and its kit, push FOLDER stores it as a further "
        "version, list tells of all, log NAME@VERSION what one has printed and how it runs, "
        "remove NAME@VERSION removes a version, remove NAME all of them.",
    )
    _words(operator, "ACTION [FOLDER | NAME@VERSION]", 1, 2)
    operator.add_argument(
        "--language",
        choices=("python", "node", "go", "rust"),
        default="python",
        help="of what `new` makes (python)",
    )
    operator.add_argument("--json", action="store_true", help="print it for programs")
    _platform(operator)


def _trace(group: Any, command: Command) -> None:
    traced = command(
        group,
        "trace",
        "tell what became of an update",
        _later("tracing", "run"),
        "The composites that it got to, how each computation ended, and what it read. Of what is "
        f"older than the last of its kind only the outputs are known. {STREAM_WORDS}",
    )
    _words(traced, "SERVICE_OBJECT STREAM", 1, 2)
    traced.add_argument(
        "--at",
        type=moment,
        metavar="TIME",
        help="its lastUpdate, or a date (default: the newest)",
    )
    traced.add_argument("--json", action="store_true", help="print it for programs")
    _platform(traced)


def _usage(group: Any, command: Command) -> None:
    usage = command(
        group,
        "usage",
        "tell what was used, and the quotas",
        _later("usage", "run"),
        "Of the last day, or of the hours between two times.",
    )
    usage.add_argument("--by", choices=BY, default="all", help="what to sum up by (default: all)")
    usage.add_argument(
        "--from", dest="after", type=moment, metavar="TIME", help="a date, or milliseconds"
    )
    usage.add_argument("--to", dest="before", type=moment, metavar="TIME", help="up to then")
    usage.add_argument("--json", action="store_true", help="print it for programs")
    _platform(usage)


def _top(group: Any, command: Command) -> None:
    top = command(
        group,
        "top",
        "show how the whole platform is, again and again",
        _later("top", "run"),
        "Programs, partitions, computations a second, tenants that press, and the code that takes "
        "most of the processor; for admins of the tenant that `operator_tenant` names.",
    )
    top.add_argument(
        "--every",
        type=_seconds,
        default=3.0,
        metavar="SECONDS",
        help="between two looks, 1 at least (3)",
    )
    top.add_argument(
        "--by", choices=("total", "each"), default="total", help="most in all, or each time"
    )
    top.add_argument("--once", action="store_true", help="one look, and end")
    top.add_argument("--json", action="store_true", help="print it for programs")
    _platform(top)


def _tail(group: Any, command: Command) -> None:
    tail = command(
        group,
        "tail",
        "print each update of a stream as it comes",
        _later("tailing", "run"),
        f"Follows the stream until Ctrl-C; a lost connection is opened again where it broke. "
        f"{STREAM_WORDS}",
    )
    _words(tail, "[SERVICE_OBJECT] STREAM", 1, 2)
    tail.add_argument("--token", help="the tenant's token (default: SERVIOTICY_TOKEN)")
    tail.add_argument(
        "--after",
        type=moment,
        metavar="LASTUPDATE",
        help="first what is stored after this timestamp, or date",
    )
    tail.add_argument("--json", action="store_true", help="print the updates as they came")
    tail.add_argument(
        "--url",
        help="ws://HOST:PORT of delivery (default: SERVIOTICY_LIVE_URL, else as in the settings); "
        "names are asked of the API at SERVIOTICY_URL",
    )


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


def _try(group: Any, command: Command) -> None:
    tried = command(
        group,
        "try",
        "show what a changed document would have made of the last updates",
        _later("trying", "run"),
        "FILE is a document; its name is its field `name`, else the file's, and it is compared "
        "with the Service Object of that name. Nothing is stored or sent.",
    )
    tried.add_argument("file", metavar="FILE", type=Path)
    tried.add_argument(
        "--last", type=int, default=20, metavar="N", help="so many updates, 1,000 at most (20)"
    )
    tried.add_argument("--json", action="store_true", help="print it for programs")
    _platform(tried)


def _of_a_stream(
    group: Any,
    command: Command,
    name: str,
    text: str,
    words: str = "[SERVICE_OBJECT] STREAM",
    more: str = "",
    least: int = 1,
    most: int | None = 2,
) -> Any:
    run = _later("transfer", "import_" if name == "import" else name)
    added = command(group, name, text, run, f"{more} {STREAM_WORDS}".strip())
    _words(added, words, least, most)
    _platform(added)
    return added


def _words(command: Any, metavar: str, least: int, most: int | None) -> None:
    """Take words in any place between the options; `command.cli` counts them."""
    command.usage = f"{command.prog} [options] {metavar}"
    command.add_argument("words", metavar=metavar, nargs="*", help="see above")
    command.set_defaults(least=least, most=most, refuse=command.error)


def _platform(command: Any) -> None:
    command.add_argument("--token", help="the tenant's token (default: SERVIOTICY_TOKEN)")
    command.add_argument(
        "--url",
        help="http://HOST:PORT of the API (default: SERVIOTICY_URL, else as in the settings)",
    )


def _bounds(command: Any) -> None:
    command.add_argument(
        "--from",
        dest="after",
        type=moment,
        metavar="LASTUPDATE",
        help="from this timestamp, or date",
    )
    command.add_argument(
        "--to",
        dest="before",
        type=moment,
        metavar="LASTUPDATE",
        help="up to this timestamp, or date",
    )


def moment(text: str) -> int:
    """Return a timestamp, or the milliseconds of a date."""
    try:
        return dates.moment(text, -LARGEST)
    except dates.NoDate as error:
        raise argparse.ArgumentTypeError(f"it {error}") from None


def _seconds(text: str) -> float:
    """Return so many seconds, which may be waited."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 1 <= found <= LONGEST_SECONDS:
        reason = f"it has to be a number of seconds from 1 to {LONGEST_SECONDS:,}"
        raise argparse.ArgumentTypeError(reason)
    return found


def _later(module: str, function: str) -> Run:
    """Return a function of a module that is imported only when it runs."""

    def run(parsed: argparse.Namespace, settings: Settings) -> int:
        found = import_module(f"command.remote.{module}")
        return int(getattr(found, function)(parsed, settings))

    return run
