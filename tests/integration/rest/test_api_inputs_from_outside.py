"""What a tenant is told of streams of other tenants that its composites read."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from changing_documents import composite

from servioticy.domain.model import StreamRef
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Activate, BeginInputs, Effect, EndInputs
from servioticy.ports.put_off import PutOff


class Reader:
    """Bob's Service Object over alice's stream `a`, as the pipeline would know it."""

    def __init__(self, served: Served, alice: Caller, bob: Caller) -> None:
        self.bob = bob
        self.source = StreamRef(alice.create({**SIMPLE, "public": True}), "a")
        self.id = bob.create(composite("g", g=([self.source.service_object], "a")))
        served.store()
        self._store = served.platform.store
        self.provider = served.platform.stream(*self.source).tenant
        self.tenant = served.platform.stream(self.id, "out").tenant
        found = self._store.owner(self.id)
        assert found is not None
        self.partition = found[1]
        self.effect(Activate(self.id, 1, 100, (self.source,), ()))

    def effect(self, effect: Effect | None = None, **more: Any) -> None:
        """A control record of the reader's partition has this effect."""
        offset = self._store.begin(self.partition).next_offset
        self._store.store(Batch(self.partition, offset, offset + 1, offset, effect=effect, **more))
        self._store.end(self.partition)

    def begin(self, offset: int, **more: Any) -> None:
        """A Begin comes from alice's partition."""
        streams = ((self.source, None, None),)
        self.effect(
            BeginInputs(self.tenant, (self.id,), self.provider, streams, (0, offset), **more)
        )

    def end(self, offset: int, **more: Any) -> None:
        """An End comes from alice's partition."""
        place = 0, offset
        self.effect(EndInputs(self.tenant, (self.id,), (self.source,), place, **more))

    def told(self) -> Any:
        """What `status` tells of what is read from outside."""
        answer = self.bob.ask("GET", f"/{self.id}/streams/out/status").get_json()
        return answer.get("fromOutside")

    def state(self) -> Any:
        """What it tells of the only input."""
        ((found,), count) = self.told()["inputs"], self.told()["count"]
        assert (found["stream"], found["as"], count) == (str(self.source), "g", 1)
        return found["state"]


@pytest.fixture
def reader(served: Served, alice: Caller, bob: Caller) -> Reader:
    return Reader(served, alice, bob)


def test_status_tells_of_each_input_whether_it_is_open(reader: Reader) -> None:
    found = [reader.state()]
    for step, more in (
        (reader.begin, {"offset": 3}),
        (reader.begin, {"offset": 5, "moved_from": 7}),
        (reader.end, {"offset": 5, "arrived": True}),
        (reader.end, {"offset": 9}),
    ):
        step(**more)
        found.append(reader.state())

    assert found == ["beginning", "open", "moving", "open", "ended"]


def test_since_when_it_is_open_or_ended_is_told(reader: Reader) -> None:
    def since() -> int:
        (found,) = reader.told()["inputs"]
        return int(found["since"])

    named = since()
    reader.begin(3)
    begun = since()
    reader.begin(5)
    begun_again = since()
    reader.end(9)
    ended = since()

    assert named < begun == begun_again < ended


def test_what_waits_of_one_s_own_is_counted(reader: Reader) -> None:
    records = [PutOff(n, reader.tenant, reader.id, b"{}", reader.tenant, n < 3) for n in range(4)]
    others = [PutOff(9, reader.provider, reader.id, b"{}", reader.provider)]
    reader.effect(put_off=[*records, *others])

    told = reader.told()

    assert (told["waiting"], told["held"]) == (1, 3)


def test_what_reads_only_its_own_tenant_is_told_of_nothing(reader: Reader) -> None:
    source = reader.bob.create(SIMPLE)
    own = reader.bob.create(composite("g", g=([source], "a")))

    assert "fromOutside" not in reader.bob.ask("GET", f"/{own}/streams/out/status").get_json()
    assert "fromOutside" not in reader.bob.ask("GET", f"/{source}/streams/a/status").get_json()


def test_who_reads_others_is_warned_of_what_ends_at_a_border(alice: Caller, bob: Caller) -> None:
    source = alice.create({**SIMPLE, "public": True})
    answer = bob.ask("POST", "/", json=composite("g", g=([source], "a")))

    (warning,) = answer.get_json()["warnings"]
    assert f"({source}/a) comes over a border" in warning
    assert "warnings" not in alice.ask("POST", "/", json=composite("g", g=([source], "a"))).json
