"""The updates that the client of the REST API sends in batches, in both its forms."""

from __future__ import annotations

import json
from typing import Any

from rest_server import Client, Server, client, server

from servioticy.client import (
    Refusal,
    batches,
)

__all__ = ["client", "server"]


def an_update(at: int, text: str = "") -> dict[str, Any]:
    return {"channels": {"t": {"current-value": text}}, "lastUpdate": at}


def test_many_updates_go_in_as_few_batches_as_may_be(server: Server, client: Client) -> None:
    """What is refused is told by its place among all."""
    refusal = {"index": 1, "status": 400, "message": "no", "pointer": "/x", "code": "wrong-type"}
    server.answers = [
        (202, {"accepted": 10_000, "refused": 0}),
        (207, {"accepted": 1, "refused": 1, "items": [refusal]}),
    ]
    with client() as api:
        result = api.put_many("so1", "s", [an_update(at) for at in range(10_002)])

    assert result.accepted == 10_001
    assert result.refused == (Refusal(10_001, 400, "no", "/x", "wrong-type"),)
    [first, second] = [body.splitlines() for _, _, body in server.asked]
    assert (len(first), len(second)) == (10_000, 2)
    assert json.loads(second[0])["lastUpdate"] == 10_000


def test_a_batch_has_no_more_bytes_than_are_taken(server: Server, client: Client) -> None:
    updates = [("so1", "s", an_update(at, "x" * 300_000)) for at in range(7)]
    server.answers = [(202, {"accepted": 3, "refused": 0})] * 2 + [(202, {"accepted": 1})]
    with client() as api:
        assert api.put_everywhere(updates).accepted == 7

    assert max(len(body) for _, _, body in server.asked) < batches.MAX_BYTES + 10
    assert [path for _, path, _ in server.asked] == ["/updates"] * 3


def test_a_batch_names_no_more_streams_than_it_may(server: Server, client: Client) -> None:
    updates = [("so1", f"s{at // 2}", an_update(at)) for at in range(2_002)]
    server.answers = [(202, {"accepted": 2_000}), (202, {"accepted": 2})]
    with client() as api:
        assert api.put_everywhere(updates).accepted == 2_002

    assert [len(body.splitlines()) for _, _, body in server.asked] == [2_000, 2]


def test_no_updates_are_no_request(server: Server, client: Client) -> None:
    with client() as api:
        assert api.put_many("so1", "s", []) == api.put_everywhere([])

    assert server.asked == []
