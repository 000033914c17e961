"""Signatures of requests to S3-compatible stores: AWS Signature Version 4, in a header.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from urllib.parse import quote

from servioticy.domain.workflows.stores import Keys

_ALGORITHM = "AWS4-HMAC-SHA256"
_SAFE = "-_.~"


def path_of(*steps: str) -> str:
    """Return the path of a bucket, or of a name in it, as it is asked for and signed."""
    return "/" + "/".join(quote(each, safe=_SAFE + "/") for each in steps)


def query_of(parameters: Mapping[str, str]) -> str:
    """Return the query as it is asked for and signed."""
    pairs = sorted((quote(k, safe=_SAFE), quote(v, safe=_SAFE)) for k, v in parameters.items())
    return "&".join(f"{key}={value}" for key, value in pairs)


def signed_headers(
    method: str,
    host: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    region: str,
    keys: Keys,
    seconds: float,
) -> dict[str, str]:
    """Return the headers with those that prove who asks; all of them are signed.

    `host` as the header says it; `seconds` since 1970.
    """
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))
    digest = hashlib.sha256(body).hexdigest()
    every = {each.lower(): " ".join(value.split()) for each, value in headers.items()}
    every |= {"host": host, "x-amz-content-sha256": digest, "x-amz-date": at}
    names = ";".join(sorted(every))
    lines = "".join(f"{each}:{every[each]}\n" for each in sorted(every))
    asked = "\n".join([method, path, query, lines, names, digest])
    scope = f"{at[:8]}/{region}/s3/aws4_request"
    told = "\n".join([_ALGORITHM, at, scope, hashlib.sha256(asked.encode()).hexdigest()])
    key = f"AWS4{keys.secret}".encode()
    for each in scope.split("/"):
        key = hmac.new(key, each.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, told.encode(), hashlib.sha256).hexdigest()
    proof = f"{_ALGORITHM} Credential={keys.id}/{scope}, SignedHeaders={names}, "
    return every | {"authorization": f"{proof}Signature={signature}"}
