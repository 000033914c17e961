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

MAX_ACCOUNTS = 10_000


class _Used(NamedTuple):
    """Moving sums."""

    seconds: float = 0.0
    """Of the processor."""
    trees: float = 0.0

    @property
    def is_light(self) -> bool:
        """Whether it is little for each tree."""
        return self.seconds < LIGHT_SECONDS * self.trees


class _Account(NamedTuple):
    used: _Used = _Used()
    at: float = 0.0

    def at_time(self, now: float) -> _Used:
        """What still counts of it."""
        part = math.exp((self.at - now) / HORIZON_SECONDS)
        return _Used(self.used.seconds * part, self.used.trees * part)

    def plus(self, seconds: float, trees: float, now: float) -> _Account:
        """The same with what has just been used."""
        before = self.at_time(now)
        return _Account(_Used(before.seconds + seconds, before.trees + trees), now)


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

        The start of a process only where it is not the first for long: whoever needs one again
        and again takes the time of the others.
        """
        if not used:
            return
        now = self._clock()
        with self._lock:
            for pair, new in used.items():
                known = self._accounts.get(pair)
                seconds = new.seconds + (new.starts if known else 0.0)
                self._accounts[pair] = (known or _Account()).plus(seconds, new.trees, now)
                self._accounts.move_to_end(pair)
                self._all = self._all.plus(seconds, new.trees, now)
            while self._accounts and self._has_gone(now):
                self._accounts.popitem(last=False)

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

    def _has_gone(self, now: float) -> bool:
        """Whether the oldest account counts no more, or is one too many."""
        oldest = next(iter(self._accounts.values()))
        return oldest.at < now - FORGOTTEN_SECONDS or len(self._accounts) > MAX_ACCOUNTS


def _over(used: Mapping[Pair, _Used], most: float) -> Set[Pair]:
    """Those of whom there is too much, without whom nobody waits for."""
    seconds: defaultdict[int, float] = defaultdict(float)
    trees: defaultdict[int, float] = defaultdict(float)
    for (_runner, owner), each in used.items():
        seconds[owner] += each.seconds
        trees[owner] = max(trees[owner], each.trees)
    waited_for = {
        pair: each
        for pair, each in used.items()
        if not each.is_light or seconds[pair[1]] >= LIGHT_TREE_SECONDS * trees[pair[1]]
    }
    amounts: defaultdict[int, float] = defaultdict(float)
    for (runner, _owner), each in waited_for.items():
        amounts[runner] += each.seconds
    level = _level(amounts.values(), most)
    return {pair for pair in waited_for if amounts[pair[0]] > level}


def _level(amounts: Iterable[float], most: float) -> float:
    """Return the largest amount that each may have where all together have no more than that."""
    lowest_first = [-each for each in amounts]
    left, cut = -sum(lowest_first), 0
    heapq.heapify(lowest_first)
    while lowest_first and left - cut * lowest_first[0] > most:
        left += heapq.heappop(lowest_first)
        cut += 1
    return (most - left) / cut if cut else math.inf
