"""What is done, and to be told beside an answer whose body is what it always was: `Warning`."""

from __future__ import annotations

from collections.abc import Sequence

HEADER = "Warning"
MOST = 4
"""Warnings that one answer tells."""
MOST_CHARACTERS = 500
"""Of each of them: clients take heads of a few KB."""


def warned(texts: Sequence[str]) -> dict[str, str]:
    """Return the header (RFC 7234, section 5.5), on one line whatever a tenant wrote in it."""
    told = list(texts[:MOST])
    if len(texts) > MOST:
        told.append(f"and {len(texts) - MOST} more")
    return {HEADER: ", ".join(f'299 - "{_quoted(each)}"' for each in told)} if told else {}


def _quoted(text: str) -> str:
    """Return visible ASCII for within quotes; what is none, as Python escapes it."""
    short = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}.."
    visible = "".join(
        each if each.isascii() and each.isprintable() else each.encode("unicode_escape").decode()
        for each in short
    )
    return visible.replace("\\", "\\\\").replace('"', '\\"')
