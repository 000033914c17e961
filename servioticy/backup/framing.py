"""Records of a topic in a part: offset, lengths of key (-1: none) and value, then both."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

from servioticy.domain.topics import FRAME_BYTES, MAX_LETTER_BYTES
from servioticy.messaging.stretches import Record

HEAD = struct.Struct("!qii")
MOST = MAX_LETTER_BYTES + FRAME_BYTES
"""No topic has a record that is longer."""


def write_record(record: Record, file: BinaryIO) -> None:
    """Write a record behind others."""
    key = record.key
    length = -1 if key is None else len(key)
    file.write(HEAD.pack(record.offset, length, len(record.value)) + (key or b"") + record.value)


def read_records(file: BinaryIO) -> Iterator[Record]:
    """Yield the records of a part. Raises ValueError where it holds something else."""
    while head := file.read(HEAD.size):
        if len(head) < HEAD.size:
            raise ValueError("a record is cut off")
        offset, key_length, length = HEAD.unpack(head)
        if not (-1 <= key_length <= MOST and 0 <= length <= MOST):
            raise ValueError("a record is longer than any can be")
        key = None if key_length < 0 else file.read(key_length)
        value = file.read(length)
        if len(value) < length or (key is not None and len(key) < key_length):
            raise ValueError("a record is cut off")
        yield Record(offset, key, value)
