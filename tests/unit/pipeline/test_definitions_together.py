"""Definitions of a fleet follow each other in the log: they take effect together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from memory import MemoryPlatform
from oracle import Object
from put_off_runs import Runs, Whims, append
from python_evaluator import PythonEvaluator
from serial_order import define

from pipeline.batching import defining
from pipeline.changes.control import Control
from servioticy.domain.records import DefinitionRecord
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Activate, ActivateAll, Effect

MANY = 6


class World:
    """Devices of two tenants, a task, and what it has stored."""

    def __init__(self) -> None:
        self.platform = MemoryPlatform()
        self.tenants = [
            self.platform.tenants.tenant_of(self.platform.tenants.create_tenant(n)) or 0
            for n in "ab"
        ]
        self.shares = Whims([])
        self.shares.contested = False
        self.runs = Runs(self.platform, {"javascript": PythonEvaluator(None)}, self.shares, {})  # type: ignore[arg-type]
        self.batches: list[Batch] = []
        self._taken = 0
        store = self.runs.task._store
        self._stored = store.store
        store.store = self._note  # type: ignore[method-assign]

    def _note(self, batch: Batch) -> Any:
        self.batches.append(batch)
        return self._stored(batch)

    def define(self, *ids: str, tenant: int = 0, groups: Any = None) -> None:
        for id_ in ids:
            thing = Object(id_, ("d0",), (), groups or {})
            define(thing, {}, self.tenants[tenant], self.platform)

    def take(self) -> Sequence[Effect]:
        """Let it take all that has come; what that has brought about."""
        before = len(self.batches)
        end = len(self.platform.state.log[0])
        self.runs.take(self._taken, end)
        self._taken = end
        assert self.platform.state.progress[0].next_offset == end
        return [each.effect for each in self.batches[before:] if each.effect is not None]

    def in_force(self) -> dict[str, int | None]:
        objects = self.platform.state.service_objects
        return {id_: each.active_version for id_, each in objects.items()}


@pytest.fixture
def world() -> World:
    return World()


IDS = tuple(f"so{number}" for number in range(MANY))


def test_definitions_that_follow_each_other_are_one_transaction(world: World) -> None:
    world.define(*IDS)

    (effect,) = world.take()

    assert isinstance(effect, ActivateAll)
    assert [each.service_object for each in effect.changes] == list(IDS)
    assert world.in_force() == dict.fromkeys(IDS, 1)


def test_updates_behind_them_are_computed_by_them_and_those_before_by_what_was(
    world: World,
) -> None:
    """What comes between two definitions ends what takes effect together."""
    world.define(*IDS[:2])
    append(world.platform, [(("so0", "d0"), 1, 1), (("so4", "d0"), 1, 1)])
    world.define(*IDS[2:])
    append(world.platform, [(("so5", "d0"), 1, 1)])

    effects = world.take()

    assert [len(each.changes) for each in effects if isinstance(each, ActivateAll)] == [2, 4]
    stored = [each.offset for batch in world.batches for each in batch.updates]
    assert stored == [2, 8]
    assert len(world.platform.state.dead_letters) == 1


def test_of_devices_that_are_known_a_later_version_takes_effect_so_too(world: World) -> None:
    world.define(*IDS)
    append(world.platform, [((id_, "d0"), 1, 1) for id_ in IDS])
    world.take()
    state = world.platform.state
    for number, id_ in enumerate(IDS):
        state.definitions[id_, 2] = state.definitions[id_, 1].replace(b"d0", b"d1")
        state.streams[id_, "d1"] = 100 + number
        world.platform.log.append(0, DefinitionRecord(id_, 2, 100 + number))
    append(world.platform, [(("so3", "d1"), 2, 2)])

    (effect,) = world.take()

    assert isinstance(effect, ActivateAll)
    assert world.in_force() == dict.fromkeys(IDS, 2)
    assert [each.stream_id for batch in world.batches for each in batch.updates][-1] == 103


def test_what_reads_others_or_tells_others_takes_effect_by_itself(world: World) -> None:
    world.define("so0", "so1")
    world.define("reader", groups={"g": (("so0", "d0"),)})
    world.define("so2", "so3")

    effects = world.take()

    assert [type(each) for each in effects] == [ActivateAll, Activate, ActivateAll]
    assert set(world.in_force().values()) == {1}


def test_where_it_is_told_to_others_who_may_read_it_does_so_by_itself(world: World) -> None:
    """Those who read it from outside are told, each at the place of its record."""
    world.define(*IDS)
    append(world.platform, [((id_, "d0"), 1, 1) for id_ in IDS])
    world.take()
    state = world.platform.state
    for number, id_ in enumerate(IDS):
        body = json.loads(state.definitions[id_, 1])
        if number == 3:
            body["public"] = "false" if body.get("public") == "true" else "true"
        state.definitions[id_, 2] = json.dumps(body).encode()
        world.platform.log.append(0, DefinitionRecord(id_, 2, 100 + number))

    effects = world.take()

    assert [type(each) for each in effects] == [ActivateAll, Activate, ActivateAll]


def test_a_tenant_that_is_put_off_waits_with_its_definitions(world: World) -> None:
    world.define(*IDS[:2])
    world.define(*IDS[2:4], tenant=1)
    world.define(*IDS[4:])
    world.shares.contested = True
    world.shares.always = {world.tenants[1]}

    effects = world.take()

    assert IDS[2] not in str(effects)
    assert [type(each) for each in effects] == [ActivateAll, ActivateAll]
    assert len(world.platform.state.put_off) == 2


def test_one_twice_is_not_of_one_transaction(world: World) -> None:
    """The later one is, as it follows the other."""
    world.define(*IDS)
    state = world.platform.state
    state.definitions["so0", 2] = state.definitions["so0", 1]
    world.platform.log.append(0, DefinitionRecord("so0", 2, 100))

    effects = world.take()

    assert [type(each) for each in effects] == [ActivateAll, Activate]
    assert world.in_force()["so0"] == 2


def test_what_is_changed_twice_is_looked_at_as_each_change_makes_it(world: World) -> None:
    """The second one reads nobody any more; the first does, and that has to be noted."""
    world.define("so0", "so1")
    world.define("reader", groups={"g": (("so0", "d0"),)})
    plain = json.loads(world.platform.state.definitions["reader", 1]) | {"groups": {}}
    world.platform.state.definitions["reader", 2] = json.dumps(plain).encode()
    world.platform.log.append(0, DefinitionRecord("reader", 2, 100))

    effects = world.take()

    assert [type(each) for each in effects] == [ActivateAll, Activate, Activate]
    assert world.in_force()["reader"] == 2


def test_each_tenant_pays_for_what_was_looked_at_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for what does not take effect with the others: else they would."""
    charged: list[dict[int, float]] = []
    monkeypatch.setattr(world.shares, "charge", charged.append)
    world.define("so0")
    world.define("reader", tenant=1, groups={"g": (("so1", "d0"),)})

    world.take()

    first, second = world.tenants
    assert charged[0].keys() == {first, second}
    assert charged[0][first] == pytest.approx(charged[0][second])


def test_what_meets_a_bug_is_found_one_by_one(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is one record that becomes a dead letter, not all that came with it."""
    world.define(*IDS)
    change = Control._change

    def broken(control: Control, record: Any, offset: int) -> Any:
        if record.service_object == "so2":
            raise ZeroDivisionError
        return change(control, record, offset)

    def together(*_all: object) -> list[int]:
        raise ZeroDivisionError

    monkeypatch.setattr(Control, "_change", broken)
    monkeypatch.setattr(Control, "apply_together", together)
    effects = world.take()

    assert len(effects) == MANY - 1
    assert "definitions_failed" in caplog.messages
    assert len(world.platform.state.dead_letters) == 1


def test_no_more_is_looked_at_together_than_there_is_room_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document may have a megabyte."""
    monkeypatch.setattr(defining, "DOCUMENTS_BYTES", 1)
    world.define(*IDS)

    effects = world.take()

    assert [type(each) for each in effects] == [Activate] * MANY
    assert set(world.in_force().values()) == {1}
