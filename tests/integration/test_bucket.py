"""A bucket of a real S3-compatible store; signatures are compared with those of boto3."""

from __future__ import annotations

import hashlib
import socketserver
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from object_store import ObjectStore, object_store

from functions.files import bucket as buckets
from functions.files.bucket import RemoteBucket
from functions.files.signing import path_of, query_of, signed_headers
from functions.files.store import FileGone, StoreAway, StoreRefuses
from servioticy.domain.workflows.stores import Bucket, Keys, stores
from servioticy.ports.atoms import Seen

pytest.importorskip("moto", reason="the S3-compatible store of the tests is not installed")
LINES = b"".join(b'{"n":%d}\n' % n for n in range(1_000))


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as found:
        found.client.create_bucket(Bucket="lake")
        yield found


def opened(store: ObjectStore, tenant: str, bucket: str = "lake", **more: str) -> RemoteBucket:
    found = stores({"in": store._replace(**more).url(bucket, "raw/{tenant}")})["in"].of(tenant)
    assert isinstance(found, Bucket)
    return RemoteBucket(found)


def put(store: ObjectStore, tenant: str, key: str, content: bytes = b"x") -> None:
    store.client.put_object(Bucket="lake", Key=f"raw/{tenant}/{key}", Body=content)


def test_files_are_listed_by_their_names_and_no_others(store: ObjectStore) -> None:
    names = ["b", "a/z", "a-b", "a b", "a/ü+%", "a/<&>", "folder/"]
    for each in names:
        put(store, "t1", each)
    put(store, "t11", "other")
    asked = opened(store, "t1")

    page = asked.page("", "")

    assert [each.key for each in page.files] == sorted(names[:-1], key=str.encode)
    assert page.upto is None
    assert [each.key for each in asked.page("a/", "a/<&>").files] == ["a/z", "a/ü+%"]


def test_pages_follow_each_other(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "PAGE", 2)
    for each in ("a", "b/", "c"):
        put(store, "t2", each)
    asked = opened(store, "t2")

    first = asked.page("", "")
    second = asked.page("", first.upto or "")

    assert ([each.key for each in first.files], first.upto) == (["a"], "b/")
    assert ([each.key for each in second.files], second.upto) == (["c"], None)


def test_a_part_is_read_of_the_very_file_that_was_listed(store: ObjectStore) -> None:
    put(store, "t3", "ü/lines", LINES)
    asked = opened(store, "t3")
    (file,) = asked.page("", "").files

    assert file.size == len(LINES)
    assert asked.read(file, 8, 9) == LINES[8:17]
    assert asked.read(file, len(LINES) - 4, 99) == LINES[-4:]
    assert asked.read(file, 0, 10**6) == LINES
    assert asked.read(file, len(LINES), 9) == b""
    put(store, "t3", "ü/lines", b"other")
    with pytest.raises(FileGone):
        asked.read(file, 8, 9)
    store.client.delete_object(Bucket="lake", Key="raw/t3/ü/lines")
    with pytest.raises(FileGone):
        asked.read(file, 8, 9)


names = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=9)
odd_names = st.one_of(
    names, st.sampled_from(["a b", "a+b", "a%2Fb", "a//b", "/a", "ü/é", "~-_.", "x=y&z", "#?", ""])
)
"""Of any characters, and those that are written in a way of their own."""
header_values = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=9)


@given(
    st.sampled_from(["GET", "PUT"]),
    odd_names,
    st.dictionaries(odd_names, odd_names, max_size=4),
    st.dictionaries(
        st.sampled_from(["x-amz-meta-b", "x-amz-acl", "range", "Range"]), header_values
    ),
    st.binary(max_size=9),
    names,
)
def test_requests_are_signed_as_boto3_signs_them(
    method: str,
    name: str,
    query: dict[str, str],
    headers: dict[str, str],
    body: bytes,
    secret: str,
) -> None:
    """By botocore's own code, whatever is in names, queries, headers and bodies."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    headers = {each.lower(): value for each, value in headers.items()} | {"if-match": '"1"'}
    at, host = 1_700_000_000.0, "s3.example.org:9000"
    path, asked = path_of("lake", "k" + name), query_of(query)
    ours = signed_headers(method, host, path, asked, headers, body, "eu", Keys("k", secret), at)
    url = f"http://{host}{path}" + (f"?{asked}" if asked else "")
    digest = hashlib.sha256(body).hexdigest()
    theirs = AWSRequest(method, url, {**headers, "x-amz-content-sha256": digest}, body)
    theirs.context["timestamp"] = ours["x-amz-date"]
    auth = S3SigV4Auth(Credentials("k", secret), "s3", "eu")
    theirs.headers["X-Amz-Date"] = ours["x-amz-date"]
    text = auth.string_to_sign(theirs, auth.canonical_request(theirs))

    assert ours["authorization"].rpartition("=")[2] == auth.signature(text, theirs)


def test_a_store_that_looks_at_signatures_takes_ours_and_no_others(store: ObjectStore) -> None:
    """Also those with names that are written in another way than they are said."""
    names = ["a b", "a+b", "ü/é", "x=y&z", "50%"]
    asked = opened(store, "t 7+ü")
    for each in names:
        asked.write(each, each.encode())

    files = {each.key: each for each in asked.page("", "").files}
    assert files.keys() == set(names)
    assert [asked.read(files[each], 0, 99) for each in names] == [each.encode() for each in names]
    for prefix in ("a+", "ü/", "x=y&"):
        (found,) = asked.page(prefix, "").files
        assert found.key.startswith(prefix)
    with pytest.raises(StoreRefuses, match="403 SignatureDoesNotMatch"):
        opened(store, "t7", secret="another").page("", "")


def test_a_bucket_that_is_not_there_is_told(store: ObjectStore) -> None:
    asked = opened(store, "t1", bucket="nowhere")

    with pytest.raises(StoreRefuses, match="404 NoSuchBucket"):
        asked.page("", "")
    with pytest.raises(StoreRefuses, match="404 NoSuchBucket"):
        asked.read(Seen("a", '"1"', 9), 0, 9)


class _Answers(socketserver.StreamRequestHandler):
    """Answers each request with what the server has been told to."""

    def handle(self) -> None:
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        self.wfile.write(self.server.answer)  # type: ignore[attr-defined]


@pytest.fixture
def odd() -> Iterator[socketserver.TCPServer]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


HEAD = b"HTTP/1.1 %s\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (HEAD % b"302 Found\r\nLocation: http://127.0.0.1:1/", StoreRefuses),
        (HEAD % b"403 No" + b"<Error><Code>SignatureDoesNotMatch</Code></Error>", StoreRefuses),
        (HEAD % b"503 Slow Down", StoreAway),
        (HEAD % b"200 OK" + b"<a>", StoreRefuses),
        (HEAD % b"200 OK" + b"x" * 2_000, StoreRefuses),
        (b"nonsense\r\n\r\n", StoreAway),
        (b"", StoreAway),
    ],
)
def test_what_a_store_answers_leads_nowhere_and_is_bounded(
    odd: socketserver.TCPServer,
    answer: bytes,
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buckets, "MAX_LIST_BYTES", 1_000)
    odd.answer = answer  # type: ignore[attr-defined]
    port = odd.server_address[1]

    with pytest.raises(error):
        RemoteBucket(Bucket("127.0.0.1", port, False, "b", "", "us-east-1", Keys("k", "s"))).page(
            "", ""
        )


def test_an_object_is_put_in_the_place_of_another(store: ObjectStore) -> None:
    """In the tenant's own part, signed over what it has."""
    asked = opened(store, "t9")
    for content in (b"", LINES):
        asked.write("out/date=2025-11-27/ü", content)

        (file,) = asked.page("out/", "").files
        assert (file.key, file.size) == ("out/date=2025-11-27/ü", len(content))
    assert asked.read(file, 0, len(LINES)) == LINES
    with pytest.raises(StoreRefuses, match="NoSuchBucket"):
        opened(store, "t9", "gone").write("a", b"1")
