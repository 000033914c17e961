"""Aliases of a document: texts that stand for other texts (contract, section 2.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from servioticy.domain.documents.codes import TOO_MUCH
from servioticy.domain.documents.errors import Part
from servioticy.domain.documents.limits import MAX_COMPARISONS, MAX_TEXT, Meter

MAX_EXPANDED = 16_384
"""Characters of one text with its aliases replaced: four times what it may have before."""
LONG = 100
"""A longer text is searched for without comparing it whole at every place."""
LOOK = 150
FOUND = 10
"""What a search costs beyond its comparisons, and what each place does that it finds."""
OFTEN = 10_000_000
"""Comparisons after which they are counted; to count each search would cost as much again."""


class Alias(NamedTuple):
    """A text that stands for another, and the part of the document that declares it."""

    name: str
    text: str
    part: Part


class Aliases:
    """Replaces the aliases in the texts of one document, and counts what that takes."""

    def __init__(self, aliases: Iterable[Alias], meter: Meter) -> None:
        self._aliases = [each for each in aliases if each.name]
        self._meter = meter
        self._known: dict[str, str] = {}

    def expanded(self, text: str, part: Part) -> str:
        """The text with the aliases replaced in their order, earlier results included.

        Raises BadDocument where it would become too long, or the document too large.
        """
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._replaced(text, part)
        self._meter.count(MAX_TEXT, size(known), part)
        return known

    def _replaced(self, text: str, part: Part) -> str:
        spent = 0
        for alias, replacement, _ in self._aliases:
            spent += LOOK + len(text) * min(len(alias), LONG)
            if spent > OFTEN:
                self._meter.count(MAX_COMPARISONS, spent, part)
                spent = 0
            if alias not in text:
                continue
            found = text.count(alias)
            spent += FOUND * found
            growth = found * (len(replacement) - len(alias))
            if growth > 0 and len(text) + growth > MAX_EXPANDED:
                raise part.bad(
                    f"the alias {alias[:40]!r} makes a text of more than {MAX_EXPANDED} "
                    "characters",
                    TOO_MUCH,
                )
            text = text.replace(alias, replacement)
        self._meter.count(MAX_COMPARISONS, spent, part)
        return text


def size(text: str) -> int:
    """Its bytes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
