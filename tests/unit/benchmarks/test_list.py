"""`servioticy bench list`: what there is to measure."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import __main__ as bench


@pytest.mark.parametrize("name", bench.BENCHMARKS)
def test_every_benchmark_is_told_in_a_line(name: str) -> None:
    assert 20 < len(bench.about(name)) < 110
    assert bench.about(name).endswith(".")


@pytest.mark.parametrize("arguments", [["list"], []])
def test_the_list_is_printed(arguments: list[str]) -> None:
    """Also where no platform runs."""
    command = [sys.executable, "-m", "command.cli", "bench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(bench.BENCHMARKS)


def test_an_unknown_one_is_refused_with_what_there_is() -> None:
    command = [sys.executable, "-m", "command.cli", "bench", "latancy"]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 2
    assert "'latency'" in done.stderr
    assert "Traceback" not in done.stderr
