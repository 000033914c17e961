"""Revisions: results of windows that have not ended yet, and of such as late updates have changed.

A result that is one says so in its document, right behind `lastUpdate`: `"revision"`, how many
updates its windows had, which grows with each that is taken in, and `"early":true` where they
have not ended, or `"retracted":true` where it is a former result that is taken back. What is
early is sent to subscribers and kept nowhere; another revision takes the place of the result that
the stream has of this timestamp. None of them wakes anybody.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = re.compile(rb',"revision":([0-9]{1,18})(,"early":true)?(,"retracted":true)?\}\Z')
_LONGEST = len(b',"revision":,"early":true,"retracted":true}') + 18


class Revision(NamedTuple):
    """What a document says of itself."""

    number: int
    early: bool
    retracted: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether it is a result of its stream, and not only sent to who follows that."""
        return not self.early

    @property
    def takes_back(self) -> bool:
        """Whether the result that its stream has of this timestamp is none any more."""
        return self.is_kept and self.retracted

    @property
    def is_row(self) -> bool:
        """Whether its stream has it of this timestamp from here on."""
        return not (self.early or self.retracted)


def revision_of(document: bytes) -> Revision | None:
    """Return what the document of a window, or of a result of windows, says; None: it is none.

    Only of documents that evaluators have made, compact JSON.
    """
    found = _MARK.search(document, max(0, len(document) - _LONGEST))
    if found is None:
        return None
    return Revision(int(found[1]), found[2] is not None, found[3] is not None)


def without_revision(document: bytes) -> bytes:
    """Return it as if it were the result of windows that have ended."""
    found = _MARK.search(document, max(0, len(document) - _LONGEST))
    return document if found is None else document[: found.start()] + b"}"
