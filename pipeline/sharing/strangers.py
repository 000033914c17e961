"""What composites take in the trees of others' updates: all of them together one share."""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from typing import NamedTuple

from pipeline.sharing.costs import Foreign, Pair

HORIZON_SECONDS = 2.0
"""What was used so long ago counts for a little more than a third."""

FORGOTTEN_SECONDS = 10 * HORIZON_SECONDS

LIGHT_SECONDS = 0.001
"""Of the processor, for a tree: whose scripts take less are many where there are many updates."""

LIGHT_TREE_SECONDS = 0.01
"""And what all strangers together take of a tree, where nobody waits for them."""

LOOK_SECONDS = 0.02
"""So long it stays as it was found to be: there may be thousands to look at."""

MAX_ACCOUNTS = 2_000
"""To look at them all takes 2 ms."""


class _Used(NamedTuple):
    """Moving sums."""

    seconds: float = 0.0
    """Of the processor."""
    heavy: float = 0.0
    """Those of them of batches in which each tree took much, or one did: with many in between
    that cost nothing, they would look like little."""
    trees: float = 0.0

    def plus(self, other: _Used) -> _Used:
        """Return both together."""
        return _Used(*[a + b for a, b in zip(self, other, strict=True)])

    def times(self, part: float) -> _Used:
        """Return a part of it."""
        return _Used(*[each * part for each in self])

    @property
    def is_light(self) -> bool:
        """Whether it is little for each tree."""
        return self.heavy < LIGHT_SECONDS * self.trees


class _Account(NamedTuple):
    used: _Used = _Used()
    at: float = 0.0

    def at_time(self, now: float) -> _Used:
        """What still counts of it."""
        return self.used.times(math.exp((self.at - now) / HORIZON_SECONDS))

    def plus(self, new: _Used, now: float) -> _Account:
        """The same with what has just been used."""
        return _Account(self.at_time(now).plus(new), now)


class Strangers:
    """Moving sums of what each tenant used in whose trees, against a share of all together.

    Each of them may be below a share of its own, and all of them together take a partition's
    time, and that of whoever lets them read its streams: its updates wait for their composites.
    So while they take more than one tenant may, those are refused that take more than an equal
    part; what the others leave of theirs is shared by the rest. For several threads.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`share` is in seconds a second."""
        self._most = share * HORIZON_SECONDS
        self._clock = clock
        self._lock = threading.Lock()
        self._accounts: OrderedDict[Pair, _Account] = OrderedDict()
        self._all = _Account()
        self._over: Set[Pair] = frozenset()
        self._looks_at = -math.inf

    def charge(self, used: Mapping[Pair, Foreign]) -> None:
        """Note what tenants have used in trees of others.

        What it took to be ready only where that is not the first time for long: whoever needs it
        again and again takes the time of the others.
        """
        if not used:
            return
        now = self._clock()
        with self._lock:
            self._drop(now)
            for pair, each in used.items():
                known = self._accounts.get(pair)
                new = _used(each, known is not None)
                self._accounts[pair] = (known or _Account()).plus(new, now)
                self._accounts.move_to_end(pair)
                self._all = self._all.plus(new, now)
            self._drop(now)

    def is_light(self, runner: int, owner: int) -> bool:
        """Whether the runner is known to take little of each tree of the owner."""
        account = self._accounts.get((runner, owner))
        return account is not None and account.used.is_light

    def over(self) -> Set[Pair]:
        """Who has taken more than its part, and in whose trees, while all take too much."""
        now = self._clock()
        with self._lock:
            if self._all.at_time(now).seconds <= self._most:
                return frozenset()
            if now >= self._looks_at:
                used = {pair: each.at_time(now) for pair, each in self._accounts.items()}
                self._over = _over(used, self._most)
                self._looks_at = now + LOOK_SECONDS
            return self._over

    def _drop(self, now: float) -> None:
        """Forget accounts that count no more, and those that are too many."""
        accounts = self._accounts
        while accounts and next(iter(accounts.values())).at < now - FORGOTTEN_SECONDS:
            accounts.popitem(last=False)
        while len(accounts) > MAX_ACCOUNTS:
            accounts.popitem(last=False)


def _used(new: Foreign, was_known: bool) -> _Used:
    seconds = new.seconds + (new.starts if was_known else 0.0)
    is_heavy = new.overlong or seconds >= LIGHT_SECONDS * new.trees
    return _Used(seconds, seconds if is_heavy else 0.0, new.trees)


def _over(used: Mapping[Pair, _Used], most: float) -> Set[Pair]:
    """Those of whom there is too much, without whom nobody waits for."""
    seconds: defaultdict[int, float] = defaultdict(float)
    trees: defaultdict[int, float] = defaultdict(float)
    for (_runner, owner), each in used.items():
        seconds[owner] += each.seconds
        trees[owner] = max(trees[owner], each.trees)
    waited_for = {
        pair: much
        for pair, each in used.items()
        if (much := each.seconds if _are_many(seconds, trees, pair[1]) else each.heavy)
    }
    amounts: defaultdict[int, float] = defaultdict(float)
    for (runner, _owner), much in waited_for.items():
        amounts[runner] += much
    level = _level(amounts.values(), most)
    return {pair for pair in waited_for if amounts[pair[0]] > level}


def _are_many(seconds: Mapping[int, float], trees: Mapping[int, float], owner: int) -> bool:
    """Whether somebody waits for all that run in the owner's trees, though each takes little."""
    return seconds[owner] >= LIGHT_TREE_SECONDS * trees[owner]


def _level(amounts: Iterable[float], most: float) -> float:
    """Return the largest amount that each may have where all together have no more than that."""
    lowest_first = [-each for each in amounts]
    left, cut = -sum(lowest_first), 0
    heapq.heapify(lowest_first)
    while lowest_first and left - cut * lowest_first[0] > most:
        left += heapq.heappop(lowest_first)
        cut += 1
    return (most - left) / cut if cut else math.inf
