"""The attacks of the benchmark are those that were found, and as large as they say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import orjson
import pytest

from benchmarks import attacks
from benchmarks.attacks import brokering, crowding, evaluating, stopping, taking
from benchmarks.attacks.arrivals import Suffered, Waits
from benchmarks.attacks.attack import Attack
from benchmarks.attacks.catalogue import ATTACKS
from benchmarks.attacks.measure import Measured
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object, parse_update
from servioticy.domain.documents.callbacks import check_subscription
from servioticy.domain.records import DeadLetter, UpdateRecord, write
from servioticy.domain.topics import MAX_MESSAGE_BYTES
from servioticy.settings import Settings

FOUND = [*(f"A{n}" for n in range(1, 5)), *(f"B{n}" for n in range(1, 8)), "C1", "C2", "C3", "C4"]
LEFT = ["left-versions", "left-tokens", "left-listings", "left-lines"]
QUICK = Waits(0.01, 0.02, 0.03)


def size(document: dict[str, object]) -> int:
    return len(orjson.dumps(document))


def test_every_attack_that_was_found_is_there() -> None:
    """One that is left out would not be noticed when it succeeds again."""
    brokers = (f"M{n}" for n in range(1, 6))
    loops = (f"D{n}" for n in range(1, 9))
    parsers = (f"P{n}" for n in range(1, 5))
    assert list(ATTACKS) == ["none", "busy", *FOUND, "flood", *brokers, *LEFT, *loops, *parsers]


def test_no_attack_stands_under_another_s_name() -> None:
    assert [name for name, each in ATTACKS.items() if each.id != name] == []


@pytest.mark.parametrize(
    "document",
    [
        stopping.with_outputs(1, 60),
        stopping.with_outputs(200, 31),
        taking.many_programs(2000),
        crowding.slow_composites(),
        crowding.subscribers("another", "s0", 1000),
        evaluating.acting(),
    ],
    ids=["A1", "A3", "B5", "C1", "C2", "D2"],
)
def test_what_the_attacker_creates_is_a_document(document: dict[str, object]) -> None:
    """An attack with a misspelt document would be refused, and seem to be held."""
    parsed = parse_service_object(document, "so", argument_names)

    assert any(each.composite for each in parsed.streams)


def test_what_the_attacker_subscribes_to_is_a_subscription_and_what_it_sends_an_update() -> None:
    """Each as large as it may be, or nearly."""
    for wanted in (evaluating.templates(1), evaluating.hanging(1)):
        assert check_subscription(wanted) == "http"
    update = {"channels": {"v": {"current-value": evaluating.LARGE}}, "lastUpdate": 1}
    assert 900_000 < size(update) < 1_048_576


def test_the_dead_letter_s_update_is_accepted_and_doubles_when_escaped() -> None:
    body = stopping.escaped_body()
    declared = parse_service_object(
        {"streams": {"s": {"channels": {"v": {"type": "string"}}}}}, "so", argument_names
    ).streams[0]

    accepted = parse_update(body, declared)
    record = UpdateRecord("1500000000000" + 32 * "a", "s", 1, msgspec.Raw(accepted.document))
    letter = DeadLetter(0, 1, "deleted", write(record).decode())

    assert len(accepted.document) <= Settings().requests.max_body_bytes
    assert len(write(letter)) > MAX_MESSAGE_BYTES


def test_the_amplified_document_is_small_and_names_much() -> None:
    """12.7 kB worked for 17 seconds."""
    document = taking.amplified(100, "'XX'")
    references = document["aliases"][0]["X"].count("{$")

    assert size(document) < 13_000
    assert references * 2 * 100 == 180_000


def test_the_documents_of_many_programs_are_as_large_as_those_that_were_found() -> None:
    assert 240_000 < size(taking.many_programs(4900)) < 270_000
    assert 95_000 < size(taking.many_programs(2000)) < 110_000


def test_programs_of_two_documents_differ() -> None:
    """A program that was checked before costs nothing."""
    one, two = (orjson.dumps(taking.many_programs(3, first)).decode() for first in (0, 10))

    assert "s=>2" in one
    assert "s=>2" not in two


def measured(suffered: Suffered) -> Measured:
    return Measured(
        suffered,
        peaks={"worker": 99.6},
        got=Counter({"PUT 202": 3}),
        complaints=Counter(),
        updates=7,
        answers=Counter(),
        reopened=0,
        longest_change=0.5,
        used={"api": 1.5, "attacker": 2.25},
        late=(0.0, 0.0125),
    )


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (1, 1)])
def test_the_command_fails_where_something_was_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lost: int, code: int
) -> None:
    """So that it can stand in a script."""
    taken = []

    def measures(
        _settings: Settings, attack: Attack, seconds: float, _logs: Path | None, *, yields: bool
    ) -> Measured:
        taken.append((attack.id, seconds, yields))
        return measured(Suffered(QUICK, QUICK, QUICK, lost, 0, 1.0))

    monkeypatch.setattr(attacks, "measure", measures)

    options = ["--only", "A1", "C2", "--seconds", "3", "--elsewhere"]
    assert attacks.run(Settings(), options) == code
    assert taken == [("A1", 3.0, True), ("C2", 3.0, True)]
    out = capsys.readouterr().out
    waits = "10 20 30 | 10 20 30 | 10 20 30 | 1.0"
    row = f"A1 | {waits} | {lost} of 7 | 0 | 0.5 s | 1.0 s | worker 100 | "
    assert f"{row}api 1.5, attacker 2.2 | 0 12 | PUT 202 3" in out.splitlines()
    assert ("not held: A1 C2" in out) == bool(code)


def test_what_mqtt_attackers_send_is_mqtt() -> None:
    """Malformed it would be cut at once, and seem to be held."""
    from broker.mqtt_packets import read_connect, read_publish

    sent = brokering.hello("crowd-1", "a token")
    assert read_connect(sent[2:]).password == "a token"
    asked = brokering.request("a token", 7)
    head = 3 if asked[1] & 128 else 2
    assert read_publish(2, asked[head:], 4).topic == "a token/from"
