"""`python -m benchmarks NAME`: run a benchmark and print its figures; `list` names them."""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import platform
import sys
from importlib.util import find_spec
from pathlib import Path

from servioticy.errors import ServioticyError
from servioticy.settings import load

BENCHMARKS = (
    "latency",
    "loop",
    "start",
    "back",
    "pipeline",
    "stages",
    "windows",
    "noted",
    "topologies",
    "tries",
    "change",
    "sandbox",
    "documents",
    "backfill",
    "backup",
    "beside",
    "deletion",
    "retention",
    "attacks",
    "neighbours",
    "border",
    "rest",
    "search",
    "actuations",
    "callbacks",
    "mqtt",
    "fleet",
    "delivery",
    "several",
    "shared_topics",
    "functions",
    "queues",
    "idle",
    "operators",
    "versions",
    "statements",
    "monitoring",
    "applications",
    "console",
    "scale",
)
LIST = "list"


def main() -> int:
    """Run one benchmark on the platform that the settings name, or on one of its own.

    The exit code is the benchmark's, or 1 where it cannot be run.
    """
    parser = argparse.ArgumentParser("servioticy bench")
    parser.add_argument("name", choices=(LIST, *BENCHMARKS), metavar="NAME")
    name = parser.parse_args(sys.argv[1:2]).name
    if name == LIST:
        sys.stdout.writelines(f"{each:12} {about(each)}\n" for each in BENCHMARKS)
        return 0
    benchmark = importlib.import_module(f"benchmarks.{name}")
    print(f"{name} on {os.cpu_count()} cores, Python {platform.python_version()}", flush=True)
    try:
        code: int | None = benchmark.run(load(), sys.argv[2:])
    except ServioticyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return code or 0


def about(name: str) -> str:
    """Return what a benchmark measures, in a line; read and not run, as that takes long."""
    found = find_spec(f"benchmarks.{name}")
    source = Path(found.origin).read_text("utf-8") if found and found.origin else ""
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
