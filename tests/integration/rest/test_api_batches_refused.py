"""Batches that are refused, as a whole or in part, and who may not send them."""

from __future__ import annotations

import json

import pytest
from api_builders import Caller, Served
from update_batches import CSV, NDJSON, SENML, TWO, named, post, taken, update

from api.http.quotas import Quotas
from servioticy.domain.batches import items
from servioticy.domain.quotas import Exceeded, quotas
from servioticy.settings import Settings


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"[", "", "not-json"),
        (b"[1,]", "", "not-json"),
        (b"{}", "", "wrong-type"),
        (b"\xef\xbb\xbf[]", "", "not-json"),
        (b"\xff\xfe[\0]\0", "", "not-json"),
        (b"[" * 15_000, "", "not-json"),
        (b"1", SENML, "wrong-type"),
        (b"[", SENML, "not-json"),
        (b"lastUpdate,x,x\n1,1,1", CSV, "duplicate"),
        (b"x\n1", CSV, "required"),
        (b'lastUpdate,x\n1,"2', CSV, "not-csv"),
        (b"lastUpdate,x\n1,\xff", CSV, "not-csv"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_as_a_whole(
    body: bytes, content_type: str, code: str, served: Served, alice: Caller
) -> None:
    so = alice.create(TWO)

    answer = post(alice, f"/{so}/streams/a/updates", body, content_type)

    assert answer.status_code == 400, answer.text
    assert answer.get_json()["code"] in (code, "too-nested")
    assert taken(served) == []


@pytest.mark.parametrize(
    ("content_type", "more"),
    [
        ("application/x-www-form-urlencoded; charset=utf-16", {}),
        ("multipart/form-data; boundary=x", {}),
        ("application/xml", {}),
        ("text/plain", {}),
        ("application/json; charset=utf-16", {}),
        ("nonsense", {}),
        ("application/json", {"Content-Encoding": "gzip"}),
    ],
)
def test_other_content_types_are_told_what_is_taken(
    content_type: str, more: dict[str, str], alice: Caller
) -> None:
    so = alice.create(TWO)
    headers = {"Content-Type": content_type} | more

    answer = alice.ask("POST", f"/{so}/streams/a/updates", data=b"[]", headers=headers)

    assert answer.status_code == 415


HOSTILE: list[bytes] = [
    b"[]",
    b"[NaN]",
    b"[{}]",
    b"[null,true,[],1e400,-0]",
    b'["\\ud800"]',
    b"[\xff]",
    b'[{"channels":{"x":{"current-value":1e400}},"lastUpdate":1}]',
    b'[{"channels":{"x":{"current-value":' + b"9" * 10_000 + b'}},"lastUpdate":1}]',
    b'[{"channels":{"x":{"current-value":"1"}},"lastUpdate":1}]',
    b'[{"channels":{"__proto__":{"current-value":1}},"lastUpdate":1}]',
    b'[{"channels":{"constructor":{"current-value":1}},"lastUpdate":1.5}]',
    b'[{"channels":{"x":{"current-value":1}},"lastUpdate":9223372036854775808}]',
    b'[{"channels":{"x":{"current-value":1}},"lastUpdate":"1"}]',
    b'[{"channels":{"x":{"current-value":1}},"lastUpdate":253402300799000}]',
    b'[{"a":' + b'{"a":' * 3_000 + b"1" + b"}" * 3_001 + b"]",
    b'[{"serviceObject":"\' OR 1=1 --","stream":"%","update":{}}]',
    b'[{"serviceObject":"../x","stream":"a\\u0000","update":{}}]',
    b'[{"serviceObject":"x","stream":"\\ud800","update":{}}]',
    b'[{"serviceObject":"' + b"x" * 10_000 + b'","stream":"a","update":1}]',
]


@pytest.mark.parametrize("content_type", ["application/json", NDJSON, CSV, SENML])
@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_hostile_batches_are_refused_and_leave_nothing(
    body: bytes, content_type: str, many: bool, served: Served, alice: Caller
) -> None:
    """Each in every form, whatever it is meant to be."""
    so = alice.create(TWO)

    answer = post(alice, "/updates" if many else f"/{so}/streams/a/updates", body, content_type)

    assert answer.status_code in (202, 207, 400)
    assert answer.status_code == 400 or answer.get_json()["accepted"] == 0
    assert taken(served) == []


def test_items_and_streams_of_a_batch_are_counted(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    so = alice.create(TWO)
    monkeypatch.setattr(items, "MAX_ITEMS", 3)
    monkeypatch.setattr(items, "MAX_STREAMS", 2)

    def one(count: int) -> int:
        batch = [update(n) for n in range(count)]
        return post(alice, f"/{so}/streams/a/updates", batch).status_code

    def many(count: int) -> int:
        return post(alice, "/updates", [named(so, f"{n}", 1) for n in range(count)]).status_code

    assert (one(3), one(4), many(2), many(3)) == (202, 400, 207, 400)


def test_a_batch_that_the_broker_does_not_take_is_not_accepted(
    served: Served, alice: Caller
) -> None:
    so = alice.create(TWO)
    served.platform.state.broker_answers = False

    answer = post(alice, f"/{so}/streams/a/updates", [update(1)])

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


def test_a_batch_counts_as_its_updates_and_more(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand short updates cost more than one long one."""
    so = alice.create(TWO)
    sizes: list[int] = []

    def used_up(_self: Quotas, _tenant: int, number: int, size: int) -> Exceeded:
        assert number == 2
        sizes.append(size)
        return Exceeded(quotas(Settings())["update-bytes"], 1)

    monkeypatch.setattr(Quotas, "send", used_up)

    answer = post(alice, f"/{so}/streams/a/updates", [update(1), update(2), 7])

    document = len(json.dumps(update(1), separators=(",", ":")))
    assert (answer.status_code, sizes) == (429, [2 * (document + 64)])
    assert answer.headers["Retry-After"] == "1"
    assert taken(served) == []


@pytest.mark.parametrize("path", ["/{so}/streams/none/updates", "/none/streams/a/updates"])
def test_an_unknown_stream_is_not_found(path: str, alice: Caller) -> None:
    so = alice.create(TWO)

    assert post(alice, path.format(so=so), [update(1)]).status_code == 404


def test_only_the_owner_sends(served: Served, alice: Caller, bob: Caller) -> None:
    so = alice.create(TWO | {"public": True})

    answer = post(bob, f"/{so}/streams/a/updates", [update(1)])

    assert answer.status_code == 401
    assert post(Caller(bob.client, ""), "/updates", []).status_code == 403
    assert taken(served) == []
