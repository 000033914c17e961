"""Worlds in which much crosses borders: tenants that read each other, change, move and die."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from changing_oracle import Given, Shown
from changing_world import World
from hypothesis import strategies as st
from oracle import Composite, Ref
from put_off_runs import Whims
from serial_order import SIMPLE, Generous, javascript, python

from pipeline.limits import Limits
from pipeline.sharing.fairness import Fairness

LIMITS = Limits(40, 60)
"""Loops with staleness by input end by these, or by borders."""

DEATHS = ("before", "after")
STORING = (*DEATHS, "forget1", "forget2", "forget3")
SENDING = (*DEATHS, "silent")


@st.composite
def faults(draw: st.DrawFn, most: int = 3) -> dict[tuple[str, int], str]:
    """What goes wrong: a crash at some transactions and some messages, or a silent broker."""
    storing = st.dictionaries(st.integers(1, 60), st.sampled_from(STORING), max_size=most)
    found = {("store", number): kind for number, kind in draw(storing).items()}
    for call in ("emit", "poll", "send_to_log", "flush"):
        sending = st.dictionaries(st.integers(1, 60), st.sampled_from(SENDING), max_size=most // 2)
        found |= {(call, number): kind for number, kind in draw(sending).items()}
    return found


def a_world(draw: Any, *, puts_off: bool = False) -> World:
    """One that dies at times, and may put off what it likes, in transactions of any size."""
    partitions = draw(st.sampled_from([1, 2, 3, 3]))
    over = st.lists(st.sets(st.integers(1, 3), max_size=2), max_size=40)
    shares = Whims(draw(over)) if puts_off else Generous(1.0)
    most = draw(st.sampled_from([1, 2, 3, 1000, 1000]))
    return World(
        partitions,
        None,
        draw(faults()),
        LIMITS,
        most=most,
        puts_off=puts_off,
        fairness=Fairness(shares),
    )


class Play:
    """Objects of some tenants, and anything that may happen to them."""

    STEPS = (
        *["put"] * 16,
        *["work"] * 5,
        *["replace"] * 3,
        *["join", "publish", "grant", "revoke", "activate", "crash"],
    )
    MOVES = (*["put"] * 12, *["work"] * 5, *["join"] * 4, "replace", "publish", "crash")
    """Components that join, and so move from partition to partition."""

    RARE = ("erase", "delete", "repeat")

    def __init__(self, draw: Any, world: World, tenants: int, objects: int, cycles: bool) -> None:
        self.draw, self.world, self.cycles = draw, world, cycles
        self.whose = {f"so{n}": n % tenants for n in range(objects)}
        self.now = 0
        self.gone: set[str] = set()
        self.public = {id_: draw(st.integers(0, 3)) > 0 for id_ in self.whose}

    def go(self, steps: int, kinds: Sequence[str] = STEPS) -> None:
        """Create them all, and then anything in any order, the pipeline at any distance behind."""
        for id_ in self.whose:
            self.world.create(*self.an_object(id_))
        for _ in range(steps):
            step = self.draw(st.sampled_from(kinds))
            if step == "join" and kinds is self.STEPS and self.draw(st.booleans()):
                step = self.draw(st.sampled_from(self.RARE))
            getattr(self, step)()
        self.world.finish()

    @property
    def alive(self) -> list[str]:
        return [
            each for each in self.whose if each in self.world.versions and each not in self.gone
        ]

    def one(self) -> str | None:
        alive = self.alive
        return self.draw(st.sampled_from(alive)) if alive else None

    def put(self) -> None:
        """Times go on, but for some that come late or twice."""
        id_ = self.one()
        if id_ is None:
            return
        self.now += self.draw(st.sampled_from([0, 1, 1, 1, 2]))
        late = self.draw(st.sampled_from([0, 0, 0, 0, 1, 3]))
        name = self.draw(st.sampled_from([*SIMPLE, *SIMPLE, *SIMPLE, "c0"]))
        self.world.put((id_, name), max(0, self.now - late), self.draw(st.integers(0, 99)))

    def work(self) -> None:
        lengths = self.world.lengths()
        ends = [self.draw(st.integers(0, length)) for length in lengths]
        if self.draw(st.integers(0, 2)) == 0:
            ends = [self.draw(st.sampled_from([0, length])) for length in lengths]
        self.world.run(ends)

    def replace(self) -> None:
        id_ = self.one()
        if id_ is not None:
            self.world.replace(*self.an_object(id_))

    def join(self) -> None:
        """Two objects of one tenant become one component."""
        id_ = self.one()
        if id_ is not None:
            self.world.replace(*self.an_object(id_, joins=True))

    def publish(self) -> None:
        id_ = self.one()
        if id_ is not None:
            self.public[id_] = not self.public[id_]
            thing, text = self.world.versions[id_][-1]
            codes = {(id_, name): code for name, code in self.world.codes_of(text).items()}
            shown = Shown(
                id_, thing.simple, thing.composites, thing.groups, thing.tenant, self.public[id_]
            )
            self.world.replace(shown, codes)

    def activate(self) -> None:
        id_ = self.one()
        if id_ is not None:
            self.world.activate(id_, self.draw(st.integers(1, len(self.world.versions[id_]))))

    def grant(self) -> None:
        id_ = self.one()
        if id_ is not None:
            stream = self.draw(st.sampled_from([None, "d0", "c0"]))
            tenant = self.draw(st.sampled_from([None, 0, 1, 2]))
            given = Given(f"g{len(self.world.given) + 1}", id_, stream, tenant)
            self.world.grant(given, self.draw(st.booleans()))

    def revoke(self) -> None:
        if self.world.in_force:
            self.world.revoke(self.draw(st.sampled_from(sorted(self.world.in_force))))

    def erase(self) -> None:
        id_ = self.one()
        if id_ is not None:
            self.world.erase((id_, self.draw(st.sampled_from(["d0", "c0", "c1"]))))

    def delete(self) -> None:
        id_ = self.one()
        if id_ is not None:
            self.world.delete(id_)
            self.gone.add(id_)

    def repeat(self) -> None:
        self.world.repeat(self.draw(st.integers(0, 99)))

    def crash(self) -> None:
        self.world.crash()

    def an_object(self, id_: str, joins: bool = False) -> Any:
        """One version: what it reads is mostly of others, and mostly of other tenants."""
        draw, tenant = self.draw, self.whose[id_]
        refs = [r for r in self.world.readable(tenant, id_) if self.cycles or r[0] < id_]
        foreign = [ref for ref in refs if self.whose[ref[0]] != tenant]
        own = [ref for ref in refs if self.whose[ref[0]] == tenant]
        groups: dict[str, tuple[Ref, ...]] = {}
        for g in range(draw(st.integers(1, 2))):
            some = own if joins and g == 0 and own else foreign if draw(st.booleans()) else refs
            if some:
                groups[f"g{g}"] = self._members(some)
        names = draw(st.sampled_from([["c0"], ["c0", "c1"]]))
        composites, codes = [], {}
        for k, name in enumerate(names):
            readable = [*groups, *groups, "d0", *(names if self.cycles else names[: k + 1])]
            reads = draw(st.lists(st.sampled_from(readable), min_size=1, max_size=3))
            if k == 0 and "g0" in groups:
                reads.append("g0")
            inputs = tuple(dict.fromkeys(reads))
            numbers = (draw(st.integers(0, 9)), draw(st.integers(5, 30)), draw(st.integers(9, 50)))
            options = [draw(st.integers(0, 3)) == 0 for _ in range(3)]
            composites.append(Composite(name, inputs, python(*numbers), *options))
            codes[id_, name] = javascript(inputs, *numbers)
        simple = (*SIMPLE, *(each for each in ("c0", "c1") if each not in names))
        return Shown(id_, simple, tuple(composites), groups, tenant, self.public[id_]), codes

    def _members(self, refs: list[Ref]) -> tuple[Ref, ...]:
        stream = self.draw(st.sampled_from(sorted({name for _, name in refs})))
        owners = sorted({owner for owner, name in refs if name == stream})
        members = st.lists(st.sampled_from(owners), min_size=1, max_size=3, unique=True)
        return tuple((each, stream) for each in self.draw(members))
