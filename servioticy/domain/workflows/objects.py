"""The sink of a workflow that is Parquet in a store: what its document says, and what objects are.

Atoms are gathered by the hour in which they come to the sink. When it is over, or when they are
many, they are sealed: from then on it is certain which of them an object has. It is written under
a name of its own, so whoever writes it again writes the same over it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from servioticy.domain.documents.codes import REQUIRED, WRONG_TYPE
from servioticy.domain.documents.errors import Part
from servioticy.domain.workflows.files import STORE, prefix_of
from servioticy.domain.workflows.model import SinkFiles

OBJECT_KEYS = ("store", "prefix")
HOUR_MS = 3_600_000
LATE_MS = 5_000
"""After the end of an hour its object is written: clocks of machines may be so far apart."""
MAX_OBJECT_BYTES = 32 * 1024 * 1024
"""Of atoms as JSON, each with 100 bytes beside it; with more an object is written before its hour
is over."""


class Object(NamedTuple):
    """One that is gathered, or written; the same hour has another one where it is many."""

    hour_ms: int
    number: int

    @classmethod
    def read(cls, body: bytes) -> Object:
        """Return what `body` made."""
        told = orjson.loads(body)
        return cls(told["hour"], told["number"])

    def body(self) -> bytes:
        """Return it as an atom: the ticket of who writes it."""
        return orjson.dumps({"hour": self.hour_ms, "number": self.number})

    def name(self, prefix: str, workflow: str, version: int) -> str:
        """Return what it is called in the store, in folders as Hive has them."""
        at = time.strftime("date=%Y-%m-%d/hour=%H", time.gmtime(self.hour_ms / 1_000))
        return f"{prefix}{at}/{workflow}-{version}-{self.number}.parquet"


def sink_files_of(content: Mapping[str, Any], part: Part) -> SinkFiles:
    """Understand them. Raises BadDocument; whether there is such a store is asked by who can."""
    store = content.get("store")
    if store is None:
        raise part.at("store").bad("objects go to a store, by its name", REQUIRED)
    if not isinstance(store, str) or not STORE.fullmatch(store):
        raise part.at("store").bad("a store has a name of 1 to 50 of A-Z a-z 0-9 _ -", WRONG_TYPE)
    return SinkFiles(store, prefix_of(content.get("prefix", ""), part.at("prefix")))
