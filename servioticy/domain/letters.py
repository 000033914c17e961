"""Dead letters as messages: the record as it came is the value, all about it stands in headers.

As Kafka Connect does it: so a letter is never larger than what came plus a bounded rest,
whatever bytes the record consists of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from servioticy.domain.records import DeadLetter, UnreadableRecord
from servioticy.domain.topics import MAX_MESSAGE_BYTES

REASON_BYTES = 2000
"""Longest reason kept: it may quote what a stranger wrote."""

Headers = list[tuple[str, bytes]]


def clipped(reason: str, most: int = REASON_BYTES) -> str:
    """Return the reason, or as much of it as fits into so many bytes of UTF-8."""
    text = reason.encode("utf-8", "replace")
    return text.decode() if len(text) <= most else text[: most - 3].decode("utf-8", "ignore") + "…"


def fitting(letter: DeadLetter, most: int = MAX_MESSAGE_BYTES) -> DeadLetter:
    """Return the letter with a record of at most so many bytes; what is cut says so."""
    if len(letter.record) <= most:
        return letter
    whole = len(letter.record) if letter.whole_bytes is None else letter.whole_bytes
    return msgspec.structs.replace(letter, record=letter.record[:most], whole_bytes=whole)


def headers(letter: DeadLetter) -> Headers:
    """Return all of the letter but its record, as text in UTF-8."""
    found = {
        "partition": str(letter.partition),
        "offset": str(letter.offset),
        "reason": clipped(letter.reason),
        "kind": letter.kind,
    }
    if letter.whole_bytes is not None:
        found |= {"cut": "true", "bytes": str(letter.whole_bytes)}
    return [(name, text.encode()) for name, text in found.items()]


def read_letter(value: bytes | None, found: Iterable[tuple[str, bytes]] | None) -> DeadLetter:
    """Read a message of the dead letters. Raises UnreadableRecord."""
    texts: Mapping[str, bytes] = dict(found or ())
    try:
        return DeadLetter(
            int(texts["partition"]),
            int(texts["offset"]),
            texts["reason"].decode(),
            value or b"",
            texts["kind"].decode(),
            int(texts["bytes"]) if texts.get("cut") == b"true" else None,
        )
    except (KeyError, ValueError) as error:
        raise UnreadableRecord(f"not a dead letter: {error!r}") from error
