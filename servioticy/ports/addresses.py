"""What a request names, and who asks: looked up at once."""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """Who asks, and what the request names. None where it does not exist."""

    caller: int
    service_object: str | None
    owner: int | None
    public: bool
    version: int
    partition: int
    stream_id: int | None
