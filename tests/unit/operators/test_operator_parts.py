"""The parts of the node manager that need no process: room, places, back-off, manifests."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from operators import manifest
from operators.backoff import Backoff
from operators.errors import Misbehaved, NotAnOperator
from operators.places import SLICE_SECONDS, Holder, Waiting, giving_way, next_one
from operators.room import Room
from operators.wire import HEAD, MAX_FRAME_BYTES, Reader
from servioticy.ports.programs import Program


def test_back_off_grows_by_a_step_and_ends_in_waiting() -> None:
    """As in the paper's algorithm 1, but for its end: who is idle takes no processor."""
    backoff = Backoff(0.5, 3)

    assert [backoff.seconds() for _ in range(5)] == [0.5, 1.0, 1.5, None, None]
    backoff.worked()
    assert backoff.seconds() == 0.5


def test_a_tenant_has_as_much_room_as_is_left_to_others() -> None:
    """One alone half of it; what it gives back is there again."""
    room = Room(100)

    assert room.take(1, 50)
    assert not room.take(1, 1)
    assert room.take(2, 25)
    assert not room.take(2, 1)
    assert room.take(3, 12)
    room.give_back(1, 50)
    assert room.take(3, 20)
    room.give_back(2, 25)
    room.give_back(3, 32)
    assert room.taken == 0


def holder(tenant: int, since: float, idle: bool = False, leaving: bool = False) -> Holder:
    """Return a program with a place."""
    return Holder(Program(tenant, f"{since}", 1), since, idle, leaving)


def waiting(tenant: int, since: float = 0.0) -> Waiting:
    """Return a program without one."""
    return Waiting(Program(tenant, f"{since}", 1), since)


def test_the_next_place_is_for_the_tenant_with_fewest() -> None:
    """Whoever came first among those; nobody has more than is left to the others."""
    holders = [holder(1, 0), holder(2, 0), holder(2, 1)]

    assert next_one(holders, [waiting(2), waiting(1, 5), waiting(1, 4)], 6) == waiting(1, 4)[0]
    assert next_one(holders, [waiting(2)], 6) == waiting(2)[0]
    assert next_one(holders, [waiting(2)], 5) is None
    assert next_one(holders, [waiting(3)], 3) is None


@pytest.mark.parametrize(("tenants", "places"), [(1, [4]), (2, [4, 2]), (3, [4, 2, 1])])
def test_however_many_a_tenant_asks_for_some_are_left(tenants: int, places: list[int]) -> None:
    """Two that never answer do not have all of eight places, nor do three."""
    holders: list[Holder] = []
    for tenant in range(tenants):
        for since in range(8):
            if next_one(holders, [waiting(tenant)], 8):
                holders.append(holder(tenant, since))

    assert [Counter(each.program.tenant for each in holders)[each] for each in range(tenants)] == (
        places
    )
    assert next_one(holders, [waiting(99)], 8) == waiting(99)[0]


def test_idle_programs_give_way_at_once_and_others_after_their_time() -> None:
    """Of the tenant that has most places, who has had it longest."""
    late = SLICE_SECONDS
    busy = [holder(1, 0), holder(1, 0.1), holder(2, -1)]

    def leaves(holders: list[Holder], now: float, who: int = 3) -> Program | None:
        return giving_way(holders, [waiting(who)], len(holders), now)

    assert leaves([*busy, holder(2, 0.2, idle=True)], 0) == Program(2, "0.2", 1)
    assert leaves(busy, late - 1.5) is None
    assert leaves(busy, late + 0.1) == busy[0].program
    assert leaves([*busy, holder(4, 0, leaving=True)], late) is None
    assert giving_way(busy, [], 3, late) is None


def test_a_tenant_that_has_its_part_changes_its_own_programs_only() -> None:
    """It does not send a stranger away for more than its part."""
    holders = [holder(1, 0), holder(1, 0.5), holder(2, -1)]

    assert giving_way(holders, [waiting(1)], 3, SLICE_SECONDS + 1) == holders[0].program
    assert giving_way(holders[:2], [waiting(1)], 4, SLICE_SECONDS + 1) == holders[0].program
    assert giving_way(holders[:2], [waiting(2)], 4, SLICE_SECONDS + 1) is None


def test_who_came_first_gives_of_what_it_has_more() -> None:
    """Until both have as many; then each changes its own."""
    late = SLICE_SECONDS + 9
    holders = [*(holder(1, each) for each in range(4)), holder(2, 0), holder(2, 1)]
    both = [waiting(1, 5), waiting(2, 5)]

    assert next_one(holders, both, 8) is None
    leaving = giving_way(holders, [both[1]], 8, late)
    assert leaving == holders[0].program
    del holders[0]
    assert next_one(holders, both, 8) == both[1].program
    holders.append(holder(2, 5))
    assert next_one(holders, both, 8) is None
    assert giving_way(holders, [both[1]], 8, late) == holders[3].program


def test_with_many_tenants_each_has_its_turn() -> None:
    """Eight places, forty tenants that never stop asking: nobody is left out, none has twice."""
    holders: list[Holder] = []
    asking = dict.fromkeys(range(40), 0.0)
    turns: Counter[int] = Counter()
    now = 0.0
    for _ in range(2000):
        has = {each.program.tenant for each in holders}
        line = [waiting(tenant, since) for tenant, since in asking.items() if tenant not in has]
        if chosen := next_one(holders, line, 8):
            holders.append(Holder(chosen, now, False, False))
            turns[chosen.tenant] += 1
        elif leaving := giving_way(holders, line, 8, now):
            holders = [each for each in holders if each.program != leaving]
            asking[leaving.tenant] = now
        now += 0.05

    assert len(turns) == 40
    assert max(turns.values()) - min(turns.values()) <= 1


def test_frames_come_whole_however_they_are_cut() -> None:
    """One longer than may be is known by its head."""
    content = b"".join(HEAD.pack(len(each)) + each for each in (b"a", b"", b"ccc"))
    for size in range(1, len(content) + 1):
        reader = Reader()
        cut = [content[at : at + size] for at in range(0, len(content), size)]
        assert [body for part in cut for body in reader.feed(part)] == [b"a", b"", b"ccc"]

    assert list(Reader().feed(HEAD.pack(MAX_FRAME_BYTES))) == []
    with pytest.raises(Misbehaved, match="at most"):
        list(Reader().feed(HEAD.pack(MAX_FRAME_BYTES + 1)))


def described(**said: object) -> manifest.Described:
    """Read a manifest that says this beside its name and command."""
    usual = {"name": "fraud-filter", "command": ["python3", "main.py"]}
    return manifest.read(json.dumps({**usual, **said}).encode())


def test_a_manifest_says_what_is_usual_where_it_says_nothing() -> None:
    """A name and a command are enough."""
    name, told, command, message, network, warm_up = described()

    assert (name, command, message) == ("fraud-filter", ("python3", "main.py"), "json")
    assert (network, warm_up) == (False, ())
    assert (told.language, told.keeps_state, told.batch, told.wait_seconds) == (
        *("other", True),
        *(1000, 0.0),
    )
    assert (told.answer_seconds, told.memory_bytes, told.processes) == (10.0, 256 << 20, 32)


def test_a_manifest_is_taken_at_its_borders() -> None:
    """All of it as it is written."""
    told = described(
        name="a" * 63,
        language="rust",
        message="msgpack",
        state=True,
        batch={"max": 10_000, "wait": "5s"},
        limits={"memory": "2048MiB", "answer": "60s", "processes": 64},
    ).manifest

    assert told == ("rust", True, 10_000, 5.0, 60.0, 2 << 30, 64)
    assert described(limits={"memory": "16MiB", "answer": "100ms"}).manifest.answer_seconds == 0.1


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ({"name": ""}, "name"),
        ({"name": "A"}, "name"),
        ({"name": "a" * 64}, "name"),
        ({"name": "-a"}, "name"),
        ({"name": 5}, "name"),
        ({"language": "C++"}, "language"),
        ({"command": []}, "command"),
        ({"command": "python3"}, "command"),
        ({"command": ["a"] * 33}, "command"),
        ({"command": ["a" * 513]}, "command"),
        ({"command": ["a\0"]}, "command"),
        ({"message": "xml"}, "message"),
        ({"state": 1}, "state"),
        ({"network": 1}, "network"),
        ({"batch": 5}, "batch"),
        ({"batch": {"max": 0}}, "batch.max"),
        ({"batch": {"max": 10_001}}, "batch.max"),
        ({"batch": {"max": True}}, "batch.max"),
        ({"batch": {"wait": "6s"}}, "batch.wait"),
        ({"batch": {"wait": 5}}, "batch.wait"),
        ({"batch": {"many": 5}}, "batch.many"),
        ({"limits": {"memory": "15MiB"}}, "limits.memory"),
        ({"limits": {"memory": "2049MiB"}}, "limits.memory"),
        ({"limits": {"memory": "64"}}, "limits.memory"),
        ({"limits": {"answer": "99ms"}}, "limits.answer"),
        ({"limits": {"answer": "61s"}}, "limits.answer"),
        ({"limits": {"processes": 65}}, "limits.processes"),
        ({"nothing": 1}, "nothing"),
    ],
)
def test_a_manifest_that_is_none_says_where(said: dict[str, object], place: str) -> None:
    """The place, and what would be right."""
    with pytest.raises(NotAnOperator, match=f"^operator.json: {place}"):
        described(**said)


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        (b'{"name": "\xc3\xa9", \n  "language": "C++"}', 1, 2),
        (b'{"name": "a",\n  "language" : "C++"}', 2, 3),
        (
            b'{"name": "a", "command": ["a"],\n\n "limits": {"m\xc3\xa9": 1,  "memory": "1MiB"}}',
            3,
            13,
        ),
        (b'{"name": "a",\n "limits": {"answer": "9m"}}', 2, 13),
        (b'{"name": "a",\n  oops}', 2, 3),
    ],
)
def test_what_is_wrong_in_a_manifest_has_its_line(content: bytes, line: int, column: int) -> None:
    with pytest.raises(NotAnOperator, match=rf"\(line {line}, column {column}\)$"):
        manifest.read(content)


def test_what_a_manifest_lacks_stands_nowhere() -> None:
    with pytest.raises(NotAnOperator, match=r"^operator.json: command: a list of 1 to 32 words$"):
        manifest.read(b'{"name": "a"}')


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"[" * 16_000, b" " * 16_385, b"\xff", b'{"name":"\xff"}']
)
def test_what_is_no_json_is_no_manifest(content: bytes) -> None:
    """Bounded before it is parsed."""
    with pytest.raises(NotAnOperator, match=r"^operator.json"):
        manifest.read(content)
