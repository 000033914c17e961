"""What processes use, held against processes of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks import processes

TWO_BELOW = """
import subprocess, sys
below = [sys.executable, "-c", "print('here', flush=True); input()"]
child = subprocess.Popen([sys.executable, "-c", f"import subprocess; subprocess.run({below!r})"])
child.wait()
"""


@pytest.fixture
def three() -> Iterator[subprocess.Popen[bytes]]:
    """A process, its child, and that one's child, which has started when this returns."""
    command = [sys.executable, "-c", TWO_BELOW]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as top:
        assert top.stdout is not None
        assert top.stdout.readline() == b"here\n"
        yield top
        assert top.stdin is not None
        top.stdin.write(b"\n")


def test_a_tree_begins_with_its_root_and_goes_down(three: subprocess.Popen[bytes]) -> None:
    found = processes.tree(three.pid)

    assert found[0] == three.pid
    assert len(found) == 3
    assert "input()" in processes.command(found[2])[-1]
    assert processes.tree(found[1]) == found[1:]
    assert set(found) < set(processes.tree(os.getpid()))


def test_memory_and_processor_time_are_those_that_the_kernel_tells() -> None:
    sum(range(3_000_000))
    kernel = os.times()
    told = processes.processor_seconds(os.getpid())
    # The clocks of both tick a hundred times a second.
    assert kernel.user + kernel.system - 0.03 <= told <= sum(os.times()[:2]) + 0.03

    block = bytearray(os.urandom(1)) * (64 * 1024 * 1024)
    with_it = processes.memory_megabytes(os.getpid())
    del block
    assert 60 < with_it - processes.memory_megabytes(os.getpid()) < 68


def test_a_process_that_is_gone_uses_nothing() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()

    assert processes.tree(gone.pid) == []
    assert processes.command(gone.pid) == []
    assert processes.processor_seconds(gone.pid) == 0.0
    assert processes.memory_megabytes(gone.pid) == 0.0
