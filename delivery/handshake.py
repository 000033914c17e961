"""Before a socket opens: what is asked for, and whether the caller may have it.

Browsers may connect from any page (`Origin` is not looked at): only a token opens a
socket, never a cookie, so a foreign page has nothing of the user's to ride on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from servioticy.model import StreamRef, Timestamp
from servioticy.ports import Address

_PATH = re.compile(r"/([^/]+)/streams/([^/]+)/live/?")
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Admission:
    """The caller may watch this stream, from after a timestamp on if one is named."""

    stream: StreamRef
    stream_id: int
    after: Timestamp | None
    version: int
    """of the document by which the stream was found to be readable"""
    foreign: bool
    """whether it is another tenant's"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The caller may not, and why."""

    status: int
    message: str

    def body(self) -> bytes:
        """The contract's error body."""
        return orjson.dumps(
            {"status": self.status, "message": self.message, "info": "docs.servIoTicy.com"}
        )


class Addresses(Protocol):
    """What of the Catalog is asked."""

    def address(self, token: str, service_object: str, stream: str | None) -> Address | None:
        """Look up what a request names, or None for an unknown token."""


def admit(target: str, authorization: str, catalog: Addresses) -> Admission | Refusal:
    """Decide on a request for `target` (path and query). Raises Unavailable."""
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    found = _PATH.fullmatch(parts.path)
    if found is None:
        return Refusal(404, "Streams are at /{service object}/streams/{stream}/live")
    token = _token(authorization, query.get("access_token", [""])[-1])
    if not token:
        return Refusal(403, "Missing Authorization Header")
    stream = StreamRef(unquote(found[1]), unquote(found[2]))
    # The store knows no such character, and says so with an error instead of "not found".
    address = catalog.address(*(part.replace("\0", "\ufffd") for part in (token, *stream)))
    refusal = _refusal(address)
    if address is None or address.stream_id is None or refusal is not None:
        return refusal or Refusal(403, "Access was denied!")
    after = _timestamp(query.get("after", [None])[-1])
    if isinstance(after, Refusal):
        return after
    foreign = address.owner != address.caller
    return Admission(stream, address.stream_id, after, address.version, foreign)


def _refusal(address: Address | None) -> Refusal | None:
    if address is None:
        return Refusal(403, "Access was denied!")
    if address.service_object is None:
        return Refusal(404, "The Service Object was not found.")
    if address.owner != address.caller and not address.public:
        return Refusal(401, "Not authorized")
    if address.stream_id is None:
        return Refusal(404, "This Service Object does not have this stream.")
    return None


def _timestamp(after: str | None) -> Timestamp | Refusal | None:
    if after is None:
        return None
    if not re.fullmatch(r"-?[0-9]{1,19}", after) or abs(int(after)) > _LARGEST:
        return Refusal(400, "after has to be a lastUpdate, an integer")
    return int(after)


def _token(header: str, parameter: str) -> str:
    """`Authorization: TOKEN`, `Authorization: Bearer TOKEN` or, for browsers, the parameter."""
    scheme, _, rest = header.strip().partition(" ")
    return (rest.strip() if scheme.lower() == "bearer" else header.strip()) or parameter
