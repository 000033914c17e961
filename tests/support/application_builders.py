"""Packages of applications that are not ours, and their monitors."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from waiting import until

from monitoring.applications import deploying, repository, scheduled, states
from monitoring.applications.repository import Place
from monitoring.applications.states import State
from monitoring.model import Measurement
from servioticy.settings import Settings, changed, to_environment

CODE = """
import sys, time

def step(given):
    return given["id"] + 1

def main():
    for number in range(int(sys.argv[1])):
        step({"id": number})
    print("done", flush=True)
    while sys.argv[2:] == ["on"]:
        time.sleep(0.05)
"""
STANDARD_ERROR = 2
ASPECTS = """
[[aspect]]
pointcut = "loop.step"
purpose = "stepping"
sequence = "given.id"
"""


def a_package(
    folder: Path,
    *,
    name: str = "loop",
    engine: str = "python",
    entry: str = "loop:main",
    arguments: str = '["3", "on"]',
    code: str = CODE,
    rest: str = ASPECTS,
) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "loop.py").write_text(code)
    lines = (f'name = "{name}"', f'engine = "{engine}"', f'entry = "{entry}"')
    (folder / "application.toml").write_text("\n".join([*lines, f"arguments = {arguments}", rest]))
    return folder


class Here:
    """A data folder in which applications are deployed."""

    def __init__(self, data: Path) -> None:
        data.mkdir(exist_ok=True)
        self.data, self.settings = data, changed(Settings(), data=str(data))

    def deploy(self, package: Path) -> list[str]:
        return deploying.deploy(self.settings, package)[1]

    def place(self, name: str = "loop") -> Place:
        return Place(self.data, name)

    def state(self, name: str = "loop") -> State:
        return states.of(self.data, repository.registered(self.data, name))

    def until(self, state: str, name: str = "loop") -> State:
        until(lambda: self.state(name).state == state)
        return self.state(name)

    def measured(self, name: str = "loop") -> list[Measurement]:
        """What is stored by now: a line that is being written has no end yet."""
        text = b"".join(each.read_bytes() for each in self.place(name).files())
        *lines, _ = text.split(b"\n")
        return [msgspec.json.decode(each, type=Measurement) for each in lines]

    @contextmanager
    def monitor(self, name: str = "loop") -> Iterator[subprocess.Popen[bytes]]:
        """Its monitor, as who supervises it begins it; whatever is left of it is ended."""
        found = repository.registered(self.data, name)
        process = subprocess.Popen(
            scheduled.command(name, found.turn),
            env={**os.environ, **to_environment(self.settings)},
            stdin=subprocess.DEVNULL,
            stdout=STANDARD_ERROR,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
