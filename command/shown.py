"""What commands print of other people's words and numbers: plain lines, in columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return a line for each row; the columns named in `right` end below each other."""
    widths = [max(map(len, each)) for each in zip(*rows, strict=True)]

    def cell(place: int, text: str) -> str:
        width = widths[place]
        return text.rjust(width) if place in right else text.ljust(width)

    return ["  ".join(cell(*each) for each in enumerate(row)).rstrip() for row in rows]


def plain(text: str) -> str:
    """Return it so that it moves no cursor and ends no line, whoever has written it."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def moment(milliseconds: int) -> str:
    """Return a timestamp, and as a date where it is one."""
    try:
        date = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
    return f"{milliseconds} ({date:%Y-%m-%d %H:%M:%S} UTC)"


def number(value: float) -> str:
    """Return it with its thousands apart, and with as many digits behind the point as say much."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.2g}"


def say(lines: Sequence[str]) -> None:
    """Print lines."""
    # Half a surrogate pair is no text that a terminal takes.
    text = "".join(f"{each}\n" for each in lines)
    sys.stdout.write(text.encode(errors="backslashreplace").decode())
    sys.stdout.flush()


def say_json(value: Any) -> None:
    """Print a value for programs."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
    sys.stdout.flush()
