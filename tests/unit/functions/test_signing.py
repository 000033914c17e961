"""Signatures are those of the examples that AWS has published for S3."""

from __future__ import annotations

import calendar

import pytest

from functions.files.signing import path_of, query_of, signed_headers
from servioticy.domain.workflows.stores import Keys

KEYS = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
AT = float(calendar.timegm((2013, 5, 24, 0, 0, 0)))


@pytest.mark.parametrize(
    ("path", "query", "headers", "signature"),
    [
        (
            "/test.txt",
            {},
            {"Range": "bytes=0-9"},
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "/",
            {"max-keys": "2", "prefix": "J"},
            {},
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_examples_of_the_specification(
    path: str, query: dict[str, str], headers: dict[str, str], signature: str
) -> None:
    host = "examplebucket.s3.amazonaws.com"

    found = signed_headers("GET", host, path, query_of(query), headers, b"", "us-east-1", KEYS, AT)

    assert found["authorization"].endswith(f"Signature={signature}")
    assert found["authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
    )


def test_names_are_written_as_they_are_signed() -> None:
    assert path_of("bucket", "a b/ü+~") == "/bucket/a%20b/%C3%BC%2B~"
    assert query_of({"prefix": "a/b c", "list-type": "2"}) == "list-type=2&prefix=a%2Fb%20c"
