"""The way into the log: counted together, in order, with a reason for each that does not come."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from unittest import mock

import msgspec
import pytest
from support.delivery_stores import Catalog
from support.played_ingest import AWAY, DOCUMENT, Came, PlayedIngest, StillRoutes

from ingest import ingest as module
from ingest.batches import ITEM_BYTES
from ingest.updates import Fault, Offered, Outcome, Sent, Taken, Unread
from servioticy.domain.documents import BadDocument
from servioticy.domain.model import StreamRef
from servioticy.domain.placement import Route
from servioticy.errors import Rejected, Unavailable
from servioticy.refusals import Denied, NoStream, OverQuota, TooLarge

FLOW, HEAT = StreamRef("pump", "flow"), StreamRef("pump", "heat")
FAN = StreamRef("fan", "flow")
TWO = {"streams": dict.fromkeys(("flow", "heat"), DOCUMENT["streams"]["flow"])}
ALICE, BOB = "token-1", "token-2"


def a_body(at: int) -> bytes:
    return b'{"channels":{"v":{"current-value":1}},"lastUpdate":%d}' % at


def a_part(*updates: tuple[StreamRef, bytes], token: str = ALICE) -> Sent:
    return Sent(token, [Offered(*each) for each in updates])


def taken(way: PlayedIngest, *parts: Sent, patient: bool = True) -> list[Outcome]:
    """What became of each update, of one part after the other."""
    return [each for part in way.ingest.take(parts, patient=patient) for each in part]


def kinds(outcomes: list[Outcome]) -> list[type]:
    return [type(each) for each in outcomes]


def test_who_is_not_patient_gets_what_is_known_and_one_reading_is_enough() -> None:
    way = PlayedIngest(Catalog())
    part = a_part((FLOW, a_body(1)))

    assert kinds(taken(way, part, patient=False)) == [Unread]
    assert way.documents.read == [] and way.log.came == []
    assert kinds(taken(way, part)) == [Taken]
    assert kinds(taken(way, part, patient=False)) == [Taken]
    assert len(way.documents.read) == 1


def test_updates_of_one_stream_keep_their_order_though_its_document_is_read_meanwhile() -> None:
    """Else the first would come behind the second, and compute nothing."""
    way = PlayedIngest(Catalog())
    known = way.definitions.known
    asked: list[Any] = []

    def known_from_the_second_on(service_object: str, version: int) -> Any:
        asked.append(service_object)
        if len(asked) > 1:
            way.definitions.of(service_object, version, way.documents.document_of(mock.Mock()))
        return known(service_object, version)

    with mock.patch.object(way.definitions, "known", known_from_the_second_on):
        found = taken(way, a_part((FLOW, a_body(1)), (FLOW, a_body(2))), patient=False)

    assert kinds(found) == [Unread, Unread]


def test_what_one_sender_sends_counts_together_or_not_at_all() -> None:
    """Of a part that came half, the rest would come behind what is sent next."""
    size = 3 * (len(a_body(1)) + ITEM_BYTES)
    part = a_part(*((FLOW, a_body(at)) for at in (1, 2, 3)))
    way = PlayedIngest(Catalog(), update_bytes=size + 1)
    assert kinds(taken(way, part)) == [Taken] * 3
    assert kinds(taken(way, part, a_part((FLOW, a_body(4)), token=BOB))) == [
        *[OverQuota] * 3,
        Taken,
    ]

    assert [each.body for each in way.log.came] == [a_body(at) for at in (1, 2, 3, 4)]


def test_one_update_alone_counts_its_bytes() -> None:
    way = PlayedIngest(Catalog(), update_bytes=len(a_body(1)))

    assert kinds(taken(way, a_part((FLOW, a_body(1))))) == [Taken]


def test_what_does_not_come_is_not_counted_either() -> None:
    """Neither what is refused, nor what the log has not got."""
    way = PlayedIngest(Catalog(), updates=2)
    way.log.faults = [AWAY]
    part = a_part((FLOW, b"{}"), (FLOW, a_body(1)), (FLOW, a_body(2)))

    assert kinds(taken(way, part)) == [BadDocument, Unavailable, Unavailable]
    assert kinds(taken(way, part)) == [BadDocument, Taken, Taken]
    assert kinds(taken(way, part)) == [OverQuota] * 3


def test_each_has_its_own_reason_and_takes_nothing_from_the_others() -> None:
    way = PlayedIngest(Catalog())
    large = b'{"more":"%b"}' % (b"x" * 2_000_000)
    found = taken(
        way,
        a_part((FLOW, a_body(1)), (HEAT, a_body(2)), (FLOW, large), (FLOW, a_body(3))),
        a_part((FLOW, a_body(4)), token="nobody's"),
    )

    assert kinds(found) == [Taken, NoStream, TooLarge, Taken, Denied]
    assert way.log.came == [Came(FLOW, a_body(1)), Came(FLOW, a_body(3))]
    assert way.log.appended == 1


def test_a_bug_that_one_update_meets_is_that_ones_alone() -> None:
    way = PlayedIngest(Catalog())
    parse = module.UpdateReader.parse

    def parsed(reader: Any, body: bytes | msgspec.Raw) -> Any:
        return 1 / 0 if body == a_body(2) else parse(reader, body)

    with mock.patch.object(module.UpdateReader, "parse", parsed):
        found = taken(way, a_part(*((FLOW, a_body(at)) for at in (1, 2, 3))))

    assert kinds(found) == [Taken, Fault, Taken]


def test_a_record_that_can_never_be_in_the_log_holds_no_other_up() -> None:
    way = PlayedIngest(Catalog())
    append_all = way.log.append_all

    def appended(records: Any) -> None:
        if any(bytes(record.update) == a_body(2) for _, record in records):
            raise Rejected("too large")
        append_all(records)

    with mock.patch.object(way.log, "append_all", appended):
        found = taken(way, a_part((FLOW, a_body(1)), (FLOW, a_body(2))), a_part((FLOW, a_body(3))))
        alone = taken(way, a_part((FLOW, a_body(2))))

    assert kinds([*found, *alone]) == [Taken, Rejected, Taken, Rejected]


def test_where_who_asks_cannot_be_asked_everybody_is_told() -> None:
    way = PlayedIngest(Catalog())
    with mock.patch.object(Catalog, "addresses", side_effect=Unavailable("Postgres is away")):
        found = taken(way, a_part((FLOW, a_body(1)), (FLOW, a_body(2))), a_part((FLOW, a_body(3))))

    assert kinds(found) == [Unavailable] * 3


def test_a_document_that_cannot_be_read_now_is_waited_for_once_in_a_call() -> None:
    """Each of a hundred updates would wait for its seconds, else."""
    way = PlayedIngest(Catalog())
    way.documents.document = TWO
    away = Unavailable("too many large documents are being read")
    with mock.patch.object(way.definitions, "stream", side_effect=away) as read:
        found = taken(way, a_part(*((FLOW, a_body(at)) for at in range(100))))

    assert kinds(found) == [Unavailable] * 100
    assert read.call_count == 1


class OneMoves(StillRoutes):
    """The fan leaves partition 0, which became known only after all were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = 0

    def is_known(self, _asked: float) -> bool:
        return False

    def now(self, service_objects: Collection[str]) -> Mapping[str, Route]:
        return {each: Route(0, each == "fan") for each in service_objects}

    def settled(self, service_objects: Collection[str]) -> Mapping[str, Route]:
        self.waited += "fan" in service_objects
        return {each: Route(3 * (each == "fan"), False) for each in service_objects}


def known(way: PlayedIngest, *parts: Sent, routes: OneMoves) -> None:
    """Their documents have been read, for which they had to be sent once."""
    assert kinds(taken(way, *parts)) == [Taken] * len(parts)
    way.log.forget()
    routes.waited = 0


def test_nobody_waits_for_what_another_sends_to_what_begins_to_move() -> None:
    way = PlayedIngest(Catalog(), routes=(routes := OneMoves()), updates=4)
    moves, stays = a_part((FAN, a_body(1))), a_part((FLOW, a_body(2)))
    known(way, moves, stays, routes=routes)

    assert kinds(taken(way, moves, stays, patient=False)) == [Unread, Taken]
    assert way.log.came == [Came(FLOW, a_body(2))] and routes.waited == 0
    assert kinds(taken(way, moves)) == [Taken], "the first time it was not counted"
    assert way.log.came[1:] == [Came(FAN, a_body(1))] and routes.waited == 1


def test_where_it_cannot_be_asked_whether_something_moves_nothing_is_promised() -> None:
    way = PlayedIngest(Catalog(), routes=(routes := OneMoves()))
    parts = a_part((FAN, a_body(1))), a_part((FLOW, a_body(2)))
    known(way, *parts, routes=routes)
    with mock.patch.object(routes, "now", side_effect=Unavailable("Postgres is away")):
        found = taken(way, *parts, patient=False)

    assert kinds(found) == [Unavailable] * 2 and way.log.came == []


@pytest.mark.parametrize("parts", [[], [a_part()], [a_part(), a_part((FLOW, b""))]])
def test_nothing_is_nothing(parts: list[Sent]) -> None:
    way = PlayedIngest(Catalog())

    found = way.ingest.take(parts, patient=True)

    assert [len(each) for each in found] == [len(each.updates) for each in parts]
    assert way.log.appended == 0
