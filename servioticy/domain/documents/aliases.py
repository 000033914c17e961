"""Aliases of a document: texts that stand for other texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from servioticy.domain.documents.codes import ALIAS_CYCLE, TOO_MUCH
from servioticy.domain.documents.errors import Part
from servioticy.domain.documents.limits import MAX_COMPARISONS, MAX_TEXT, Meter
from servioticy.domain.pauses import Paused

MAX_EXPANDED = 65_536
"""Characters of one text with its aliases replaced: four times what it may have before."""
COMPARED = 100
"""Characters of a name that a search compares at most at each place of a text."""
SEARCH = 150
"""What a search takes beyond that, as a number of comparisons."""
FOUND = 10
"""What each place takes that a search finds, as a number of comparisons."""
COUNTED_AFTER = 2_000_000
"""Comparisons after which they are counted; to count each search would take as long again."""


class Alias(NamedTuple):
    """A text that stands for another, and the part of the document that declares it."""

    name: str
    text: str
    part: Part


class Aliases:
    """Replaces the aliases in the texts of one document, and counts what that takes.

    They are replaced one after the other, in their order, so that what comes of one may
    hold later ones. Those before an alias are replaced in its own text once and for all:
    so an alias may use any other, earlier or later, but for circles.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._replaced: dict[str, str] = {}
        self._aliases: list[Alias] = []

    def learn(self, aliases: Iterable[Alias]) -> Paused[None]:
        """Take these from now on.

        Raises BadDocument where aliases stand for each other, or one becomes too long.
        """
        for alias in aliases:
            if self._meter.pauses():
                yield
            if alias.name:
                text = yield from self._replace(alias.text, alias.part, alias.name)
                self._aliases.append(alias._replace(text=text))

    def known(self, text: str, part: Part) -> str | None:
        """Return what `expanded` does where the text stood elsewhere before, else None."""
        replaced = self._replaced.get(text)
        if replaced is not None:
            self._meter.count(MAX_TEXT, size(replaced), part)
        return replaced

    def expanded(self, text: str, part: Part) -> Paused[str]:
        """Return the text of this part of the document with the aliases replaced.

        Raises BadDocument where it would become too long, or the document too large.
        """
        replaced = self._replaced.get(text)
        if replaced is None:
            replaced = self._replaced[text] = yield from self._replace(text, part)
        self._meter.count(MAX_TEXT, size(replaced), part)
        return replaced

    def _replace(self, text: str, part: Part, alias: str | None = None) -> Paused[str]:
        """Return the text with the aliases known so far replaced.

        It may be that of an alias itself.
        """
        if not text:
            return text
        comparisons = 0
        for name, replacement, _ in self._aliases:
            comparisons += SEARCH + len(text) * min(len(name), COMPARED)
            if comparisons > COUNTED_AFTER:
                self._meter.count(MAX_COMPARISONS, comparisons, part)
                comparisons = 0
                if self._meter.pauses():
                    yield
            if name not in text:
                continue
            # An alias may have its own name in its text: names of channels are often used so.
            if alias is not None and alias != name:
                comparisons += SEARCH + len(replacement) * min(len(alias), COMPARED)
                if alias in replacement:
                    reason = f"the aliases {alias[:40]!r} and {name[:40]!r} stand for each other"
                    raise part.bad(reason, ALIAS_CYCLE)
            found = text.count(name)
            comparisons += FOUND * found
            growth = found * (len(replacement) - len(name))
            if growth > 0 and len(text) + growth > MAX_EXPANDED:
                raise part.bad(
                    f"the alias {name[:40]!r} makes a text of more than {MAX_EXPANDED} characters",
                    TOO_MUCH,
                )
            text = text.replace(name, replacement)
        self._meter.count(MAX_COMPARISONS, comparisons, part)
        return text


def size(text: str) -> int:
    """Return how many bytes the text has in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
