"""Durations in the unit in which a tenant counts timestamps."""

from __future__ import annotations

from servioticy.domain.time_units import PER_SECOND

SECONDS_OF_A_DAY = 86_400
WEEK_BEGINS = 4
"""The day after 1 January 1970, a Thursday, from which days are counted: weeks begin on Monday."""

_NAMES = {per_second: name for name, per_second in PER_SECOND.items()}


def exactly(milliseconds: int, per_second: int, what: str = "a duration") -> int:
    """Return so many milliseconds in units of which a second has `per_second`.

    Raises ValueError where they are no whole number of them; `what` is how it calls them.
    """
    units, rest = divmod(milliseconds * per_second, 1000)
    if rest:
        name = _NAMES.get(per_second, f"units of which a second has {per_second}")
        raise ValueError(
            f"{what} of {milliseconds} ms is no whole number of {name}, "
            "in which the timestamps are counted"
        )
    return units
