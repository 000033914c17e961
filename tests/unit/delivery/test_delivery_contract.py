"""What comes over plain HTTP is what the description says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from unittest import mock

import httpx
import jsonschema
import pytest
from running_delivery import RunningDelivery
from support.delivery_stores import WAIT_SECONDS

from delivery.feeds import feeds as feeds_module
from delivery.feeds.event_ids import read_event_id
from delivery.transports import doorway
from delivery.transports import http as module
from schemas import contracts
from servioticy.domain.model import StreamRef

DOCUMENT = contracts.delivery()
OPERATIONS = contracts.operations(DOCUMENT)
NAMES = {"so": "pump", "s": "flow", "id": "s"}
FLOW = StreamRef("pump", "flow")


@pytest.fixture
def running() -> Iterator[RunningDelivery]:
    with mock.patch.object(feeds_module, "LOOK_SECONDS", 0.01), RunningDelivery() as delivery:
        delivery.cursors.add("s", FLOW)
        yield delivery


def ask(running: RunningDelivery, method: str, path: str, **more: Any) -> httpx.Response:
    headers = {"Authorization": "token-1"} | more.pop("headers", {})
    url = f"http://127.0.0.1:{running.port}{path.format_map(NAMES)}"
    return httpx.request(method, url, headers=headers, timeout=WAIT_SECONDS, **more)


def fit(answer: httpx.Response, operation: dict[str, Any]) -> None:
    described = operation["responses"][str(answer.status_code)]
    if "$ref" in described:
        described = DOCUMENT["components"]["responses"][described["$ref"].rpartition("/")[2]]
    schema = described["content"]["application/json"]["schema"]
    whole = {"components": DOCUMENT["components"], "allOf": [schema]}
    jsonschema.Draft202012Validator(whole).validate(answer.json())


def test_each_address_is_served() -> None:
    """And each that is served beside WebSockets is described."""
    for method, path in OPERATIONS:
        line = f"{method} {path.format_map(NAMES)} HTTP/1.1\r".encode()
        assert path == "/health" or doorway._PLAIN_HTTP.fullmatch(line), path
    last = {path.rpartition("/")[2] for _method, path in OPERATIONS} - {"health"}
    assert last == set(re.findall(r"[a-z]{4,}", doorway._PLAIN_HTTP.pattern.decode()))
    assert set(module._PULLED.pattern.split("(")[-1].split(")")[0].split("|")) == last


def test_answers_fit(running: RunningDelivery) -> None:
    running.until(lambda: "s" in running.feeds.feeds and running.feeds.feeds["s"].is_live)
    running.publish(
        *(b'{"channels":{"v":{"current-value":1}},"lastUpdate":%d}' % at for at in (1, 2))
    )
    for path, more in (
        ("/subscriptions/{id}/updates", {"params": {"limit": "1"}}),
        ("/subscriptions/{id}/updates", {"params": {"wait": "0", "cursor": "0.1.1"}}),
        ("/subscriptions/{id}/position", {}),
        ("/health", {}),
    ):
        answer = ask(running, "GET", path, **more)
        assert answer.status_code == 200, answer.text
        fit(answer, OPERATIONS["GET", path])
    path = "/subscriptions/{id}/acknowledgements"
    answer = ask(running, "POST", path, json={"id": "0.1.1"})
    assert answer.status_code == 200, answer.text
    fit(answer, OPERATIONS["POST", path])


@pytest.mark.parametrize(("method", "path"), [each for each in OPERATIONS if "{" in each[1]])
def test_refusals_fit(running: RunningDelivery, method: str, path: str) -> None:
    running.cursors.add("2", FLOW)
    other = "DELETE" if method == "POST" else "POST"
    found = [
        ask(running, method, path, headers={"Authorization": "nobody's"}),
        ask(running, method, path.replace("{id}", "none").replace("{so}", "nothing"), json={}),
        ask(running, other, path),
        ask(running, method, path, content=b"x" * 5000),
    ]
    for each in found:
        assert each.status_code >= 400
        fit(each, OPERATIONS[method, path])


def test_ids_fit() -> None:
    schema = DOCUMENT["components"]["schemas"]["EventId"]
    for text in (
        "0.17.1401819725",
        "0.-1.5",
        "s0a1b2c3d4e5f.-7",
        "x",
        "0.1",
        "1.2.3.4",
        "1.2.3.0a1b2c3d",
        "s0a1b2c3d4e5f.7.0a1b2c3d",
    ):
        fits = jsonschema.Draft202012Validator(schema).is_valid(text)
        assert fits == (read_event_id(text) is not None), text
