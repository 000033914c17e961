"""The `servioticy` command. Every command with its options."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command import applications, commands, listening, monitoring, spark
from command.cluster import actions as cluster
from command.remote import options
from servioticy.domain.balance import MOST_MOVES, MOVES
from servioticy.errors import ServioticyError
from servioticy.numbers import whole
from servioticy.settings import Settings, changed, load
from servioticy.settings.declared import DECLARED

PROGRAMS = {
    "api": "run the REST API alone (Postgres and Kafka come from the settings)",
    "pipeline": "run the streaming job alone",
    "delivery": "run the WebSocket delivery alone",
    "broker": "run MQTT and STOMP alone",
    "functions": "run what works on workflows alone",
}
EPILOG = """\
To begin:  servioticy up --demo
Settings are environment variables (SERVIOTICY_DATA, SERVIOTICY_DSN, ...) or lines of the
TOML file named by SERVIOTICY_CONFIG; options win over both.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an expected failure is one line on standard error and exit code 1."""
    # httpx has a command line of its own and loads it with click and rich where it finds them.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    parsed = _parsed(arguments)
    try:
        return int(parsed.run(parsed, _settings(parsed)))
    except ServioticyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except BrokenPipeError:  # `servioticy tail ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # no room, no right to a file or folder
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return what was asked for; words may stand behind options, too. Exits where it is wrong."""
    top = parser()
    parsed, rest = top.parse_known_args(arguments)
    if not hasattr(parsed, "words") or any(each.startswith("-") for each in rest):
        return top.parse_args(arguments)
    parsed.words += rest
    if len(parsed.words) < parsed.least:
        parsed.refuse("something is missing, see above")
    if parsed.most is not None and len(parsed.words) > parsed.most:
        parsed.refuse(f"there is no meaning in: {' '.join(parsed.words[parsed.most :])}")
    return parsed


def parser() -> argparse.ArgumentParser:
    """Return all commands and their options."""
    top = argparse.ArgumentParser(
        "servioticy",
        description="A multi-tenant IoT stream platform: JSON documents with snippets of "
        "JavaScript become live composite streams.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_up(group)
    for name, text in PROGRAMS.items():
        command = _command(group, name, text, commands.program)
        command.set_defaults(program=name)
    text = "bring the Postgres schema up to date, make the topics"
    _command(group, "migrate", text, commands.migrate)
    _add_tenant(group)
    _add_rebalance(group)
    doctor = _command(group, "doctor", "check what this machine has and lacks", commands.doctor)
    doctor.add_argument(
        "--accept-log-loss",
        action="store_true",
        help="only this: go on with the log as it is, where it has lost what is stored of it",
    )
    doctor.add_argument(
        "--worker",
        action="store_true",
        help="only this: what a machine needs that computes for a Spark on several",
    )
    options.add(group, _command)
    _add_backup(group)
    _add_pack(group)
    _add_monitoring(group)
    spark.add(group, _command)
    cluster.add(group, _command)
    bench = _command(
        group,
        "bench",
        "measure the platform",
        commands.bench,
        "Measures the one that runs on the data folder, or one of its own; `servioticy bench "
        "list` says what each measures. Needs the room benchmarks/, which a checkout has.",
    )
    bench.add_argument(
        "name", metavar="NAME", nargs="?", default="list", help="which; `list` (default) tells all"
    )
    bench.add_argument("rest", nargs=argparse.REMAINDER, help="options of the measurement")
    return top


def _add_up(group: Any) -> None:
    up = _command(group, "up", "run the whole platform on this machine until Ctrl-C", commands.up)
    ports = up.add_argument_group("ports")
    ports.add_argument(
        "--ports", type=int, metavar="FIRST", help="all of them, counted on from this one"
    )
    for name in listening.NAMES:
        known = DECLARED[name]
        text = f"{known.doc} (default: {known.default})"
        ports.add_argument(listening.option(name), type=int, metavar="PORT", help=text)
    demo = up.add_argument_group("demonstration")
    demo.add_argument(
        "--demo",
        action="store_true",
        help="replay real sensor series through the API and show the composite streams they feed",
    )
    demo.add_argument(
        "--speed",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="replay this many times faster (0: as fast as the API takes it)",
    )
    demo.add_argument(
        "--again",
        action="store_true",
        help="replay everything once more into new Service Objects; the old ones stay",
    )
    demo.add_argument(
        "--exit-after-replay",
        action="store_true",
        help="check all values when it is over, and stop; exit code 1 if one is wrong",
    )


def _add_rebalance(group: Any) -> None:
    rebalance = _command(
        group,
        "rebalance",
        "spread what is computed anew over the partitions, by what it takes",
        commands.rebalance,
        "By what was metered in this hour and the one before. What moves goes on in its order; "
        "nothing has to be stopped for it.",
    )
    rebalance.add_argument("--plan", action="store_true", help="only tell what would move")
    rebalance.add_argument(
        "--moves",
        type=_moves,
        default=MOVES,
        metavar="N",
        help=f"at most so many at once (default: {MOVES})",
    )
    rebalance.add_argument("--json", action="store_true", help="print it for programs")


def _moves(text: str) -> int:
    number = whole(text, 1, MOST_MOVES)
    if number is None:
        raise argparse.ArgumentTypeError(f"it has to be a whole number from 1 to {MOST_MOVES}")
    return number


def _add_backup(group: Any) -> None:
    backup = _command(
        group,
        "backup",
        "write all of the platform to a file, while it runs",
        commands.backup,
        "Whatever was accepted before is in it. The file is there when it is whole; keep it as "
        "you keep passwords: it has the secrets of tenants.",
    )
    backup.add_argument("file", metavar="FILE", type=Path)
    restore = _command(
        group,
        "restore",
        "fill an empty platform from such a file",
        commands.restore,
        "Into an empty data folder, or an empty database and topics of your own, while no "
        "program of that platform runs. The file is checked as a whole before. What is killed "
        "on the way may be begun again.",
    )
    restore.add_argument("file", metavar="FILE", type=Path)


def _add_pack(group: Any) -> None:
    pack = _command(
        group,
        "pack",
        "write the environment that Spark's workers need to a file",
        commands.pack,
        "For machines with a Spark and this version of Python, and without this package: "
        "`spark_archive` names the file to the pipeline. Or unpack it, and run what is in `bin`.",
    )
    pack.add_argument("file", metavar="FILE", type=Path, help="it has to end with .tar.gz")
    pack.add_argument(
        "--spark",
        action="store_true",
        help="with Spark's jars, for `bin/servioticy spark worker` on machines without a Spark",
    )


def _add_monitoring(group: Any) -> None:
    about = group.add_parser("monitoring", aliases=["monitor"], help="what is measured by weaving")
    actions = about.add_subparsers(title="actions", metavar="ACTION", required=True)
    status = _command(
        actions,
        "status",
        "tell in how many processes each pointcut is woven, and why not where not",
        monitoring.status,
        "Of the programs on this machine. Exit code 1 where something that the file of aspects "
        "asks for is not woven.",
    )
    status.add_argument("--json", action="store_true", help="print it for programs")
    _add_analyse(actions)
    _add_compare(actions)
    trace = _command(
        actions,
        "trace",
        "tell which steps of a trace were measured, where and for how long",
        monitoring.trace,
        "Of the measurements in the data folder, or of the files named. Exit code 1 where there "
        "is none.",
    )
    trace.add_argument("trace", metavar="TRACE", type=_trace, help="its 32 hexadecimal digits")
    trace.add_argument("files", metavar="FILE", nargs="*", type=Path)
    trace.add_argument("--json", action="store_true", help="print it for programs")
    applications.add(actions, _command)


def _add_compare(actions: Any) -> None:
    compare = _command(
        actions,
        "compare",
        "tell which steps of two runs differ, and by more than chance",
        monitoring.compare,
        "Runtimes of steps, latencies between them and sequences, each by Mann and Whitney's test "
        "with Holm's correction. Exit code 1 where something takes longer by all thresholds, 2 "
        "where nothing can be compared.",
    )
    compare.add_argument("before", metavar="BEFORE", type=Path, help="a file, or a folder of them")
    compare.add_argument("after", metavar="AFTER", nargs="?", type=Path, help="the other run")
    compare.add_argument(
        "--at", type=options.moment, help="compare one run with itself: before and after a time"
    )
    compare.add_argument(
        "--chance", type=_part, default=0.01, help="how probable a false alarm may be (0.01)"
    )
    compare.add_argument(
        "--change", type=_positive, default=10.0, help="percent by which middles differ (10)"
    )
    compare.add_argument("--least", type=_count, default=20, help="values of each at least (20)")
    compare.add_argument(
        "--least-ms", type=_positive, default=0.0, help="by which middles differ at least (0)"
    )
    compare.add_argument("--json", action="store_true", help="print it for programs")


def _part(text: str) -> float:
    if not 0 < (found := _positive(text)) <= 1:
        raise argparse.ArgumentTypeError("it has to be more than 0, and 1 at most")
    return found


def _positive(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError("it has to be a number, not below 0")
    return found


def _count(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text[:10]) <= 2_000_000:
        raise argparse.ArgumentTypeError("it has to be a whole number from 2 on")
    return int(text)


def _trace(text: str) -> str:
    if len(text) != 32 or not set(text) <= set("0123456789abcdef"):
        raise argparse.ArgumentTypeError("a trace is 32 hexadecimal digits in small letters")
    return text


def _add_analyse(actions: Any) -> None:
    analyse = _command(
        actions,
        "analyse",
        "tell how long steps, what lies between them and sequences took",
        monitoring.analyse,
        "Of the measurements in the data folder, or of the files named.",
    )
    analyse.add_argument("files", metavar="FILE", nargs="*", type=Path)
    analyse.add_argument("--application", metavar="NAME", help="of one that is not ours")
    analyse.add_argument("--json", action="store_true", help="print it for programs")
    analyse.add_argument("--svg", metavar="FILE", type=Path, help="draw it as box plots, too")


def _add_tenant(group: Any) -> None:
    tenant = group.add_parser("tenant", help="tenants and their tokens")
    actions = tenant.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = _command(
        actions,
        "create",
        "make a tenant unless it exists, and a new token for it",
        commands.tenant_create,
        "The token is printed alone on standard output, once: it is not kept anywhere. "
        "Works while the platform runs and while it does not.",
    )
    create.add_argument("name", metavar="NAME")
    quota = _command(
        actions,
        "quota",
        "show the quotas of a tenant, or give it another one",
        commands.tenant_quota,
        "Known to all programs within seconds. Works while the platform runs and while it does "
        "not.",
    )
    quota.add_argument("name", metavar="NAME")
    quota.add_argument("quota", metavar="QUOTA", nargs="?", help="which; none shows all")
    quota.add_argument(
        "most",
        metavar="MOST",
        nargs="?",
        help="so much it may have; `default`: as every tenant",
    )
    delete = _command(
        actions,
        "delete",
        "delete a tenant and all that is stored of it",
        commands.tenant_delete,
        "Its tokens are good no longer at once. What is stored of it goes piece by piece, while "
        "the API and the pipeline run; there is no way back.",
    )
    delete.add_argument("name", metavar="NAME")


def _command(group: Any, name: str, text: str, run: Any, more: str = "") -> Any:
    command = group.add_parser(name, help=text, description=f"{_sentence(text)} {more}".strip())
    command.add_argument("--data", metavar="DIR", help="data folder (default: servioticy-data)")
    command.set_defaults(run=run)
    return command


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _settings(parsed: argparse.Namespace) -> Settings:
    given = {name: getattr(parsed, name, None) for name in ("data", *listening.NAMES)}
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = load(overrides=chosen)
    first = getattr(parsed, "ports", None)
    return settings if first is None else changed(listening.counted(settings, first), **chosen)


if __name__ == "__main__":
    sys.exit(main())
