"""A Docker that speaks as much of its API as we use; its containers are plain processes here."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

CHUNK = 65536


class Running:
    """A container: what was asked for, and its process once it is started."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.started = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run its command, with places of this machine for those that are mounted."""
        mounts = dict(each.split(":")[1::-1] for each in self.body["HostConfig"]["Binds"])
        words = [*self.body["Entrypoint"], *self.body["Cmd"]]
        own = dict(each.split("=", 1) for each in self.body["Env"])
        self.process = subprocess.Popen(
            [sys.executable, *(mounts.get(each, each) for each in words[1:])],
            cwd=mounts[self.body["WorkingDir"]],
            env=own | {"PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.set()

    def end(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.started.set()


class FakeDocker:
    """Listens on a socket of this folder; what is wrong with creating is in `refuses`."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "docker.sock")
        self.containers: dict[str, Running] = {}
        self.made: list[dict[str, Any]] = []
        self.images: set[str] = set()
        self.refuses: tuple[int, str] | None = None
        self._server = ThreadingUnixStreamServer(self.path, _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        """Listen no more, and end what is left."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for each in self.containers.values():
            each.end()


def _handler(docker: FakeDocker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            _version, what, id_, *rest = self.path.split("?")[0].strip("/").split("/")
            assert what == "containers"
            if id_ == "create":
                self._create()
            elif rest == ["start"]:
                docker.containers[id_].start()
                self._say(204, b"")
            elif rest == ["attach"]:
                self._attach(docker.containers[id_])
            else:
                self._say(404, b'{"message":"page not found"}')

        def do_GET(self) -> None:
            _version, what, name = self.path.strip("/").split("/", 2)
            if what == "images":
                name = name.removesuffix("/json")
                is_there = name in docker.images
                content = {} if is_there else {"message": f"No such image: {name}"}
                self._say(200 if is_there else 404, json.dumps(content).encode())
                return
            id_ = self.path.split("/")[3]
            running = docker.containers.get(id_)
            if running is None or running.process is None:
                self._say(404, b'{"message":"No such container"}')
                return
            ticks = Path(f"/proc/{running.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            used = (int(ticks[11]) + int(ticks[12]) + 1) * 10_000_000
            self._say(
                200, json.dumps({"cpu_stats": {"cpu_usage": {"total_usage": used}}}).encode()
            )

        def do_DELETE(self) -> None:
            assert self.path.endswith("?force=true&v=true")
            running = docker.containers.pop(self.path.split("?")[0].split("/")[3], None)
            if running is None:
                self._say(404, b'{"message":"No such container"}')
                return
            running.end()
            self._say(204, b"")

        def _create(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if docker.refuses is not None:
                status, why = docker.refuses
                self._say(status, json.dumps({"message": why}).encode())
                return
            id_ = uuid.uuid4().hex
            docker.made.append(body)
            docker.containers[id_] = Running(body)
            self._say(201, json.dumps({"Id": id_, "Warnings": []}).encode())

        def _attach(self, running: Running) -> None:
            self.close_connection = True
            self.connection.sendall(
                b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
                b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
            )
            running.started.wait()
            process = running.process
            if process is None:
                return
            threads = [
                threading.Thread(target=_print, args=(number, source, self.connection))
                for number, source in ((1, process.stdout), (2, process.stderr))
            ]
            threads.append(threading.Thread(target=self._feed, args=(process,), daemon=True))
            for each in threads:
                each.start()
            for each in threads[:2]:
                each.join()
            self.connection.shutdown(socket.SHUT_RDWR)

        def _feed(self, process: subprocess.Popen[bytes]) -> None:
            assert process.stdin is not None
            try:
                while content := self.connection.recv(CHUNK):
                    process.stdin.write(content)
                    process.stdin.flush()
                process.stdin.close()
            except OSError:
                return  # it has ended

        def _say(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _print(number: int, source: Any, sink: socket.socket) -> None:
    """Each part behind eight bytes: of which stream it is, and how long."""
    try:
        while content := source.read1(CHUNK):
            sink.sendall(struct.pack(">BxxxI", number, len(content)) + content)
    except OSError:
        return  # nobody listens any more
