"""A whole platform as a user runs it, its memory, and what its logs complain of."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson

from benchmarks import processes
from command import found
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.folder import read_run
from servioticy.errors import Unavailable
from servioticy.settings import Settings, changed, to_environment

SECONDS_TO_START = 300.0
SECONDS_TO_STOP = 60.0


@contextlib.contextmanager
def platform(
    settings: Settings, logs: Path | None, partitions: int = 1, checkout: Path | None = None
) -> Iterator[Settings]:
    """`servioticy up` on a fresh folder; its logs are copied in the end.

    It is that of another `checkout` of the repository with a .venv of its own, where one is named.
    Raises Unavailable where it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="servioticy-bench-") as folder:
        own = changed(
            settings,
            data=f"{folder}/data",
            dsn="",
            bootstrap_servers="",
            partitions=partitions,
            api_port=ports.free(),
            live_port=ports.free(),
        )
        with (Path(folder) / "up.log").open("wb") as told:
            process = subprocess.Popen(
                [_python(checkout), "-P", "-m", "command.cli", "up"],
                env={**os.environ, **to_environment(own)},
                cwd=checkout,  # Spark's workers look for their modules there first
                stdout=subprocess.PIPE,
                stderr=told,
            )
            try:
                _until_ready(process)
                yield found.of(own)
            finally:
                _stop(process)
                if logs is not None:
                    shutil.copytree(own.data_path / "logs", logs, dirs_exist_ok=True)
                    shutil.copy(told.name, logs)


def memory(settings: Settings) -> dict[str, float]:
    """Return the megabytes by program now, shared pages counted in parts."""
    found: dict[str, float] = {}
    for name, pid in (read_run(settings.data_path) or {}).get("pids", {}).items():
        for each in processes.tree(pid):
            part, megabytes = _part(name, each), processes.memory_megabytes(each)
            if megabytes:  # else it has ended meanwhile
                found[part] = found.get(part, 0.0) + megabytes
    return found


def complaints(settings: Settings) -> Counter[str]:
    """Events of our programs from WARNING on, by program and name."""
    found: Counter[str] = Counter()
    for log in sorted((settings.data_path / "logs").glob("*.log*")):
        for line in log.read_bytes().splitlines():
            with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
                facts = orjson.loads(line)
                if facts["level"] in ("warning", "error", "critical"):
                    found[f"{log.name.partition('.')[0]}: {str(facts['event'])[:60]}"] += 1
    return found


def used(settings: Settings) -> dict[str, float]:
    """Return the processor seconds by program so far, those of ended processes too."""
    found: dict[str, float] = {}
    for name, pid in (read_run(settings.data_path) or {}).get("pids", {}).items():
        for each in processes.tree(pid):
            part = _part(name, each)
            found[part] = found.get(part, 0.0) + processes.processor_seconds(each, ended=True)
    return found


def _python(checkout: Path | None) -> str:
    return sys.executable if checkout is None else str(checkout / ".venv/bin/python")


def _part(program: str, pid: int) -> str:
    command = " ".join(processes.command(pid))
    if "zygote" in command:
        return "sandbox"
    if program == "pipeline" and command:
        return "jvm" if "PythonGatewayServer" in command else "worker"
    return program


def _until_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None  # noqa: S101 - it is a pipe, as asked for
    watchdog = threading.Timer(SECONDS_TO_START, process.kill)
    watchdog.start()
    line = process.stdout.readline()
    watchdog.cancel()
    if not line.startswith(b"servioticy ready"):
        raise Unavailable("the platform did not start; `servioticy up` says why")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(2)
    try:
        process.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
