"""Reading batches: short ones here, others in a process of lower priority, by callers in turn.

A batch of a few hundred kilobytes takes a tenth of a second of Python. In threads those of one
tenant would share this process's lock with everybody's updates, and have most of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import NamedTuple

from ingest.parsing.document_parser import nobody
from servioticy.apart import asking
from servioticy.apart.asking import OtherProcess, TookTooLong
from servioticy.domain.batches.forms import FORMS, Way
from servioticy.domain.batches.items import Item, Unreadable, bounded
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import TOO_SLOW
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import Channel, SensorUpdate, Stream, StreamRef
from servioticy.turns import Turns

HERE_BYTES = 16_384
"""So long a batch is read in the thread that asks: some milliseconds."""
SECONDS = 30.0
"""For one batch; the slowest ones take less than one on an idle machine."""
WAIT_SECONDS = 30.0
"""So long one waits for others to be read, those of other callers one by one."""
COMMAND = asking.command("ingest.parsing.batch_reader_process")

Items = list[Item | Unreadable]


class Asked(NamedTuple):
    """What the process is asked: to take a batch apart, and to read it where streams are named."""

    form: str
    way: Way
    body: bytes
    origin: StreamRef | None
    declared: Mapping[StreamRef, Stream] | None
    """None: it is only asked which streams the batch names"""


class Found(NamedTuple):
    """What becomes of one item: an update, or why not; None where its stream is not declared."""

    place: int
    origin: StreamRef
    read: tuple[int, bytes] | BadDocument | None
    """the timestamp and the document as it is kept"""


def reading_process(seconds: float = SECONDS) -> OtherProcess:
    """Return the process that reads, which is not started yet."""
    return OtherProcess(COMMAND, seconds, "the process that reads batches")


class BatchReader:
    """One process that reads one batch after the other; threads may share it."""

    def __init__(
        self,
        caller: Callable[[], Hashable] = nobody,
        process: OtherProcess | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`caller`: on whose behalf the present thread asks; callers take turns."""
        self._caller = caller
        self._process = process or reading_process()
        self._turns = Turns(wait_seconds)

    def of_one(self, form: str, way: Way, body: bytes, declared: Stream) -> Items:
        """Return the items of a batch for one stream.

        Raises BadDocument where it is none; Unavailable.
        """
        if len(body) <= HERE_BYTES:
            return bounded(FORMS[form](body, declared.ref, way))
        return self._read(Asked(form, way, body, declared.ref, {declared.ref: _typed(declared)}))

    def of_many(
        self,
        form: str,
        way: Way,
        body: bytes,
        declared: Callable[[Collection[StreamRef]], Mapping[StreamRef, Stream]],
    ) -> Items:
        """Return the items of a batch that names its streams; those that are `declared` are read.

        Raises BadDocument where it is none; Unavailable.
        """
        if len(body) <= HERE_BYTES:
            return bounded(FORMS[form](body, None, way))
        asked = Asked(form, way, body, None, None)
        named: Collection[StreamRef] = self._ask(asked)
        found = {origin: _typed(stream) for origin, stream in declared(named).items()}
        return self._read(asked._replace(declared=found))

    def close(self) -> None:
        """End the process; another one is started when it is needed."""
        self._process.stop()

    def _read(self, asked: Asked) -> Items:
        found: list[Found | Unreadable] = self._ask(asked)
        return [each if isinstance(each, Unreadable) else _item(each) for each in found]

    def _ask(self, asked: Asked) -> list:  # type: ignore[type-arg]
        request = pickle.dumps(asked, pickle.HIGHEST_PROTOCOL)
        with self._turns.turn(self._caller()):
            try:
                answer = self._process.ask(request)
            except TookTooLong as error:
                raise BadDocument("The batch takes too long to read", "", TOO_SLOW) from error
        found = pickle.loads(answer)  # noqa: S301  our own code made it
        if isinstance(found, BadDocument):
            raise found
        if isinstance(found, str):
            raise RuntimeError(found)
        return list(found)


def _typed(stream: Stream) -> Stream:
    """Return what an update of the stream is held against: the code of a composite is long."""
    return Stream(stream.ref, tuple(Channel(each.name, each.type) for each in stream.channels))


def _item(found: Found) -> Item:
    """Return an item that has been read for the stream that it is for."""

    def read(_reader: UpdateReader) -> SensorUpdate:
        if isinstance(found.read, BadDocument):
            raise found.read
        if found.read is None:
            raise RuntimeError("it was not to be read")
        return SensorUpdate(found.origin, *found.read)

    return Item(found.place, found.origin, read)
