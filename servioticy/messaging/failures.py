"""What Kafka's errors mean for us: wait, or give this one record up."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from servioticy.errors import Rejected, ServioticyError, Unavailable

FULL = {KafkaError._QUEUE_FULL}
"""Our own client holds all it may: what it has goes to the broker first."""

HOPELESS = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG_SIZE,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError._INVALID_ARG,
}
"""The record itself is at fault. Everything else the broker, or who runs it, may heal."""


def is_full(error: object) -> bool:
    """Tell whether the client's own queue is full, which is no failure."""
    return isinstance(error, BufferError) or _code(error) in FULL


def meaning(error: object, about: str) -> ServioticyError:
    """Rejected where the record can never be sent, else Unavailable; `about` names it."""
    if _code(error) in HOPELESS:
        return Rejected(f"{about} can never be sent: {error}")
    return Unavailable(f"the broker did not take {about}: {error}")


def _code(error: object) -> int | None:
    if isinstance(error, KafkaException):
        error = error.args[0]
    return error.code() if isinstance(error, KafkaError) else None
