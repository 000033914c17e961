"""Parsing documents that take long, in a separate process: threads would wait for each other.

One that takes a second in a thread of the API makes the requests of all others twenty times
as slow, as only one thread computes at a time. The process is started when it is needed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any

import orjson

from servioticy.apart import asking
from servioticy.apart.asking import OtherProcess
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.limits import Meter
from servioticy.domain.model import Definition
from servioticy.turns import Turns

SECONDS = 10.0
"""For one document; the slowest ones that are accepted take less than one on an idle machine."""
WAIT_SECONDS = 5.0
"""So long a document waits for others to be parsed, those of other callers one by one."""
COMMAND = asking.command("ingest.parsing.document_parser_process")


def nobody() -> Hashable:
    """Return the same for all who ask: they are one caller."""
    return None


def parsing_process(seconds: float = SECONDS) -> OtherProcess:
    """Return the process that parses, which is not started yet."""
    return OtherProcess(COMMAND, seconds, "the process that parses documents")


class DocumentParser:
    """One process that parses one document after the other; threads may share it."""

    def __init__(
        self,
        caller: Callable[[], Hashable] = nobody,
        process: OtherProcess | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`caller`: on whose behalf the present thread asks; callers take turns."""
        self._caller = caller
        self._turns = Turns(wait_seconds)
        self._process = process or parsing_process()

    def turn(self) -> AbstractContextManager[None]:
        """Wait until it is this caller's turn. Raises Unavailable if it does not come in time."""
        return self._turns.turn(self._caller())

    def parse(self, document: dict[str, Any], service_object: str, meter: Meter) -> Definition:
        """Return the document as the Service Object of that id; for the thread whose `turn` it is.

        Raises BadDocument; TookTooLong; Unavailable where the process ended.
        """
        text = self._process.ask(service_object.encode() + b"\0" + orjson.dumps(document))
        found, counted = pickle.loads(text)  # noqa: S301  our own code made it, and ran none of theirs
        meter.note(counted)
        if isinstance(found, Definition):
            return found
        if isinstance(found, BadDocument):
            raise found
        raise RuntimeError(found)

    def close(self) -> None:
        """End the process; another one is started when it is needed."""
        self._process.stop()
