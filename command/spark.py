"""A Spark on several machines: its master and its workers, from this very package."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Any

from command import commands
from servioticy.settings import Settings

if TYPE_CHECKING:
    from pipeline.spark.standalone import Place

MASTER_PORT = 7077


def add(group: Any, command: Any) -> None:
    """Add `servioticy spark`."""
    about = group.add_parser("spark", help="a Spark on several machines, for the pipeline")
    actions = about.add_subparsers(title="actions", metavar="ACTION", required=True)
    master = command(
        actions,
        "master",
        "run the master of a Spark that several machines compute for",
        _master,
        "The pipeline finds it by `spark_master`. `spark_secret` is what all of them know; "
        "without it the master listens on loopback only.",
    )
    _add_place(master, MASTER_PORT)
    worker = command(
        actions,
        "worker",
        "let this machine compute partitions for such a master",
        _worker,
        "Each partition takes a slot, which is a core, for as long as the pipeline runs. What is "
        "on this machine (folders, files of certificates) is as its own settings say; all else is "
        "the pipeline's.",
    )
    worker.add_argument("master", metavar="MASTER", help="spark://HOST:PORT")
    worker.add_argument(
        "--cores", type=_cores, default=os.cpu_count() or 1, help="slots (default: its cores)"
    )
    worker.add_argument(
        "--memory", type=_size, default="2g", help="for the Java of its executors (default: 2g)"
    )
    _add_place(worker, 0)


def _add_place(command: Any, port: int) -> None:
    command.add_argument(
        "--host", default="127.0.0.1", help="address to listen on, which the others reach"
    )
    shown = f"default: {port}" if port else "default: any that is free"
    command.add_argument("--port", type=_port, default=port, help=shown)
    command.add_argument(
        "--page-port", type=_port, default=0, help="of its page (default: any that is free)"
    )


def _master(parsed: argparse.Namespace, settings: Settings) -> int:
    """Become the master."""
    commands.require("pipeline")
    from pipeline.spark import standalone

    commands.become(*standalone.master(settings, _place(parsed, settings, "spark-master")))
    return 0


def _worker(parsed: argparse.Namespace, settings: Settings) -> int:
    """Become a worker, once it is known that this machine has what a task needs."""
    commands.require("pipeline")
    from pipeline.spark import standalone
    from servioticy.embedded import javascript

    javascript.require(settings, settings.sandbox.engine)
    place = _place(parsed, settings, "spark-worker")
    found = standalone.worker(settings, place, parsed.master, parsed.cores, parsed.memory)
    commands.become(*found)
    return 0


def _place(parsed: argparse.Namespace, settings: Settings, name: str) -> Place:
    from pipeline.spark.standalone import Place

    return Place(parsed.host, parsed.port, settings.data_path / name, parsed.page_port)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError("it has to be a port, from 0 to 65535")
    return int(text)


def _cores(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError("it has to be a whole number from 1 on")
    return int(text)


def _size(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,6}[mgMG]", text):
        raise argparse.ArgumentTypeError("it has to be a size such as 512m or 2g")
    return text
