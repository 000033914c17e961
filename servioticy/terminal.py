"""Where what we print goes: to a person's terminal, which can be redrawn, or elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def console(stream: TextIO) -> Console | None:
    """Return the terminal that the stream goes to; None where it is none, or one that only
    appends.

    Who gets None prints plain lines: they are read by programs and kept in logs.
    """
    if not stream.isatty():
        return None
    from rich.console import Console  # slow, and not needed where nobody looks

    found = Console(file=stream, highlight=False)
    return None if found.is_dumb_terminal else found
