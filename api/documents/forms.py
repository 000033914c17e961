"""The forms that a batch may have, by its Content-Type."""

from __future__ import annotations

from functools import partial

from api.http.content_types import sent
from api.services import Services
from servioticy.domain.batches import csv_rows, json_items, senml
from servioticy.domain.batches.items import Form


def form(services: Services, *, milliseconds: bool) -> Form:
    """Return the form of the present request's body, by its Content-Type."""
    pack: Form = partial(senml.pack, clock=services.clock, milliseconds=milliseconds)
    kinds: dict[str, Form] = {
        "application/json": json_items.array,
        "application/x-ndjson": json_items.lines,
        "application/ndjson": json_items.lines,
        "application/jsonl": json_items.lines,
        "application/senml+json": pack,
        "text/csv": csv_rows.rows,
    }
    return sent(kinds, "application/json")
