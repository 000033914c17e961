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


def _state_and_parent(pid: int) -> tuple[str, int]:
    """Its letter of state and its parent; ("", 0) where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "", 0
    state, parent = fields.rpartition(")")[2].split()[:2]
    return state, int(parent)
