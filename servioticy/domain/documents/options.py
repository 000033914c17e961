"""What a composite stream chooses, as its document spells it."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from servioticy.domain.documents.codes import NO_CHOICE
from servioticy.domain.documents.errors import BadDocument, Part
from servioticy.domain.options import Options

TYPES = get_type_hints(Options, include_extras=True)
"""Of each option, what its value may be."""


def parse_options(stream: Part, content: dict[str, Any]) -> Options:
    """The options that the stream names; the others are as they are by default.

    Raises BadDocument for a value that an option does not offer.
    """
    chosen = {}
    for name, kind in TYPES.items():
        if name in content:
            try:
                chosen[name] = msgspec.convert(content[name], kind)
            except msgspec.ValidationError as error:
                reason = f"{stream.words}: {name} {_offered(kind) or f'is wrong: {error}'}"
                raise BadDocument(reason, stream.at(name).pointer, NO_CHOICE) from error
    return Options(**chosen)


def _offered(kind: Any) -> str:
    """What an option has to be, where it is one of some words."""
    words = get_args(kind)[0]
    if get_origin(words) is not Literal:
        return ""
    return f"has to be one of {', '.join(map(repr, get_args(words)))}"
