"""Before a client watches: what its request asks for, and whether it may have that.

Browsers may connect from any page with a token. A cookie counts for sockets of the console's
pages alone (`console.py` looks at `Origin`): a foreign page has nothing of the user's to ride on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from delivery.admission.refusals import (
    NO_SERVICE_OBJECT,
    NO_STREAM,
    NO_TOKEN,
    NOT_FOR_THIS,
    NOT_YOURS,
    UNKNOWN_TOKEN,
    Refusal,
)
from delivery.endings import Ending
from servioticy.dates import NoDate, moment_in_address
from servioticy.domain.access import Right, Scope, may
from servioticy.domain.documents.spelling import misspelt
from servioticy.domain.model import ServiceObjectKey, StreamKey, StreamRef, Timestamp
from servioticy.domain.tokens import read_token
from servioticy.ports.addresses import Address, Addresses, Lookup
from servioticy.ports.cursors import Source

_PATH = re.compile(r"/([^/]+)/streams/([^/]+)/(?:live|events)/?")
MAX_FIELDS = 20
"""Parameters of an address: to read one takes longer than to send it."""
PARAMETERS = ("after", "access_token", "wait", "limit", "cursor")
"""Of all addresses; one that resembles none of them is let through."""
_MAX_TIMESTAMP = 2**63 - 1


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """A request to watch a stream names it, and the token that gives the right to."""

    stream: StreamRef
    token: str
    after: str | None


@dataclass(frozen=True, slots=True)
class Admission:
    """The caller may watch this stream, from after a timestamp on if one is named."""

    stream: StreamRef
    key: StreamKey
    """the stream in the store"""
    after: Timestamp | None
    version: int
    """The version of the document by which the stream was found to be readable."""
    foreign: bool
    """Whether the stream is another tenant's."""
    tenant: int
    """The tenant who watches."""
    partition: int
    """Where the stream's updates are computed, and emitted."""
    token: str
    known_by: bytes
    expires_in: float | None = None
    changes: int = 0

    @property
    def lookup(self) -> Lookup:
        """What it was decided by."""
        return Lookup(self.token, *self.stream)

    def ending(self, address: Address | None) -> Ending | None:
        """Return why the stream may not be watched any more."""
        refusal = _refusal(address, self.stream)
        return None if refusal is None else refusal.ending


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks for something of its own, such as a subscription."""

    tenant: int
    scope: Scope
    """What its token is for."""
    token: str
    known_by: bytes
    expires_in: float | None = None
    changes: int = 0

    @property
    def lookup(self) -> Lookup:
        """What it was found out by."""
        return Lookup(self.token, None, None)

    def ending(self, address: Address | None) -> Ending | None:
        """Return why he has to go: his token is not good any more, or for something else."""
        is_same = address is not None and (address.caller, address.scope) == (
            self.tenant,
            self.scope,
        )
        return None if is_same else Ending.REVOKED

    def may_pull(self, source: Source) -> bool:
        """Return whether its token reaches what a subscription is about.

        Members of a group come and go, of whatever Service Object.
        """
        named = source.service_object if source.group is None else None
        return self.scope.reaches(named, source.stream, Right.SUBSCRIBE)


def read_request(target: str, authorization: str) -> WatchRequest | Refusal:
    """Read a request for `target` (path and query, as sent) without asking the store."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return Refusal(400, "This is not an address")
    query = fields_of(parts.query)
    if isinstance(query, Refusal):
        return query
    found = _PATH.fullmatch(parts.path)
    if found is None:
        return Refusal(404, "Streams are at /{service object}/streams/{stream}/live")
    token = token_of(query, authorization)
    if isinstance(token, Refusal):
        return token
    stream = StreamRef(storable(unquote(found[1])), storable(unquote(found[2])))
    return WatchRequest(stream, token, query.get("after", [None])[-1])


def fields_of(query: str) -> dict[str, list[str]] | Refusal:
    """Return what stands behind the question mark of an address."""
    try:
        found = parse_qs(query, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return Refusal(400, f"An address has at most {MAX_FIELDS} parameters")
    told = misspelt(found, PARAMETERS)
    return Refusal(400, told) if told else found


def token_of(query: Mapping[str, list[str]], authorization: str) -> str | Refusal:
    """Return the token of a request: browsers cannot set headers of WebSockets and events."""
    token = read_token(authorization) or query.get("access_token", [""])[-1]
    return storable(token) if token else NO_TOKEN


def identify(token: str, addresses: Addresses, changes: int = 0) -> Identity | Refusal:
    """Find out whose token this is. Blocks; raises Unavailable."""
    address = addresses.address(token, None, None)
    if address is None:
        return UNKNOWN_TOKEN
    known_by, expires_in = address.known_by, address.expires_in
    return Identity(address.caller, address.scope, token, known_by, expires_in, changes)


def admit_device(
    token: str, service_object: str, addresses: Addresses
) -> ServiceObjectKey | Refusal:
    """Decide whether the caller may speak for a device. Blocks; raises Unavailable."""
    address = addresses.address(token, service_object, None)
    if address is None:
        return UNKNOWN_TOKEN
    if not address.scope.reaches(service_object, None, Right.SEND):
        return NOT_FOR_THIS
    if address.key is None:
        return NO_SERVICE_OBJECT
    return address.key if may(address.caller, Right.SEND, address.resource) else NOT_YOURS


def admit(request: WatchRequest, addresses: Addresses, changes: int = 0) -> Admission | Refusal:
    """Decide on a request by what the store says. Blocks; raises Unavailable.

    So many changes of who may do what had been heard of before.
    """
    address = addresses.address(request.token, *request.stream)
    refusal = _refusal(address, request.stream)
    if address is None or address.stream is None or refusal is not None:
        return refusal or UNKNOWN_TOKEN
    after = _timestamp(request.after)
    if isinstance(after, Refusal):
        return after
    foreign = address.owner != address.caller
    return Admission(
        request.stream,
        address.stream,
        after,
        address.version,
        foreign,
        address.caller,
        address.partition,
        request.token,
        address.known_by,
        address.expires_in,
        changes,
    )


def _refusal(address: Address | None, stream: StreamRef) -> Refusal | None:
    if address is None:
        return UNKNOWN_TOKEN
    if not address.scope.reaches(*stream, Right.SUBSCRIBE):
        return NOT_FOR_THIS
    if address.service_object is None:
        return NO_SERVICE_OBJECT
    if not may(address.caller, Right.SUBSCRIBE, address.resource):
        return NOT_YOURS
    if address.stream is None:
        return NO_STREAM
    return None


def _timestamp(after: str | None) -> Timestamp | Refusal | None:
    if after is None:
        return None
    try:
        return moment_in_address(after, -_MAX_TIMESTAMP, _MAX_TIMESTAMP)
    except NoDate as error:
        return Refusal(400, f"after {error}")


def storable(text: str) -> str:
    """Replace characters at which the store would fail instead of finding nothing."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")
