"""`python -m benchmarks NAME`: run a benchmark and print its figures."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys

from servioticy.errors import ServioticyError
from servioticy.settings import load

BENCHMARKS = (
    "latency",
    "start",
    "pipeline",
    "stages",
    "topologies",
    "change",
    "sandbox",
    "documents",
    "beside",
    "deletion",
    "attacks",
    "neighbours",
    "rest",
    "search",
    "actuations",
    "callbacks",
    "mqtt",
    "fleet",
    "delivery",
    "statements",
)


def main() -> int:
    """Run one benchmark on the platform that the settings name, or on one of its own.

    The exit code is the benchmark's, or 1 where it cannot be run.
    """
    parser = argparse.ArgumentParser("servioticy bench")
    parser.add_argument("name", choices=BENCHMARKS)
    name = parser.parse_args(sys.argv[1:2]).name
    benchmark = importlib.import_module(f"benchmarks.{name}")
    print(f"{name} on {os.cpu_count()} cores, Python {platform.python_version()}", flush=True)
    try:
        code: int | None = benchmark.run(load(), sys.argv[2:])
    except ServioticyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return code or 0


if __name__ == "__main__":
    sys.exit(main())
