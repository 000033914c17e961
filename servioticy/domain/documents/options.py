"""What a composite stream chooses, as its document spells it."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec.structs import fields

from servioticy.domain.documents.codes import NO_CHOICE
from servioticy.domain.documents.errors import BadDocument, Part
from servioticy.domain.options import Options


def parse_options(stream: Part, content: dict[str, Any]) -> Options:
    """Return the options that the stream names; the others are as they are by default.

    Raises BadDocument for a value that an option does not offer.
    """
    chosen = {}
    for field in fields(Options):
        name = field.encode_name
        if name in content:
            try:
                chosen[field.name] = msgspec.convert(content[name], field.type)
            except msgspec.ValidationError as error:
                words = ", ".join(map(repr, words_of(field.type)))
                reason = (
                    f"has to be one of {words}" if words else f"is not what it may be: {error}"
                )
                pointer = stream.at(name).pointer
                raise BadDocument(
                    f"{stream.words}: {name} {reason}", pointer, NO_CHOICE
                ) from error
    return Options(**chosen)


def words_of(kind: Any) -> tuple[str, ...]:
    """Return the words that a value of this declared type may be.

    None where it may be other things.
    """
    plain = get_args(kind)[0]
    return get_args(plain) if get_origin(plain) is Literal else ()
