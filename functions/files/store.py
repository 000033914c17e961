"""What steps ask of a store of files, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from servioticy.errors import ServioticyError
from servioticy.ports.atoms import Seen

PAGE = 1_000
"""Files of one page of a list."""
MAX_KEY = 1_024
"""Bytes of a name; files with longer ones are left alone."""


class StoreAway(ServioticyError):
    """The store does not answer, or not now; later it may."""


class StoreRefuses(ServioticyError):
    """The store does not let us do it, or there is no such thing."""


class TakesTooMuch(ServioticyError):
    """Reading the file, or making it, took more than it may: perhaps it is the file, perhaps the
    machine."""

    def __init__(self, why: str, seconds: float = 0.0) -> None:
        super().__init__(why)
        self.seconds = seconds
        """for which the process was at it that has ended, and tells nothing of its processor"""


class FileRefused(ServioticyError):
    """The store does not let us read this file, and perhaps others."""


class StillCopied(ServioticyError):
    """The file is copied, and not yet whole: whoever asks again goes on with that."""


class FileGone(ServioticyError):
    """The file is not there any more as it was when it was listed."""


class Page(NamedTuple):
    """A stretch of a list, in the order of the bytes of names."""

    files: Sequence[Seen]
    upto: str | None
    """The name that it ends with; None: there is no more."""


class Files(Protocol):
    """A store. Every call may raise StoreAway and StoreRefuses."""

    def page(self, prefix: str, after: str) -> Page:
        """Return the next files whose names begin so, behind that name."""

    def write(self, key: str, content: bytes) -> None:
        """Put a file, in the place of one of this name; it is there as a whole, or not at all.

        Raises FileRefused.
        """

    def read(self, file: Seen, start: int, length: int) -> bytes:
        """Return a part of a file; less where it ends before. Raises FileGone and FileRefused."""
