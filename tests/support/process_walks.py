"""Which processes live, and whose children they are, read from /proc."""

from __future__ import annotations

from pathlib import Path


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has collected does not."""
    return _state_and_parent(pid)[0] not in ("", "Z")


def children(pid: int) -> list[int]:
    """The living processes whose parent this is, in order of their ids."""
    numbers = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())
    found = ((number, *_state_and_parent(number)) for number in numbers)
    return sorted(number for number, state, parent in found if parent == pid and state != "Z")


def below(pid: int) -> list[int]:
    """All living processes under this one."""
    found = children(pid)
    return found + [each for child in found for each in below(child)]


def runs(pid: int, words: bytes) -> bool:
    """Whether its command line has these words."""
    try:
        return words in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def pipeline_workers(pipeline: int) -> list[int]:
    """The processes forked by Spark's daemon below the program, which hold the tasks."""
    daemons = [each for each in below(pipeline) if runs(each, b"pipeline.spark.daemon")]
    return [each for each in daemons if not set(children(each)) & set(daemons)]


def spark_drivers(pipeline: int) -> list[int]:
    """Spark's JVM below the program."""
    return [each for each in below(pipeline) if runs(each, b"PythonGatewayServer")]


def _state_and_parent(pid: int) -> tuple[str, int]:
    """Its letter of state and its parent; ("", 0) where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "", 0
    state, parent = fields.rpartition(")")[2].split()[:2]
    return state, int(parent)
