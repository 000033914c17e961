"""Trace contexts: what connects an update with the request that sent it (W3C Trace Context).

A context is the header `traceparent` of version 00: `00-`, 32 hexadecimal digits of the trace, 16
of the step that it comes from, and flags. None is the empty text, which takes no byte anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import msgspec

HEADER = "traceparent"
ENVIRON = "HTTP_TRACEPARENT"
"""The header's name to WSGI."""
LENGTH = 55
_FORM = r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]"
_OF_ANY_VERSION = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
SAMPLED = 0b1
KNOWN_FLAGS = 0b11
"""Sampled, and that the trace's id is random; others mean nothing in version 00."""
MOST = 512
"""Characters of a header that are looked at: later versions may be longer."""

_SEVERAL_WRITTEN = re.compile(r"(?:00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3],)*", re.ASCII)
_NO_TRACE, _NO_STEP = f"-{'0' * 32}-", f"-{'0' * 16}-"

Trace: TypeAlias = Annotated[str, msgspec.Meta(pattern=f"^{_FORM}$", max_length=LENGTH)]
"""A context in a record."""

TraceIfAny: TypeAlias = Annotated[str, msgspec.Meta(pattern=f"^(?:{_FORM})?$", max_length=LENGTH)]
"""The same of one among several, of which some have none."""


def read(header: str | None) -> str:
    """Return the context of a request's header; none where it is not valid, as the standard says.

    What comes twice is joined by a comma, and not valid. A later version is read as version 00.
    """
    if not header or len(header) > MOST:
        return ""
    found = _OF_ANY_VERSION.fullmatch(header.strip(" \t"))
    if found is None:
        return ""
    version, trace, step, flags, more = found.groups()
    if version == "00" and more is not None:
        return ""
    return written(trace, step, int(flags, 16) & KNOWN_FLAGS)


def written(trace: str, step: str, flags: int) -> str:
    """Return a context of these parts."""
    return f"00-{trace}-{step}-{flags:02x}"


def are_written(contexts: Sequence[str]) -> bool:
    """Whether all of them are as `written` has them; one that is not may be a context, too."""
    together = ",".join([*contexts, ""])
    if len(together) != (LENGTH + 1) * len(contexts) or _NO_TRACE in together:
        return False
    return _NO_STEP not in together and _SEVERAL_WRITTEN.fullmatch(together) is not None


def id_of(context: str) -> str:
    """Return the trace of a context."""
    return context[3:35]


def step_of(context: str) -> str:
    """Return the step that a context comes from."""
    return context[36:52]


class Making:
    """Makes contexts for updates that come without one, while somebody wants that, and has
    those who are sent one know which step has sent it.

    Whoever measures says so here, and who takes updates asks: neither knows of the other.
    """

    def __init__(self) -> None:
        self.make: Callable[[], str] | None = None
        """None: nobody does."""
        self.step_under_way: Callable[[str], str] | None = None
        """Given a context, the step of its trace that is measured here and now; empty: none."""

    def of(self, header: str | None) -> str:
        """Return the context of a request with this header, or one that is made for it."""
        found = read(header) if header else ""
        if found or self.make is None:
            return found
        return self.make()

    def onward(self, context: str) -> str:
        """Return the context that others are sent: they are called by the step under way here."""
        step = self.step_under_way(context) if context and self.step_under_way else ""
        return written(id_of(context), step, int(context[53:], 16) | SAMPLED) if step else context


MAKING = Making()
"""This process's."""
