"""Requests to the REST API in messages, as the original's bridge takes them."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

import orjson

from delivery.admission.refusals import Refusal, Refused
from delivery.rest_api import ApiResponse

JSON, TEXT = "application/json", "text/plain"
METHODS = frozenset({"GET", "PUT", "POST", "DELETE", "PATCH", "HEAD"})
NO_REQUEST = Refusal(400, "A request is {meta: {authorization, method, url}}")


class Request(NamedTuple):
    """One of them."""

    method: str
    path: str
    token: str
    body: bytes
    content_type: str
    message_id: object

    @classmethod
    def read(cls, payload: bytes) -> Request:
        """Return the request. Raises Refused."""
        try:
            found = orjson.loads(payload)
            meta = found["meta"]
            method, path, token = meta["method"].upper(), meta["url"], meta["authorization"]
            body = found.get("body")
        except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError) as error:
            raise Refused(NO_REQUEST) from error
        if method not in METHODS or not isinstance(token, str) or not _is_header(token):
            raise Refused(Refusal(400, "authorization is a token, method is one of HTTP's"))
        if not isinstance(path, str) or len(path) > 2_000:
            raise Refused(Refusal(400, "url is a path of at most 2000 characters"))
        path = quote("/" + path.lstrip("/"), safe="/?&=%:@!$'()*+,;~.-_")
        if path.startswith("/private"):
            raise Refused(Refusal(404, "There is no such address"))
        content, kind = b"", JSON
        if isinstance(body, str):
            content, kind = body.encode(errors="replace"), TEXT
        elif body is not None:
            content = orjson.dumps(body)
        return cls(method, path, token, content, kind, meta.get("messageId"))

    def reply(self, answer: ApiResponse) -> bytes:
        """Return the message that answers; the original's has no status, ours has one, too."""
        try:
            body = orjson.loads(answer.body) if answer.body else ""
        except orjson.JSONDecodeError:
            body = answer.body.decode(errors="replace")
        meta = {"messageId": self.message_id, "status": answer.status}
        return orjson.dumps({"meta": meta, "body": body})


def _is_header(text: str) -> bool:
    return len(text) <= 4_096 and text.isascii() and text.isprintable()
