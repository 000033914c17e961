"""What a request is answered whose document others keep from being parsed."""

from __future__ import annotations

import orjson
import pytest
from api_builders import NOW, SIMPLE, Platform, Served

from api import app
from benchmarks import worst_documents
from ingest.parsing.document_parser import DocumentParser
from sandbox.text import argument_names
from servioticy.settings import Settings


def test_a_request_whose_document_cannot_be_read_now_is_to_come_again(
    backend: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document of a Service Object, and a new one."""
    parser = DocumentParser(wait_seconds=0.05)
    monkeypatch.setattr(app, "DocumentParser", lambda _caller: parser)
    served = Served(
        app.create_app(backend.ports, Settings(), lambda: NOW, argument_names), backend
    )
    alice, document = served.tenant("alice"), worst_documents.paths(4_000)
    document["streams"] |= SIMPLE["streams"]
    service_object = alice.create(document)
    with parser.turn():
        update = alice.put(service_object)
        creation = alice.ask("POST", "/", data=orjson.dumps(document))

    for answer in (update, creation):
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert "too many large documents are being read" in answer.get_json()["message"]
    assert alice.put(service_object).status_code == 202
    parser.close()
