"""What a document is listed and searched by, derived before anybody waits for it."""

from __future__ import annotations

from dataclasses import replace

from api.services import Services
from servioticy.ports.change_store import Listed, NewServiceObject

SMALL_BYTES = 16_384
"""Of one that is not larger it is derived where the change is made, in a few milliseconds."""

MAX_SEARCHED_BYTES = 65_536
"""Of customFields: nothing is found by larger ones (`migrations/0121_left_behind.sql`)."""


def with_listed(
    new: NewServiceObject, services: Services, *, keeps_fields: bool = False
) -> NewServiceObject:
    """Return it with what it is listed by, where that takes long. Raises Unavailable.

    Whoever holds the right to change makes everybody else's change wait; nobody has it here.
    `keeps_fields`: the customFields that are there stay.
    """
    if new.size <= SMALL_BYTES:
        return new
    searched = None if keeps_fields else new.custom_fields
    if searched is not None and len(searched) > MAX_SEARCHED_BYTES:
        searched = None
    fields = None if searched is None else searched.decode()
    row = services.ports.statements("listings").row(
        "derived", document=new.document.decode(), custom_fields=fields
    )
    if row is None:  # a NUL: nothing is derived of it but there
        return new
    name, channel_types, found, latitude, longitude = row
    kept = None if keeps_fields else found or []
    return replace(new, listed=Listed(name, channel_types, kept, latitude, longitude))
