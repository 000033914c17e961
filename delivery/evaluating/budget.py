"""How much one attempt may make of what a tenant has written: asked before it is made."""

from __future__ import annotations

from typing import Any

MAX_CHARACTERS = 65_536
"""Of all texts, headers, aliases and parameters of one request, or of one output, together."""
MAX_REFERENCES = 1_000
"""So many places of them may be filled from the update."""
MEMBER = 4
"""An object's member has at least two quotes, a colon and a value of one character."""


class TooMuch(ValueError):
    """What is made of the update is too much."""


class TooManyReferences(TooMuch):
    """More places than that are filled from the update."""


class Budget:
    """What is left for one attempt."""

    def __init__(self, characters: int = MAX_CHARACTERS, references: int = MAX_REFERENCES) -> None:
        self.left = characters
        self._characters = characters
        self._references = references
        self._references_left = references

    def check(self, characters: int) -> None:
        """Raise TooMuch where so many more are not left."""
        if characters > self.left:
            raise TooMuch(f"the template makes more than {self._characters} characters of it")

    def take(self, characters: int) -> None:
        """Use so many up. Raises TooMuch."""
        self.check(characters)
        self.left -= characters

    def refer(self) -> None:
        """Follow one more reference. Raises TooMuch."""
        if not self._references_left:
            raise TooManyReferences(f"the template has more than {self._references} references")
        self._references_left -= 1

    def take_value(self, value: Any) -> None:
        """Use up what the JSON of a value takes at least. Raises TooMuch."""
        self.take(self._least(value))

    def check_value(self, value: Any) -> None:
        """Raise TooMuch where the JSON of a value is certainly more than what is left."""
        self._least(value)

    def _least(self, value: Any) -> int:
        """Return how many characters its JSON has at least. Raises TooMuch.

        Looks at no more of it than there are characters left, and makes nothing.
        """
        size, waiting = 0, [value]
        while waiting:
            each = waiting.pop()
            if isinstance(each, str):
                size += len(each)
            elif isinstance(each, dict):
                size += 2 + MEMBER * len(each)
                self.check(size)
                size += sum(map(len, each))
                waiting.extend(each.values())
            elif isinstance(each, list):
                size += 2 + len(each)
                self.check(size)
                waiting.extend(each)
            else:
                size += 1
            self.check(size)
        return size
