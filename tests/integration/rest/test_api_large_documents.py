"""What a request is told whose document has to wait for others that take long."""

from __future__ import annotations

import threading
from typing import Any

import orjson
import pytest
from api_builders import NOW, Platform, Served

from api import app
from api.document_parser import DocumentParser
from sandbox.text import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.documents.limits import Meter
from servioticy.domain.model import Definition
from servioticy.settings import Settings
from servioticy.tools.bench import worst_documents

SIMPLE = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
SECONDS = 60.0


class Gated(DocumentParser):
    """Parses here, when the test lets it."""

    def __init__(self, wait_seconds: float = SECONDS) -> None:
        super().__init__(lambda: threading.current_thread().name, wait_seconds=wait_seconds)
        self.gate = threading.Event()
        self.parsed: list[str] = []

    def parse(self, document: dict[str, Any], service_object: str, meter: Meter) -> Definition:
        self.parsed.append(service_object)
        assert self.gate.wait(SECONDS)
        return parse_service_object(document, service_object, argument_names, meter)

    def waiting(self) -> int:
        return sum(map(len, self._turns._waiting.values()))


def test_a_request_whose_document_cannot_be_read_now_is_to_come_again(
    backend: Platform,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The document of a Service Object, and a new one."""
    gated = Gated(wait_seconds=0.05)
    gated.gate.set()
    monkeypatch.setattr(app, "DocumentParser", lambda _caller: gated)
    made = app.create_app(backend.ports, Settings(), lambda: NOW, argument_names)
    served = Served(made, backend)
    alice, document = served.tenant("alice"), worst_documents.paths(4_000)
    document["streams"] |= SIMPLE["streams"]
    service_object = alice.create(document)
    with gated.turn():
        update = alice.put(service_object)
        creation = alice.ask("POST", "/", data=orjson.dumps(document))

    for answer in (update, creation):
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert "too many large documents are being read" in answer.get_json()["message"]
    assert alice.put(service_object).status_code == 202
