"""What a subscription may hold."""

from __future__ import annotations

import pytest

from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.callbacks import MAX_BYTES, MAX_DESTINATION, check_subscription

ENVELOPE = len('{"callback":"websocket","customFields":{"x":""}}')


def test_a_subscription_is_bounded_in_bytes() -> None:
    def of(size: int) -> dict[str, object]:
        return {"callback": "websocket", "customFields": {"x": "x" * (size - ENVELOPE)}}

    assert check_subscription(of(MAX_BYTES)) == "websocket"
    with pytest.raises(BadDocument, match=f"at most {MAX_BYTES} bytes"):
        check_subscription(of(MAX_BYTES + 1))


def test_a_destination_is_bounded() -> None:
    at_most = {"callback": "pubsub", "destination": "x" * MAX_DESTINATION}

    assert check_subscription(at_most) == "pubsub"
    with pytest.raises(BadDocument, match="at most"):
        check_subscription({**at_most, "destination": "x" * (MAX_DESTINATION + 1)})
