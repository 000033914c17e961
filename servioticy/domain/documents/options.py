"""What a composite stream chooses, as its document spells it."""

from __future__ import annotations

from typing import Any, get_args

from servioticy.domain.documents.codes import NO_CHOICE
from servioticy.domain.documents.errors import BadDocument, Part
from servioticy.domain.model import Diamonds, Missing, Options, Staleness

_CHOICES = {"diamonds": Diamonds, "staleness": Staleness, "missing": Missing}


def parse_options(stream: Part, content: dict[str, Any]) -> Options:
    """The stream's `diamonds`, `staleness` and `missing`; what it does not name is as ever.

    Raises BadDocument for a word that is not a choice.
    """
    chosen = {}
    for name, kind in _CHOICES.items():
        if name in content:
            words = get_args(kind)
            if content[name] not in words:
                choices = ", ".join(map(repr, words))
                raise BadDocument(
                    f"{stream.words}: {name} has to be one of {choices}",
                    stream.at(name).pointer,
                    NO_CHOICE,
                )
            chosen[name] = content[name]
    return Options(**chosen)
