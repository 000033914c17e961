"""Who changes or deletes what is read is told by whom: one's own by name, others by number."""

from __future__ import annotations

from typing import Any

from api_builders import SIMPLE, Caller
from changing_documents import CHANNEL, composite
from granting import give, id_of
from werkzeug.test import TestResponse

TEXT = {"streams": {"a": {"channels": {"x": {"type": "string"}}}}}
OFFICE: dict[str, Any] = {
    "version": "0.2.0",
    "streams": {
        "a": {"channels": {"x": CHANNEL, "y": CHANNEL}},
        "twice": {
            "channels": {
                "x": {"type": "number", "current-value": "function(a) { return iot.value(a) * 2 }"}
            }
        },
    },
}


def put(caller: Caller, so: str, document: dict[str, Any]) -> TestResponse:
    return caller.ask("PUT", f"/{so}", json=document)


def test_a_channel_of_another_type_names_its_readers(alice: Caller, bob: Caller) -> None:
    """In the answer, and in its head, which tools show."""
    so = alice.create({**SIMPLE, "public": True})
    own = [alice.create(composite("g", g=([so], "a"))) for _ in range(2)]
    theirs = bob.create(composite("g", g=([so], "a")))

    answer = put(alice, so, {**TEXT, "public": True})

    assert answer.status_code == 200
    (told,) = answer.get_json()["warnings"]
    assert told == (
        f"of stream a channel x was number and is string now; it is read by {own[0]} and "
        f"{own[1]} and 1 Service Object of other tenants"
    )
    assert answer.headers["Warning"] == f'299 - "{told}"'
    assert theirs not in answer.text + answer.headers["Warning"]


def test_readers_in_the_same_document_are_named_and_what_is_gone_is_told(alice: Caller) -> None:
    so = alice.create(OFFICE)
    streams = {**OFFICE["streams"], "a": {"channels": {"x": {"type": "string"}}}}

    answer = put(alice, so, {**OFFICE, "streams": streams})

    assert answer.get_json()["warnings"] == [
        "of stream a channel x was number and is string now and channel y is gone; it is read by "
        "stream twice of this Service Object"
    ]


def test_going_back_to_a_version_and_merging_are_changes_too(alice: Caller) -> None:
    so = alice.create()
    alice.create(composite("g", g=([so], "a")))
    patch = {"streams": {"a": {"channels": {"x": {"type": "string"}}}}}
    typed = {"Content-Type": "application/merge-patch+json"}

    merged = alice.ask("PATCH", f"/{so}", json=patch, headers=typed)
    back = alice.ask("POST", f"/{so}/versions/1/activate")

    assert "was number and is string now" in merged.headers["Warning"]
    assert "was string and is number now" in back.headers["Warning"]


def test_what_nobody_reads_and_what_stays_as_it_is_are_told_nothing(alice: Caller) -> None:
    so, read = alice.create(), alice.create()
    alice.create(composite("g", g=([read], "a")))
    wider = {**SIMPLE["streams"]["a"]["channels"], "z": CHANNEL}

    unread = put(alice, so, TEXT)
    widened = put(alice, read, {"streams": {"a": {"channels": wider}}})

    for answer in (unread, widened, alice.ask("DELETE", f"/{so}")):
        assert answer.status_code in (200, 204)
        assert "Warning" not in answer.headers
        assert not answer.data or "warnings" not in answer.get_json()


def test_deleting_what_a_group_names_says_whose(alice: Caller, bob: Caller) -> None:
    """Also where it is granted, and not public."""
    so = alice.create()
    give(alice, so, tenant=id_of(bob), use="derive")
    own, _ = alice.create(composite("g", g=([so], "a"))), bob.create(composite("g", g=([so], "a")))

    answer = alice.ask("DELETE", f"/{so}")

    assert (answer.status_code, answer.data) == (204, b"")
    assert answer.headers["Warning"] == (
        f'299 - "it was read by {own} and 1 Service Object of other tenants: their groups go on '
        'without it"'
    )


def test_of_many_readers_the_first_are_named(alice: Caller) -> None:
    so = alice.create()
    own = [alice.create(composite("g", g=([so], "a"))) for _ in range(5)]

    warning = alice.ask("DELETE", f"/{so}").headers["Warning"]

    assert f"{own[0]} and {own[1]} and {own[2]} and 2 more: " in warning
