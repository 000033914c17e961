"""Faults of a Kafka client that no broker brings when it is asked to."""

from __future__ import annotations

import ctypes
from pathlib import Path

from confluent_kafka import KafkaError, Producer


def bring_fatal_error(producer: Producer) -> None:
    """Let librdkafka meet a fatal error, as where the broker lost the end of its log.

    With the library's own means for tests, which the Python client does not offer.
    """
    library = ctypes.CDLL(_library())
    # Behind the two words that every Python object begins with stands the library's handle.
    handle = ctypes.c_void_p.from_address(id(producer) + object.__basicsize__)
    library.rd_kafka_name.restype = ctypes.c_char_p
    assert library.rd_kafka_name(handle).startswith(b"rdkafka#producer")
    code = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert library.rd_kafka_test_fatal_error(handle, code, b"brought by a test") == 0


def _library() -> str:
    for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
        path = line.split()[-1]
        if "librdkafka" in path:
            return path
    raise AssertionError("the library is not loaded")
