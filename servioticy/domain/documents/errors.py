"""What is wrong with a document, and where."""

from __future__ import annotations

from servioticy.errors import ServioticyError

MAX_POINTER = 1000
"""Characters of a pointer; a part whose pointer is longer is told by what it is part of."""


class BadDocument(ServioticyError):
    """The document cannot be accepted.

    `reason` says why and where, for people. `pointer` is the place as a JSON Pointer
    (RFC 6901) into the document; it leads to what is wrong, or to what lacks something.
    `code` is one of the CODES. `parts` are several things that are wrong, where all of them
    were looked for; the pointer and the code then are those of the first.
    """

    def __init__(
        self, reason: str, pointer: str, code: str, parts: tuple[BadDocument, ...] = ()
    ) -> None:
        super().__init__(reason, pointer, code, parts)
        self.reason = reason
        self.pointer = pointer
        self.code = code
        self.parts = parts
        self.hint = ""
        """What to do next, where the reason is the original's and stays as it is."""

    def hinted(self, hint: str) -> BadDocument:
        """Return the error with what to do next."""
        self.hint = hint
        return self

    @property
    def all(self) -> tuple[BadDocument, ...]:
        """All that is wrong, as far as it was looked for."""
        return self.parts or (self,)

    def __str__(self) -> str:
        return self.reason


class Part:
    """A part of a document: the keys and indexes that lead to it, and how messages call it.

    It is spelled when somebody asks: there are several for each channel, and of most nobody does.
    """

    __slots__ = ("_steps", "_whole", "_words")

    def __init__(
        self, steps: tuple[str | int, ...] = (), words: str = "", whole: Part | None = None
    ) -> None:
        """`whole` is what it is a part of, if that is not the document."""
        self._whole = whole
        self._steps = steps
        self._words = words

    def at(self, *steps: str | int, words: str = "") -> Part:
        """Return a part of this part; without words it is called as this one."""
        return Part(steps, words, self)

    @property
    def steps(self) -> tuple[str | int, ...]:
        """The keys and indexes that lead to it."""
        return self._steps if self._whole is None else self._whole.steps + self._steps

    @property
    def words(self) -> str:
        """How messages call it."""
        before = "" if self._whole is None else self._whole.words
        return f"{before}: {self._words}" if before and self._words else before or self._words

    @property
    def pointer(self) -> str:
        """The JSON Pointer to it, or where that is too long, to what holds it."""
        pointer = ""
        for step in self.steps:
            longer = f"{pointer}/{str(step).replace('~', '~0').replace('/', '~1')}"
            if len(longer) > MAX_POINTER:
                break
            pointer = longer
        return pointer

    def bad(self, reason: str, code: str) -> BadDocument:
        """Return the error that something is wrong with this part: its words, then the reason."""
        where = f"{self.words}: " if self.words else ""
        return BadDocument(where + reason, self.pointer, code)


WHOLE = Part()
"""The whole document."""
