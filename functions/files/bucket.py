"""A bucket of an S3-compatible store: listed, and read a part at a time.

The operator says which host that is; what it answers is bounded and leads nowhere: no redirect is
followed, no proxy is asked.
"""

from __future__ import annotations

import functools
import http.client
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from functions.files.signing import path_of, query_of, signed_headers
from functions.files.store import (
    MAX_KEY,
    PAGE,
    FileGone,
    FileRefused,
    Page,
    StoreAway,
    StoreRefuses,
)
from servioticy.domain.workflows.stores import Bucket
from servioticy.ports.atoms import Seen

SECONDS = 15.0
"""For each part of an answer to come."""
READ_SECONDS = 30.0
"""For a whole answer."""
MAX_LIST_BYTES = 8 * 1024 * 1024
MAX_ERROR_BYTES = 16_384
_GONE = frozenset({404, 412})


class RemoteBucket:
    """Asks one bucket; a connection for each question."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def page(self, prefix: str, after: str) -> Page:
        """Return the next files whose names begin so, behind that name."""
        own = self._bucket.prefix
        query = {
            "list-type": "2",
            "encoding-type": "url",
            "max-keys": str(PAGE),
            "prefix": own + prefix,
        }
        if after:
            query["start-after"] = own + after
        status, answer = self._ask("GET", "", query, {}, MAX_LIST_BYTES)
        if status != 200:
            raise self._wrong(status, answer)
        return _page(answer, own, after)

    def read(self, file: Seen, start: int, length: int) -> bytes:
        """Return a part of a file; less where it ends before.

        Raises FileGone and FileRefused.
        """
        if start >= file.size or length <= 0:
            return b""
        end = min(file.size, start + length)
        headers = {"range": f"bytes={start}-{end - 1}", "if-match": file.etag}
        name = self._bucket.prefix + file.key
        status, answer = self._ask("GET", name, {}, headers, length)
        if status in _GONE and b"NoSuchBucket" not in answer:
            raise FileGone("the file is not there any more as it was when it was listed")
        if status == 403 and b"<Code>AccessDenied</Code>" in answer:
            raise FileRefused("the store answers 403 AccessDenied")
        if status == 200 and start == 0 and len(answer) == file.size:
            return answer  # a whole one, though a part of it was asked for
        if status != 206:
            raise self._wrong(status, answer)
        if len(answer) != end - start:
            raise StoreAway("the store sends less than it was asked for")
        return answer

    def write(self, key: str, content: bytes) -> None:
        """Put a file, in the place of one of this name."""
        name = self._bucket.prefix + key
        status, answer = self._ask("PUT", name, {}, {}, MAX_ERROR_BYTES, content)
        if status not in (200, 201, 204):
            raise self._wrong(status, answer)

    def _ask(
        self,
        method: str,
        name: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        most: int,
        body: bytes = b"",
    ) -> tuple[int, bytes]:
        """Return status and answer, of which there are so many bytes at most."""
        bucket = self._bucket
        steps = (bucket.bucket, name) if name else (bucket.bucket,)
        path, asked = path_of(*steps), query_of(query)
        port = "" if bucket.port == (443 if bucket.is_secure else 80) else f":{bucket.port}"
        host = f"[{bucket.host}]{port}" if ":" in bucket.host else f"{bucket.host}{port}"
        signed = signed_headers(
            method, host, path, asked, headers, body, bucket.region, bucket.keys, time.time()
        )
        connection = _connection(bucket)
        try:
            where = f"{path}?{asked}" if asked else path
            connection.request(method, where, body or None, signed)
            response = connection.getresponse()
            limit = most if response.status in (200, 206) else MAX_ERROR_BYTES
            found = _read(response, limit + 1)
        except (OSError, http.client.HTTPException, ValueError) as error:
            what = getattr(error, "strerror", None) or type(error).__name__
            raise StoreAway(f"the store does not answer: {what}") from error
        finally:
            connection.close()
        if len(found) > limit and response.status in (200, 206):
            raise StoreRefuses("the store answers more than it was asked for")
        return response.status, found

    def _wrong(self, status: int, answer: bytes) -> StoreAway | StoreRefuses:
        """Return the error that an answer is; what the store says beside its code is not told."""
        code = ""
        with suppress(ElementTree.ParseError):
            code = (ElementTree.fromstring(answer).findtext("{*}Code") or "")[:100]  # noqa: S314
        if status >= 500 or status in (408, 425, 429):
            return StoreAway(f"the store answers {status} {code}".strip())
        return StoreRefuses(f"the store answers {status} {code}".strip())


def _connection(bucket: Bucket) -> http.client.HTTPConnection:
    if not bucket.is_secure:
        return http.client.HTTPConnection(bucket.host, bucket.port, timeout=SECONDS)
    return http.client.HTTPSConnection(
        bucket.host, bucket.port, timeout=SECONDS, context=_context()
    )


def _read(response: http.client.HTTPResponse, most: int) -> bytes:
    """Return so many bytes of an answer at most. Raises OSError where it comes too slowly."""
    until, parts, size = time.monotonic() + READ_SECONDS, [], 0
    while size < most and (part := response.read1(min(65_536, most - size))):
        parts.append(part)
        size += len(part)
        if time.monotonic() > until:
            raise TimeoutError("too slow")
    return b"".join(parts)


@functools.cache
def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _page(answer: bytes, own: str, after: str) -> Page:
    """Read a list, which an operator's store has written. Raises StoreRefuses."""
    try:
        root = ElementTree.fromstring(answer)  # noqa: S314  of a store that the operator trusts
        files = []
        last = after
        for each in root.findall("{*}Contents"):
            key = unquote_plus(each.findtext("{*}Key") or "")
            etag = each.findtext("{*}ETag") or ""
            size = int(each.findtext("{*}Size") or "")
            if not key.startswith(own):
                raise StoreRefuses("the store lists what it was not asked for")
            name = key.removeprefix(own)
            if name.encode() <= last.encode():
                raise StoreRefuses("the store does not list by the order of names")
            last = name
            is_kept = not name.endswith("/") and len(name.encode()) <= MAX_KEY and "\0" not in name
            if is_kept and etag and size >= 0:
                files.append(Seen(name, etag, size))
        goes_on = root.findtext("{*}IsTruncated") == "true" and last != after
    except (ElementTree.ParseError, ValueError) as error:
        raise StoreRefuses("the store does not answer with a list") from error
    return Page(files, last if goes_on else None)
