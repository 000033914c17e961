"""What a control record brings about in the store, together with the progress past it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from servioticy.domain.model import StreamRef, Timestamp
from servioticy.ports.borders import OutsideReader


class Activate(NamedTuple):
    """A version is in force from here on, if the change is a later one.

    Of what its groups name, streams of other tenants are inputs from outside: those that it had
    not named before are so from here on, each open if it may be read just now, with the stream's
    last update as it is stored just now where it is `kept`; those that it does not name any more
    are forgotten.
    """

    service_object: str
    version: int
    change: int
    members: tuple[StreamRef, ...] = ()
    """all that its groups name, its own tenant's streams too"""
    kept: tuple[StreamRef, ...] = ()
    """those of them that some composite reads beside another trigger"""


class ActivateAll(NamedTuple):
    """The same of many Service Objects, each once, that neither name others' streams nor did."""

    changes: tuple[Activate, ...]


class Delete(NamedTuple):
    """A Service Object is gone from here on; what is stored of it is left to `purge`.

    So are its inputs from outside, and what others read of it.
    """

    service_object: str


class Erase(NamedTuple):
    """A stream's updates are forgotten, if the change is a later one.

    What comes is stored under another number (see `service_objects`); what there was is left
    to `purge`.
    """

    service_object: str
    stream: str
    change: int


class Allow(NamedTuple):
    """Composites read by this grant from here on, unless its end has been told already."""

    grant: str


class Revoke(NamedTuple):
    """No composite reads by this grant from here on; it is forgotten."""

    grant: str


class Release(NamedTuple):
    """Service Objects are computed in another partition from here on."""

    service_objects: tuple[str, ...]
    to_partition: int


class Read(NamedTuple):
    """A Service Object of another tenant reads these streams from here on, and no others of this
    provider's that are computed in this partition, unless `ends` is false.

    Rows of it with a later change stay as they are.
    """

    reader: str
    provider: int
    change: int
    rows: tuple[OutsideReader, ...]
    ends: bool = True


class BeginInputs(NamedTuple):
    """What comes of these streams feeds these readers from here on, and may be read.

    Only where a reader's version in force names the stream. Their last updates are these. Where
    the readers were fed `moved_from` another partition, they await the End of that from `source`,
    unless it has come already, and what they know stays. Where it was `forwarded` only what they
    know changes, and whether they may read.
    """

    tenant: int
    readers: tuple[str, ...]
    provider: int
    streams: tuple[tuple[StreamRef, Timestamp | None, bytes | None], ...]
    source: tuple[int, int]
    """partition and offset: an older Begin of the same partition changes nothing"""
    moved_from: int | None = None
    forwarded: bool = False
    changes: tuple[int, ...] = ()
    """by which each of the readers reads: a stream that one has named by a later change is not
    begun; of none it is not known"""


class EndInputs(NamedTuple):
    """Nothing of these streams feeds these readers here from now on.

    They may not be read any more, and their last updates are forgotten. Or the readers have
    `moved`: this partition sends nothing on any more, and that is all. Or what another one sent on
    has `arrived`: the readers await it no longer, and what the tenant has held waits for its turn
    from now on, if it awaits nothing else in the partition.
    """

    tenant: int
    readers: tuple[str, ...]
    streams: tuple[StreamRef, ...]
    source: tuple[int, int]
    """as of a Begin; where what was sent on has arrived, that of the Begin that moved them"""
    moved: bool = False
    arrived: bool = False


Effect: TypeAlias = (
    Activate
    | ActivateAll
    | Delete
    | Erase
    | Allow
    | Revoke
    | Release
    | Read
    | BeginInputs
    | EndInputs
)
"""What a control record brings about in the store, together with the progress past it."""
