"""What arrives on a connection: request after request, each taken out when it is there."""

from __future__ import annotations

import re

from api.edge.framing import Body
from operators.archives import MAX_ARCHIVE_BYTES
from servioticy.domain.console import API
from servioticy.domain.tokens import read_token
from servioticy.http_heads import MAX_HEAD, Head, Malformed, parse

_END = b"\r\n\r\n"
MAX_AHEAD = MAX_HEAD + len(_END)
"""Bytes read at once where nobody knows whose they are: the largest head, or requests ahead."""
_AUTHORIZATION = re.compile(rb"\r\nauthorization:([^\r\n]+)\r\n", re.IGNORECASE)
TOKEN_WITHIN = 2_048
"""Bytes of a head that are searched for a token before it is read."""

REMEMBERED_HEAD = 1_024
"""Bytes of a head of which it is remembered what it says, until another one comes."""

ARCHIVES = ("/operators/", f"{API}/operators/")
"""Below it bodies are programs; how large all others may be is a setting."""


class Incoming:
    """Bytes that have arrived and are not worked on yet. Knows nothing of sockets."""

    def __init__(self, largest_body: int) -> None:
        self._largest_body = largest_body
        self._arrived = bytearray()
        self._looked = 0
        """so many of the arrived bytes hold no end of a head"""
        self._last: tuple[bytes, Head] | None = None
        """the last head that was taken: a device sends the same one again and again"""
        self._body: Body | None = None

    def add(self, data: memoryview) -> None:
        """These have arrived."""
        self._arrived += data

    def clear(self) -> None:
        """Throw away whatever has arrived."""
        self._arrived.clear()
        self._looked = 0
        self._body = None
        self._last = None

    def is_empty(self) -> bool:
        """Tell whether nothing has arrived beyond what was taken out, and of the present body."""
        return not self._arrived

    def size(self) -> int:
        """Return how many bytes are kept here."""
        return len(self._arrived) + (len(self._body.content) if self._body is not None else 0)

    def room(self) -> int:
        """Return how many bytes to read next, at most; never 0, which would be taken for the end.

        What follows a request may be anything, and is never much more than MAX_AHEAD.
        """
        if self._body is not None:
            return max(self._body.left, MAX_AHEAD)
        return max(MAX_AHEAD - len(self._arrived), 1)

    def first_token(self) -> str:
        """Return the token in what has arrived of a head, once: later it is empty."""
        if self._looked:
            return ""
        self._looked = 1
        return first_token(self._arrived)

    def take_head(self) -> Head | None:
        """Return the head of the next request, if all of it has arrived. Raises Malformed."""
        arrived = self._arrived
        while arrived.startswith(b"\r\n"):  # some clients end a body so
            del arrived[:2]
        end = arrived.find(_END, max(0, self._looked - 3))
        if end > MAX_HEAD or (end < 0 and len(arrived) >= MAX_AHEAD):
            raise Malformed(431, "The head of the request is too long")
        self._looked = len(arrived)
        if end < 0:
            return None
        head = self._read(bytes(arrived[:end]))
        del arrived[: end + len(_END)]
        self._looked = 0
        return head

    def _read(self, content: bytes) -> Head:
        if self._last is not None and self._last[0] == content:
            return self._last[1]
        head = parse(content)
        self._last = (content, head) if len(content) <= REMEMBERED_HEAD else None
        return head

    def begin_body(self, head: Head) -> None:
        """What arrives now is the body of that request. Raises TooMuch."""
        is_archive = head.method == "PUT" and head.path.startswith(ARCHIVES)
        self._body = Body(head, MAX_ARCHIVE_BYTES if is_archive else self._largest_body)

    @property
    def has_more(self) -> bool:
        """Whether more of the body has arrived than one turn takes."""
        return self._body is not None and self._body.has_more

    def take_body(self) -> bytes | None:
        """Return the body, once it is whole. Raises Malformed and TooMuch."""
        body = self._body
        if body is None or not body.take(self._arrived):
            return None
        self._body = None
        return bytes(body.content)


def first_token(begin: bytes | bytearray) -> str:
    """Return the token that the beginning of a head shows, if it does."""
    found = _AUTHORIZATION.search(begin, 0, TOKEN_WITHIN)
    return "" if found is None else read_token(found[1].decode("latin-1"))
