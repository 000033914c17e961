"""Cursors: where a list goes on, for clients to hand back and not to read."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from urllib.parse import quote, urlencode

from flask import request

from servioticy.refusals import Refused

CHECK_BYTES = 8
MAX_CURSOR = 1_000
_PLACE = re.compile(rb"[0-9A-Za-z]{1,200}")
"""A timestamp, or an id: whoever computes a check of his own gets no further than that."""


def position(about: str) -> str | None:
    """Return where the list goes on that the present request asks for; None: it begins.

    `about` says which list that is: whose, in which order. A cursor of another list, or one
    that has been changed, is refused. The check guards against mistakes and is no secret: what
    a caller may see is decided without a look at the cursor.
    """
    cursor = request.args.get("cursor")
    if cursor is None:
        return None
    try:
        content = base64.urlsafe_b64decode(cursor.encode("ascii")) if _fits(cursor) else b""
    except (binascii.Error, UnicodeEncodeError, ValueError):
        content = b""
    check, found = content[:CHECK_BYTES], content[CHECK_BYTES:]
    if _PLACE.fullmatch(found) is None or check != _check(about, found):
        raise Refused("The cursor is not one that a list of this kind has given")
    return found.decode()


def next_page(base: str, about: str, after: str) -> dict[str, str]:
    """Return the header `Link` that leads to the page after this place of the list."""
    content = after.encode()
    cursor = base64.urlsafe_b64encode(_check(about, content) + content).decode()
    others = [(k, v) for k, v in request.args.items(multi=True) if k != "cursor"]
    query = urlencode([*others, ("cursor", cursor)])
    return {"Link": f'<{base}{quote(request.path)}?{query}>; rel="next"'}


def _fits(cursor: str) -> bool:
    return len(cursor) <= MAX_CURSOR


def _check(about: str, content: bytes) -> bytes:
    return hashlib.blake2s(
        content, key=hashlib.sha256(about.encode()).digest(), digest_size=CHECK_BYTES
    ).digest()
