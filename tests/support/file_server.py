"""A repository of our own on the loopback: a folder, its address, and what was asked of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@dataclass
class FileServer:
    folder: Path
    address: str = ""
    asked: list[str] = field(default_factory=list)

    def put(self, path: str, content: bytes) -> None:
        """Have a file to give."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(content)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[FileServer]:
    """Serves what is put into it."""
    found = FileServer(tmp_path / "repository")
    found.folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            super().do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(found.folder)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    found.address = f"http://127.0.0.1:{server.server_port}"
    yield found
    server.shutdown()
    server.server_close()
