"""What is odd about a batch that is taken as it is: once of each kind, not of each update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from ingest.batches import Accepted
from ingest.hints import UpdateHints, of_units


def hints(accepted: Sequence[Accepted], of_times: UpdateHints) -> list[str]:
    """Return what to tell whoever sent these: the first update of each kind, and how many more."""
    first: dict[Hashable, str] = {}
    times: Counter[Hashable] = Counter()
    for place, target, update in accepted:
        told: dict[Hashable, str] = {each: each for each in of_units(update, target.reader.stream)}
        stream = target.address.stream
        if stream is not None and (hint := of_times.of_time(stream, update.timestamp)):
            told[stream] = hint  # each has its own numbers in it
        for kind, text in told.items():
            first.setdefault(kind, f"update {place}: {text}")
            times[kind] += 1
    return [
        text if times[kind] == 1 else f"{text} ({times[kind]} updates)"
        for kind, text in first.items()
    ]
