"""`Idempotency-Key`: a request that comes again gets the answer of the first, for a day."""

from __future__ import annotations

import hashlib
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import orjson
from flask import Response, request

from api.http.answers import stored
from api.http.authentication import authenticated
from servioticy.domain.tokens import digest
from servioticy.errors import Unavailable
from servioticy.ports.statements import Statements
from servioticy.refusals import Conflict, Refused, TooMany

HEADER = "Idempotency-Key"
REPLAYED = {"Idempotency-Replayed": "true"}
KEPT = ("Location", "ETag", "Warning")
DAY_MS = 86_400_000
ABANDONED_MS = 300_000
"""An attempt that has not answered by then was killed: no request takes so long."""
MAX_KEYS = 100_000
MAX_BYTES = 67_108_864
"""What is held for one tenant: keys, and answers."""
KNOWN_MS = 5_000
"""So old may be what is known of how much is held: to count it costs time."""
MAX_KNOWN = 10_000
_KEY = re.compile(r"[\x21-\x7e]{1,200}")

View = Callable[..., Response]


class OtherRequest(Refused):
    """The key came with another request before."""

    status = 422


class Idempotency:
    """Stored answers, by tenant and key."""

    def __init__(self, statements: Statements, now: Callable[[], int]) -> None:
        """Ask these statements; `now` gives milliseconds."""
        self._statements = statements
        self._now = now
        self._lock = threading.Lock()
        self._full: OrderedDict[int, tuple[int, bool]] = OrderedDict()

    def once(self, view: View) -> View:
        """Return a view that works once for each key, and answers again what it answered."""

        @wraps(view)
        def answered(**names: Any) -> Response:
            key = request.headers.get(HEADER)
            if key is None:
                return view(**names)
            if _KEY.fullmatch(key) is None:
                raise Refused(f"{HEADER} has to be 1 to 200 visible characters of ASCII")
            return self._answered({"tenant": authenticated().caller, "key": key}, view, names)

        return answered

    def _answered(self, place: dict[str, Any], view: View, names: dict[str, Any]) -> Response:
        now, attempt, asked = self._now(), uuid.uuid4().hex, _digest()
        ages = {"now": now, "forgotten": now - DAY_MS, "abandoned": now - ABANDONED_MS}
        self._statements.rows("forget", **place, forgotten=ages["forgotten"])
        if self._is_full(place["tenant"], now):
            raise TooMany(f"Too many answers are kept for your {HEADER}s: send some without one")
        begun = self._statements.row("begin", **place, **ages, digest=asked, attempt=attempt)
        if begun is None:
            return self._again(place, asked)
        try:
            found = view(**names)
        except BaseException:
            # Nothing was promised, and the key is free: a request that is mended may have it.
            with suppress(Unavailable):
                self._statements.rows("give_up", **place, attempt=attempt)
            raise
        headers = {name: found.headers[name] for name in KEPT if name in found.headers}
        kept = {"status": found.status_code, "headers": orjson.dumps(headers).decode()}
        self._statements.rows(
            "answer", **place, **kept, attempt=attempt, body=_sealed(found.get_data(), attempt)
        )
        return found

    def _again(self, place: dict[str, Any], asked: bytes) -> Response:
        row = self._statements.row("answered", **place)
        if row is None:
            raise Conflict(f"The first request with this {HEADER} has just failed; try again")
        before, attempt, status, headers, body = row
        if bytes(before) != asked:
            raise OtherRequest(f"Another request came with this {HEADER} before")
        if status is None:
            raise Conflict(f"The first request with this {HEADER} is still being worked on")
        return stored(_sealed(bytes(body), attempt), status, orjson.loads(headers) | REPLAYED)

    def _is_full(self, tenant: int, now: int) -> bool:
        with self._lock:
            known = self._full.get(tenant)
            if known is not None and now - known[0] <= KNOWN_MS:
                return known[1]
        count, size = self._statements.row("held", tenant=tenant) or (0, 0)
        with self._lock:
            self._full[tenant] = now, count >= MAX_KEYS or size >= MAX_BYTES
            self._full.move_to_end(tenant)
            if len(self._full) > MAX_KNOWN:
                self._full.popitem(last=False)
            return self._full[tenant][1]


def _sealed(content: bytes, attempt: str) -> bytes:
    """Return the content so that only who has the token of the present request can read it, or
    such a content as it was: an answer may tell a token, and these are stored nowhere.
    """
    secret = f"{authenticated().token}\0{attempt}".encode("utf-8", "surrogateescape")
    stream = hashlib.shake_256(secret).digest(len(content))
    mixed = int.from_bytes(content, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(content), "big")


def _digest() -> bytes:
    """Return what tells this request from any other."""
    found = hashlib.sha256(digest(authenticated().token))
    for part in (request.method, request.full_path, request.headers.get("Content-Type", "")):
        found.update(part.encode("utf-8", "surrogateescape") + b"\0")
    found.update(request.get_data(cache=True))
    return found.digest()
