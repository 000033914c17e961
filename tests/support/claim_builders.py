"""Claim codes, and devices that send them."""

from __future__ import annotations

from typing import Any

from api_builders import Caller, Served
from fleet_builders import get, post
from werkzeug.test import TestResponse

from servioticy.domain.tokens import digest

KEY = "0123456789abcdef"


def a_code(caller: Caller, template: str, **wanted: Any) -> str:
    made = post(caller, f"/templates/{template}/claim-codes", {"deviceAs": "room"} | wanted, 201)
    code: str = made["claimCodes"][0]["code"]
    return code


def a_code_of(caller: Caller, service_object: str, **wanted: Any) -> str:
    made = post(caller, f"/{service_object}/claim-codes", wanted, 201)
    code: str = made["claimCodes"][0]["code"]
    return code


def id_of(served: Served, code: str) -> str:
    sql = "SELECT id FROM claim_codes WHERE digest = %(digest)s"
    row = served.platform.database.row(sql, {"digest": digest(code.replace("-", ""))})
    assert row is not None
    return str(row[0])


def claim(served: Served, code: str, device: str = "kitchen", **sent: Any) -> TestResponse:
    body = {"code": code, "device": device, "key": KEY} | sent
    return served.app.test_client().post("/claims", json=body)


def refused(answer: TestResponse) -> tuple[int, str]:
    return answer.status_code, answer.get_json()["message"]


def objects(caller: Caller) -> list[str]:
    found: list[str] = get(caller, "/")
    return found
