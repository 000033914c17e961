"""Deleting Service Objects, and erasing what streams have stored."""

from __future__ import annotations

from api_builders import SIMPLE, Caller, Served
from changing_documents import composite, records, replace

from servioticy.domain.records import (
    DeletionRecord,
    ErasureRecord,
)


def test_what_is_deleted_is_not_found_at_once(served: Served, alice: Caller) -> None:
    so, other = alice.create(), alice.create()
    answer = alice.ask("DELETE", f"/{so}")

    assert (answer.status_code, answer.data) == (204, b"")
    assert records(served, DeletionRecord) == [DeletionRecord(so)]
    assert alice.ask("GET", "/").get_json() == [other]
    for method, path in (
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("GET", "/versions"),
        ("GET", "/streams"),
        ("GET", "/streams/a"),
        ("DELETE", "/streams/a"),
        ("GET", "/streams/a/tree"),
    ):
        answer = alice.ask(method, f"/{so}{path}", json=SIMPLE)
        assert answer.status_code == 404, (method, path)
        assert answer.get_json()["message"] == "The Service Object was not found."


def test_what_others_read_may_be_deleted_and_they_may_change(alice: Caller) -> None:
    """A device may go; the others of its group run on."""
    so, other = alice.create(), alice.create()
    document = composite("g", g=([so, other], "a"))
    reader = alice.create(document)
    alice.ask("DELETE", f"/{so}")

    changed = {**document, "name": "still here"}
    assert replace(alice, reader, changed).status_code == 200
    assert alice.ask("POST", f"/{reader}/versions/1/activate").status_code == 200
    fresh = alice.ask("POST", "/", json=document)
    assert fresh.status_code == 400


def test_erasing_is_told_to_the_log(served: Served, alice: Caller) -> None:
    so = alice.create()
    answer = alice.ask("DELETE", f"/{so}/streams/a")

    assert (answer.status_code, answer.data) == (204, b"")
    assert records(served, ErasureRecord) == [ErasureRecord(so, "a", 2)]
    assert alice.ask("DELETE", f"/{so}/streams/b").status_code == 404
