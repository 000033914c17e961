"""The arithmetic of a measurement: percentiles, what is lost, when it is as before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WINDOW_SECONDS = 1.0
TIMES_AS_SLOW = 2.0
NOISE_SECONDS = 0.05
"""A p99 below this counts as usual: what disturbs one is the machine, not an attack."""

MAX_SECONDS_TO_RECOVER = 2.0


@dataclass(slots=True)
class Sent:
    """An update of the innocent: when it was due, what was answered, when it came out, and when
    the answer was there.
    """

    due: float
    answer: str = ""
    arrived: float | None = None
    answered: float | None = None


@dataclass(frozen=True, slots=True)
class Waits:
    """How long updates took, in seconds."""

    p50: float
    p99: float
    longest: float


@dataclass(frozen=True, slots=True)
class Suffered:
    """What one attack did to the innocent tenant, in seconds and updates."""

    before: Waits
    made_ready: Waits
    """While the attacker made ready for it, which may be an attack, too."""
    during: Waits
    lost: int
    turned_away: int
    recovered: float | None
    """Seconds from the end of the attack; None where it was not as before in time."""

    @property
    def times(self) -> float:
        """How many times its p99 before the attack the innocent's was."""
        return self.during.p99 / max(self.before.p99, 0.001)

    @property
    def worst(self) -> Waits:
        """The phase with the larger p99 of those two."""
        return max(self.made_ready, self.during, key=lambda each: each.p99)


def waits(sent: Iterable[Sent], now: float) -> Waits:
    """Return the percentiles of these updates; what has not come out has waited until `now`."""
    seconds = sorted((now if each.arrived is None else each.arrived) - each.due for each in sent)
    if not seconds:
        return Waits(0.0, 0.0, 0.0)
    return Waits(_percentile(seconds, 0.5), _percentile(seconds, 0.99), seconds[-1])


def since(begin: float, ready: float) -> float:
    """Return when the attack began: with making ready, where that took no second.

    Of a few updates every one would be a p99.
    """
    return ready if ready - begin >= WINDOW_SECONDS else begin


def usual(before: Waits) -> float:
    """Return the p99 in seconds up to which the innocent is served as before the attack."""
    return max(TIMES_AS_SLOW * before.p99, NOISE_SECONDS)


def recovered(sent: Sequence[Sent], end: float, limit: float, now: float) -> float | None:
    """Return the seconds from `end` to the first second whose p99 is within the limit.

    None where there is no such second yet.
    """
    after = [each for each in sent if each.due >= end]
    for first in after:
        if first.due + WINDOW_SECONDS + limit > now:
            return None
        window = [e for e in after if first.due <= e.due < first.due + WINDOW_SECONDS]
        if waits(window, now).p99 <= limit:
            return first.due - end
    return None


def faults(suffered: Suffered) -> list[str]:
    """Return what is not acceptable, in words; empty: the innocent was served."""
    found = []
    if suffered.worst.p99 > usual(suffered.before):
        found.append(f"p99 {1000 * suffered.worst.p99:.0f} ms")
    if suffered.lost:
        found.append(f"{suffered.lost} lost")
    if suffered.turned_away:
        found.append(f"{suffered.turned_away} turned away")
    if suffered.recovered is None or suffered.recovered > MAX_SECONDS_TO_RECOVER:
        found.append("not as before in time")
    return found


def _percentile(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
