"""Signatures of Standard Webhooks 1.0: whoever has the secret can tell that it was us."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable

from servioticy.domain.webhook_secrets import key_of


def signed_headers(id_: str, seconds: int, body: bytes, secrets: Iterable[str]) -> dict[str, str]:
    """Return the headers that prove this body.

    One signature for each secret: while a secret is exchanged, both are in force. `seconds`
    since 1970: a receiver refuses what is old, so that it cannot be sent again by others.
    """
    content = f"{id_}.{seconds}.".encode() + body
    signatures = [_signature(key_of(each), content) for each in secrets]
    headers = {"webhook-id": id_, "webhook-timestamp": str(seconds)}
    return headers | ({"webhook-signature": " ".join(signatures)} if signatures else {})


def _signature(key: bytes, content: bytes) -> str:
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()
