"""Lanes of actuations, whatever happens and whoever speaks: nothing is lost or out of order."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from actuation_lanes import LAMP, PUMP, Client, World, quickly
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.actuations.together import WINDOW
from servioticy.domain.actuations import State

__all__ = ["quickly"]


OFTEN = ["submit", "join", "subscribe", "leave", "acknowledge"]
SELDOM = ["report", "remark", "remark", "pass", "kill", "away", "full"]
SAID = ["done", "failed", "x"]


def operations(chance: random.Random) -> list[tuple[Any, ...]]:
    """What happens; clients mostly acknowledge, have room, and come for one device."""
    return [an_operation(chance) for _ in range(chance.randint(10, 50))]


def an_operation(chance: random.Random) -> tuple[Any, ...]:
    name, key = chance.choice(OFTEN * 4 + SELDOM), chance.choice([LAMP, LAMP, LAMP, PUMP])
    mostly, number = chance.random() < 0.7, chance.randrange(20)
    more: dict[str, tuple[Any, ...]] = {
        "submit": (key, 10**6 if mostly else 3),
        "join": (key, mostly),
        "subscribe": (key, mostly),
        "leave": (number,),
        "acknowledge": (number, chance.randrange(20)),
        "report": (number, chance.choice(SAID)),
        "remark": (number, chance.choice(SAID)),
        "pass": (chance.randint(1, 4),),
        "away": (not mostly,),
        "full": (number, mostly),
    }
    return (name, *more.get(name, ()))


RANK = [State.QUEUED, State.SENT, State.DELIVERED]
HAS_IT = {State.DELIVERED, State.DONE, State.FAILED}


class Law:
    """Does what it is told, and looks that nothing is against the law."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ended: dict[str, State] = {}
        self.everybody: list[Client] = []
        self.spoken_of: set[str] = set()
        """Of which the device itself has said something."""

    async def do(self, name: str, *more: Any) -> None:
        clients, made = list(self.world.clients), sorted(self.world.store.kept)
        if name == "submit":
            self.world.submit(*more)
        elif name == "join":
            self.everybody.append(self.world.join(Client(more[1]), more[0]))
        elif name == "subscribe":
            self.everybody.append(self.world.subscribe(Client(more[1]), more[0]))
        elif name == "pass":
            self.world.now_ms += more[0]
        elif name == "kill":
            await self.world.kill()
        elif name == "away":
            self.world.store.is_away = more[0]
        elif name in ("report", "remark") and made:
            id_, by_device = made[more[0] % len(made)], name == "report"
            self.world.store.report(id_, more[1], self.world.now_ms, by_device=by_device)
            self.spoken_of |= {id_} if by_device else set()
        elif name == "leave" and clients:
            self.world.leave(clients[more[0] % len(clients)])
        elif name == "full" and clients:
            clients[more[0] % len(clients)].room = more[1]
        elif name == "acknowledge" and clients:
            client = clients[more[0] % len(clients)]
            waiting = list(client.unacknowledged)
            if waiting:
                client.acknowledge(waiting[more[1] % len(waiting)])
        self.look()

    def look(self) -> None:
        for id_ in self.world.store.kept:
            state = self.world.store.state(id_, self.world.now_ms)
            assert self.ended.get(id_, state) is state, "what has ended stays as it is"
            if state not in RANK:
                self.ended[id_] = state
            if state in HAS_IT:
                has_it = any(id_ in each.took for each in self.everybody)
                assert has_it or id_ in self.spoken_of, "what others say is not the device's word"
        for client in self.everybody:
            firsts = list(dict.fromkeys(client.got))
            assert firsts == sorted(firsts), "in order, but for what comes again"

    async def end(self) -> None:
        """When all is well again, whoever comes gets all that there is to get."""
        self.world.store.is_away = False
        for client in list(self.world.clients):
            self.world.leave(client)
        await self.world.settle()
        store, now_ms = self.world.store, self.world.now_ms
        waiting = store.waiting(LAMP.tenant, [LAMP.id, PUMP.id], 1_000, now_ms)
        wanted = {key: [each.id for each in waiting.get(key.id, ())] for key in (LAMP, PUMP)}
        last = {key: self.world.join(Client(acknowledges=False), key) for key in (LAMP, PUMP)}
        for _ in range(2 + self.world.made // WINDOW):
            await self.world.settle()
        for key, client in last.items():
            assert client.got == wanted[key]
            assert all(
                self.world.store.kept[each].state is State.DELIVERED for each in wanted[key]
            )


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(0, 2**32))
def test_nothing_is_lost_or_out_of_order_whatever_happens(seed: int) -> None:
    """By chance, and not as hypothesis would choose: it takes several that fit together."""
    chance = random.Random(seed)

    async def run() -> None:
        law = Law(World())
        for each in operations(chance):
            await law.do(*each)
            if chance.random() < 0.75:
                await law.world.settle()
                law.look()
        await law.end()
        await law.world.queues.stop()

    asyncio.run(run())
