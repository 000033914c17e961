"""Members of a tenant, and persons who come with a token of the issuer."""

from __future__ import annotations

from typing import Any

from api_builders import Caller, Served

Json = dict[str, Any]


def added(caller: Caller, **wanted: Any) -> Json:
    answer = caller.ask("POST", "/members", json={"subject": "carol", "role": "admin"} | wanted)
    assert answer.status_code == 201, answer.text
    found: Json = answer.get_json()
    return found


def person(served: Served, token: str, tenant: str = "alice") -> Caller:
    """Somebody with a token of the issuer, who asks for a tenant."""
    return Caller(served.app.test_client(), f"Bearer {tenant}~{token}")
