"""The command, run against an API that serves."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_builders import Caller, Served
from werkzeug.serving import make_server

from command import cli

RAW: dict[str, Any] = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
Run = Callable[..., int]


@pytest.fixture
def run(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Run]:
    """Runs a command as alice, against the API."""
    server = make_server("127.0.0.1", 0, served.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("SERVIOTICY_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("SERVIOTICY_TOKEN", alice.token)
    monkeypatch.setenv("SERVIOTICY_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def command(*arguments: object) -> int:
        return cli.main([str(each) for each in arguments])

    yield command
    server.shutdown()
    thread.join()
    server.server_close()
