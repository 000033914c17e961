"""What crosses borders is what providers made: all of it, each once, in order of its stream."""

from __future__ import annotations

from collections import Counter, defaultdict

from changing_oracle import kept
from log_oracle import HELD, LogOracle, Owed, Place, last_of, value_of
from oracle import Ref, Update

from servioticy.domain.records import BeginRecord, BorderRecord


def assert_crossings(oracle: LogOracle) -> None:
    """Every record in any log that crosses a border is right, and none is missing."""
    found = _crossed(oracle)
    made = _made(oracle)
    for (_partition, ref, place), updates in found.items():
        assert updates == made.get((ref, place)), (ref, place)
    for (_partition, ref), sources in oracle.came.items():
        by_origin: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for source, offset, part in sources:
            by_origin[source].append((offset, part))
        for each in by_origin.values():
            assert each == sorted(set(each)), ref
    _assert_all_came(oracle, found)
    for record in oracle.begun:
        _assert_begin(oracle, record)


def _crossed(oracle: LogOracle) -> dict[tuple[int, Ref, Place], list[Update]]:
    """What came to each partition of a tree on a stream, each part once."""
    found: dict[tuple[int, Ref, Place], list[Update]] = defaultdict(list)
    seen: set[tuple[int, tuple[int, ...], int]] = set()
    for partition, records in enumerate(oracle.log):
        for record in records:
            if not isinstance(record, BorderRecord) or record.forwarded is not None:
                continue
            key = partition, tuple(record.source), record.provider
            paths = [(len(each.path), each.path) for each in record.updates]
            assert paths == sorted(paths), "the serial order"
            if key in seen:
                continue
            seen.add(key)
            place = record.source[:2]
            for each in record.updates:
                update = each.timestamp, value_of(bytes(each.update))
                found[partition, tuple(each.origin), place].append(update)
    return found


def _made(oracle: LogOracle) -> dict[tuple[Ref, Place], list[Update]]:
    made: dict[tuple[Ref, Place], list[Update]] = defaultdict(list)
    for (place, _tenant), updates in oracle.trees.items():
        for ref, *update in updates:
            made[ref, place].append(tuple(update))
    return made


def _assert_all_came(oracle: LogOracle, found: dict[tuple[int, Ref, Place], list[Update]]) -> None:
    """What was made on a stream that others read came to each of them, once."""
    had = {key: Counter(each[:2] for each in dict.fromkeys(s)) for key, s in oracle.had.items()}
    for key, sources in oracle.had.items():
        for partition in {each[0] for each in sources}:
            places = [each[1:] for each in sources if each[0] == partition]
            assert places == sorted(set(places)), (key, "each once, in order")
    for each in oracle.owed:
        if each.reader not in oracle.declared:
            continue  # its end may have been known beforehand
        assert (each.partition, each.ref, each.place) in found, each
        if each.place in had.get((each.reader, each.ref), ()):
            continue
        named = oracle.named.get((each.partition, each.ref, *each.place))
        assert named is not None, (each, "an older place than what has come")
        excused = (
            named.get(each.reader, each.change + 1) > each.change
            or (each.reader, each.ref, *each.place) in oracle.excused
            or _has_left(oracle, each)
        )
        assert excused, each


def _has_left(oracle: LogOracle, owed: Owed) -> bool:
    """Whether a reader that moves named the stream no more, or was told of a later end there.

    Where it was before that may be known at once.
    """
    key = owed.reader, owed.ref
    moved = oracle.owner[owed.reader] != owed.partition
    known = oracle.inputs.get(key)
    partition, offset = owed.place
    ended = any(at == partition % HELD and end > offset for at, end in oracle.closed[key])
    return moved and (known is None or known.since > owed.change or ended)


def _assert_begin(oracle: LogOracle, record: BeginRecord) -> None:
    if record.moved_from is not None:
        return  # what its readers know moves along with them
    lasts = oracle.lasts[record.source[:2]]
    for each in record.streams:
        assert last_of(each) == lasts.get(tuple(each.ref)), record


def assert_at_rest(oracle: LogOracle) -> None:
    """Where everything has come, each knows what is so: what it may read, and the last of it."""
    for (reader, ref), known in oracle.inputs.items():
        assert known.is_open == oracle.may(oracle.declared[reader].tenant, ref), (reader, ref)
        assert not known.awaited, (reader, ref)
        if known.is_open:
            assert known.fed_in == {oracle.owner[reader]}, (reader, ref)
            assert known.last == oracle.last.get(ref) or not _is_kept(oracle, reader, ref)
    assert not any(oracle.held.values())


def _is_kept(oracle: LogOracle, reader: str, ref: Ref) -> bool:
    return ref in kept(oracle.declared[reader])
