"""How a look goes through the list of a store: some pages at a time, however long it is.

Pages on which something is new are gone on from at once; of others a look has so many, and the
next look goes on where it ended. So a look at a million files takes no more than one at ten
thousand. What is put behind the last name, as names with a date in front are, is looked for first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

LOOK_PAGES = 10
"""Pages without anything new of one look."""
BEHIND_PAGES = 5
"""Of these, behind the name that was the last one."""


class Place(NamedTuple):
    """Where in the list a look is."""

    after: str = ""
    """It goes on behind this name."""
    pages: int = 0
    """So many pages it had that had nothing new."""
    last: str = ""
    """The last name of the list when its end was seen."""
    back: str | None = None
    """This is behind the last name; then it goes on behind this one. None: it is not."""
    is_long: bool = False
    """Whether one look was not enough for what was before."""

    @classmethod
    def read(cls, body: bytes) -> Place:
        """Return what `body` made."""
        told = orjson.loads(body)
        return cls(**{each: told[each] for each in cls._fields if each in told})

    def body(self) -> bytes:
        """Return it as an atom."""
        told: dict[str, Any] = self._asdict()
        usual = self._field_defaults
        return orjson.dumps({each: told[each] for each in told if told[each] != usual[each]})

    def following(
        self, names: Sequence[str], upto: str | None, is_new: bool
    ) -> tuple[Place, bool]:
        """Return where it goes on, and whether that is the next look's.

        These names were found here, in order, up to the end of the list where `upto` is None.
        """
        pages = self.pages + (not is_new)
        if upto is None:
            last = names[-1] if names else self.after
            if self.back is not None:
                return Place(self.back, pages, last, is_long=self.is_long), pages >= LOOK_PAGES
            if self.is_long:
                return Place(last, 0, last, back=""), True
            return Place(last=last), True
        if self.back is not None and pages >= BEHIND_PAGES:
            return Place(self.back, pages, upto, is_long=self.is_long), False
        if pages < LOOK_PAGES:
            return self._replace(after=upto, pages=pages), False
        if upto.encode() < self.last.encode():
            return Place(self.last, 0, self.last, upto, True), True
        return Place(upto, 0, self.last, is_long=True), True

    def again(self) -> Place:
        """Return the same for the next look."""
        return self._replace(pages=0)
