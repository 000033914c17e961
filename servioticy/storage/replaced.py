"""How many bytes less are stored than what a batch brings, as others go or stay for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from servioticy.ports.batches import StoredUpdate
from servioticy.storage.arrays import columns, numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_SQL = queries("replaced")
_ANY = 2**63 - 1
"""No timestamp is greater."""


def replaced(
    database: Database, updates: Sequence[StoredUpdate], displaced: Sequence[StoredUpdate]
) -> Counter[int]:
    """The bytes of what these take the place of, stored before or displaced among them, by stream.

    With those of what was taken back before, and ends with these or makes room for them. To be
    asked before they are stored. Raises Unavailable.
    """
    late = [each for each in updates if not each.is_new]
    touched = _touched(updates)
    if not (late or touched):
        return Counter()
    found = Counter({each.stream_id: 0 for each in displaced})
    for each in displaced:
        if not each.takes_back:  # it is no row
            found[each.stream_id] += len(each.document)
    streams, timestamps = columns(sorted({(each.stream_id, each.timestamp) for each in late}), 2)
    values = {
        "streams": numbers(streams),
        "timestamps": numbers(timestamps),
        "touched": numbers(touched),
        "ends": numbers(touched.values()),
    }
    found.update(dict(database.rows(_SQL["replaced"], values)))
    return found


def kept_of(database: Database, updates: Sequence[StoredUpdate]) -> Mapping[int, int]:
    """The bytes of what is kept of what these have taken back, as it is computed from, by stream.

    To be asked in the transaction that has stored them. Raises Unavailable.
    """
    streams = {each.stream_id for each in updates if each.takes_back}
    if not streams:
        return {}
    return dict(database.rows(_SQL["kept"], {"streams": numbers(streams)}))


def _touched(updates: Sequence[StoredUpdate]) -> Mapping[int, int]:
    """Streams of which something was taken back that may be kept no longer, if it is no newer.

    Of those that take back something now, whatever they keep: what they do then is asked after.
    """
    found: dict[int, int] = {}
    for each in updates:
        if each.takes_back or each.ends_taken_back:
            until = _ANY if each.takes_back else each.timestamp
            found[each.stream_id] = max(until, found.get(each.stream_id, until))
    return found
