"""The way into the log: one question, one check each, one wait for the broker, however many come.

What callers share is here: who may send, the document in force, quotas, what the log takes, and
when a promise may be made. How clients are told is theirs. Threads may share it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ingest import access
from ingest.accepted import accepted
from ingest.accepting import Accepting
from ingest.batch_hints import hints
from ingest.batches import ITEM_BYTES, Sorted, Target, sort
from ingest.pacing import Pacing
from ingest.parsing.definitions import Definitions
from ingest.quotas import SendersQuotas
from ingest.routes import Routes
from ingest.updates import Fault, Offered, Outcome, Sent, Taken, Unread, weight
from servioticy.domain.access import Right
from servioticy.domain.batches.items import Item, Unreadable
from servioticy.domain.documents.codes import TOO_MUCH
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import Stream, StreamRef
from servioticy.domain.placement import Route
from servioticy.domain.records import LogRecord, UpdateRecord
from servioticy.errors import Rejected, ServioticyError
from servioticy.ports.addresses import Address, Addresses, Lookup
from servioticy.ports.log import BatchLog
from servioticy.refusals import NoStream, OverQuota, TooLarge, within

log = logging.getLogger("ingest")


Addressed: TypeAlias = tuple[Address, UpdateRecord]
"""An update, and where it was to go when that was asked."""


class _Ready(NamedTuple):
    """An update that may come into the log."""

    record: Addressed
    taken: Taken


class _Part:
    """What becomes of what one sender sent."""

    __slots__ = ("bytes", "is_large", "outcomes", "places", "ready", "tenant")

    def __init__(self, *, is_large: bool) -> None:
        self.is_large = is_large
        """Whether it waits for its turn."""
        self.outcomes: list[Outcome] = []
        self.ready: dict[int, _Ready] = {}
        """by their place among the outcomes"""
        self.bytes = 0
        """of those that are ready, as they count"""
        self.tenant = 0
        """Whose they are: sending is the owner's right alone."""
        self.places: dict[int, Address] = {}
        """A stream of them in each partition that they are for."""

    def addresses(self) -> list[Address]:
        """Return where each of those that are ready goes, as far as is known."""
        return [each.record[0] for each in self.ready.values()]

    def moved(self, routes: Mapping[str, Route]) -> bool:
        """Go by these routes from now on; return whether something is leaving."""
        for place, each in self.ready.items():
            address, record = each.record
            route = routes.get(record.service_object)
            if route is not None:
                address = address._replace(partition=route.partition, leaves=route.leaves)
                self.ready[place] = each._replace(record=(address, record))
        return any(address.leaves for address in self.addresses())

    def fail(self, why: ServioticyError) -> None:
        """None of those that are ready comes."""
        for place in self.ready:
            self.outcomes[place] = why
        self.ready.clear()


class Ingest:
    """Takes updates, or says why not."""

    def __init__(
        self,
        addresses: Addresses,
        log: BatchLog,
        definitions: Definitions,
        quotas: SendersQuotas,
        accepting: Accepting,
        routes: Routes,
        pacing: Pacing | None = None,
    ) -> None:
        """Without `pacing` what is large waits for nothing."""
        self._addresses = addresses
        self._log = log
        self._definitions = definitions
        self._quotas = quotas
        self._accepting = accepting
        self._routes = routes
        self._pacing = pacing or Pacing()

    def take(self, sent: Sequence[Sent], *, patient: bool = False) -> list[list[Outcome]]:
        """Take what came together; return, for each sender, what became of each of its updates.

        What is not read yet, or moves, and all of a sender who sends something large, is Unread;
        who is `patient` has it read meanwhile, and waits for its turn, which may take seconds.
        What one sender sends counts for its quotas together, or not at all. What fails for the
        moment (Unavailable) may be in the log: sent again it overwrites itself.
        """
        asked = self._routes.clock()
        try:
            found = self._found(sent)
        except ServioticyError as error:
            return [[error] * len(each.updates) for each in sent]
        documents = _Documents(self._definitions, patient=patient)
        parts = [self._checked(each, found, documents) for each in sent]
        small = [each for each in parts if each.ready and not each.is_large]
        if small and not patient and not self._routes.is_known(asked):
            asked = self._routes.clock()
            small = self._staying(small)
        self._append(small, asked)
        for part in parts:
            if part.ready and part.is_large:
                self._append_in_turn(part, asked)
        return [each.outcomes for each in parts]

    def take_one(self, address: Address, offered: Offered) -> Taken:
        """Take an update of somebody who may send it, reading its document where that is needed.

        Raises what says why not.
        """
        declared = self._definitions.stream(address, offered.stream.stream)
        if declared is None:
            raise NoStream
        ready = self._ready(address, offered, UpdateReader(declared))
        size = len(ready.taken.document)
        within(self._accepting.count((address,), 1, size))
        if not offered.is_large:
            self._pacing.saw((address.partition,), address.tenant)
            self._log.append(*self._routed((ready.record,))[0])
            return ready.taken
        with self._pacing.turn((address,)) as turn:
            turn.appended = weight(1, size)
            self._log.append(*self._routed((ready.record,))[0])
        return ready.taken

    def take_batch(
        self,
        items: Sequence[Item | Unreadable],
        addresses: Mapping[StreamRef, Address],
        trace: str = "",
    ) -> Sorted:
        """Take what is right of a batch, in its order, for streams that its sender may send to.

        All of it has the request's trace context.

        A long one comes into the log in parts, which wait for what is worked on. Raises OverQuota;
        then nothing of it is taken. Raises Unavailable; then its first parts may be.
        """
        targets = {
            origin: Target(addresses[origin], UpdateReader(stream))
            for origin, stream in self.declared(addresses).items()
        }
        found = sort(items, targets, self._accepting.fault)
        places = {each.address.partition: each.address for each in targets.values()}
        number = len(found.accepted)
        size = found.bytes + ITEM_BYTES * number
        within(self._accepting.count(places.values(), number, size))
        left = deque(found.accepted)
        while left:
            with self._pacing.turn(places.values()) as turn:
                part = []
                while left and turn.appended < turn.most:
                    each = left.popleft()
                    turn.appended += each.weight
                    part.append(each.record(trace))
                self._log.append_all(self._routed(part))
        found.hints = hints(found.accepted, self._accepting.hints)
        return found

    def declared(self, addresses: Mapping[StreamRef, Address]) -> dict[StreamRef, Stream]:
        """Return those streams that the documents in force declare. Raises Unavailable."""
        found = {
            origin: self._definitions.stream(address, origin.stream)
            for origin, address in addresses.items()
        }
        return {origin: stream for origin, stream in found.items() if stream is not None}

    def _found(self, sent: Sequence[Sent]) -> dict[Lookup, Address | None]:
        """Ask who sends, and what they name: once for all. Raises Unavailable."""
        lookups = list(
            dict.fromkeys(
                Lookup(each.token, *offered.stream) for each in sent for offered in each.updates
            )
        )
        if not lookups:
            return {}
        found = self._addresses.addresses(lookups)
        self._quotas.learn({each.caller for each in found if each is not None})
        return dict(zip(lookups, found, strict=True))

    def _checked(
        self, sent: Sent, found: Mapping[Lookup, Address | None], documents: _Documents
    ) -> _Part:
        part = _Part(is_large=sent.is_large)
        for place, offered in enumerate(sent.updates):
            asked = Lookup(sent.token, *offered.stream)
            try:
                address = access.known(found[asked])
                access.check(address, asked, Right.SEND)
                exceeded = self._quotas.beyond(address.tenant, len(offered.body))
                if exceeded is not None:  # before anything is read of what cannot come
                    raise OverQuota(exceeded, address.tenant)
                if (part.is_large or address.leaves) and not documents.patient:
                    raise Unread
                ready = self._ready(address, offered, documents.declared(address, asked))
            except ServioticyError as error:
                part.outcomes.append(error)
            except Exception as error:  # noqa: BLE001  a bug that one meets is no fault of the others
                part.outcomes.append(_fault(error))
            else:
                part.outcomes.append(ready.taken)
                part.ready[place] = ready
                part.bytes += len(ready.taken.document)
                part.tenant = address.tenant
                part.places[address.partition] = address
        if part.ready:
            self._count(part)
        return part

    def _count(self, part: _Part) -> None:
        number = len(part.ready)
        if number > 1:
            part.bytes += ITEM_BYTES * number
        try:
            exceeded = self._accepting.count(part.places.values(), number, part.bytes)
        except ServioticyError as error:
            part.fail(error)
        else:
            if exceeded is not None:
                part.fail(OverQuota(exceeded, part.tenant))

    def _ready(self, address: Address, offered: Offered, reader: UpdateReader) -> _Ready:
        """Check an update against its document. Raises what is wrong with it."""
        self._accepting.check_body(offered.body)
        update = reader.parse(offered.body)
        fault = self._accepting.fault(update)
        if fault is not None:
            raise TooLarge if fault.code == TOO_MUCH else fault
        told = self._accepting.hints.of(address.stream, update, reader.stream)
        record = accepted(offered.stream, update.timestamp, update.document, offered.trace)
        return _Ready((address, record), Taken(address, update.document, told))

    def _staying(self, parts: Sequence[_Part]) -> list[_Part]:
        """Return the parts of which nothing has begun to move, with the places they have now.

        The others are Unread: who comes with them does not wait for them.
        """
        names = {each.service_object or "" for part in parts for each in part.addresses()}
        try:
            routes = self._routes.now(names)
        except ServioticyError as error:
            self._give_back(parts, error)
            return []
        moving = [part for part in parts if part.moved(routes)]
        self._give_back(moving, Unread())
        return [part for part in parts if part.ready]

    def _append(self, parts: Sequence[_Part], asked: float) -> None:
        """Append all that is ready, and wait for it once. Addresses were `asked` for then."""
        ready = [each.record for part in parts for each in part.ready.values()]
        if not ready:
            return
        for part in parts:
            self._pacing.saw(part.places, part.tenant)
        try:
            self._log.append_all(self._routed(ready, asked))
        except Rejected as error:
            if len(ready) == 1:
                self._give_back(parts, error)
            else:  # none of them is there: one is too large, and only that one has to go
                for part in parts:
                    self._append_each(part)
        except ServioticyError as error:
            self._give_back(parts, error)
        except Exception as error:  # noqa: BLE001  nothing is promised, whatever it was
            self._give_back(parts, _fault(error))

    def _routed(
        self, records: Sequence[Addressed], asked: float = float("-inf")
    ) -> list[tuple[int, LogRecord]]:
        """Return them, each for the partition where it has to be just now; wait for what moves."""
        if self._routes.is_known(asked) and not any(address.leaves for address, _ in records):
            return [(address.partition, each) for address, each in records]
        known = {each.service_object: address.partition for address, each in records}
        settled = self._routes.settled(known)
        known |= {id_: route.partition for id_, route in settled.items()}
        return [(known[each.service_object], each) for _, each in records]

    def _append_in_turn(self, part: _Part, asked: float) -> None:
        """Append what of it is ready when the tenant's turn has come."""
        try:
            with self._pacing.turn(part.places.values()) as turn:
                turn.appended = weight(len(part.ready), part.bytes)
                self._append([part], asked)
        except ServioticyError as error:
            self._give_back([part], error)

    def _append_each(self, part: _Part) -> None:
        for place, each in part.ready.items():
            try:
                self._log.append(*self._routed((each.record,))[0])
            except ServioticyError as error:
                part.outcomes[place] = error

    def _give_back(self, parts: Sequence[_Part], why: ServioticyError) -> None:
        for part in parts:
            self._accepting.give_back(part.tenant, len(part.ready), part.bytes)
            part.fail(why)


class _Documents:
    """What one call knows of documents: all updates of a stream have one answer, and its order."""

    def __init__(self, definitions: Definitions, *, patient: bool) -> None:
        self._definitions = definitions
        self.patient = patient
        """Whether it may take seconds."""
        self._known: dict[tuple[str | None, int, str | None], UpdateReader | ServioticyError] = {}

    def declared(self, address: Address, asked: Lookup) -> UpdateReader:
        """Return the stream as it is declared. Raises NoStream, Unread, Unavailable."""
        key = address.service_object, address.version, asked.stream
        found = self._known.get(key)
        if found is None:
            try:
                found = self._looked_up(address, asked.stream or "")
            except ServioticyError as error:
                found = error
            self._known[key] = found
        if isinstance(found, UpdateReader):
            return found
        raise found.with_traceback(None)

    def _looked_up(self, address: Address, name: str) -> UpdateReader:
        if address.stream_id is None:
            raise NoStream
        if self.patient:
            declared = self._definitions.stream(address, name)
        else:
            known = self._definitions.known(address.service_object or "", address.version)
            if known is None:
                raise Unread
            declared = known.streams.get(name)
        if declared is None:
            raise NoStream
        return UpdateReader(declared)


def _fault(error: Exception) -> Fault:
    log.error("update_failed", exc_info=error)
    return Fault(repr(error))
