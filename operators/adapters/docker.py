"""Programs in containers of Docker, begun by its API: in place of processes of this machine.

A container has what the manifest allows and nothing else: no network, a file system that cannot be
written to, a user of its own, no capabilities, and no way to get any. Its folder is mounted
read-only, so Docker is on the machine that has the shelf. Frames go over its standard input and
output (`operators/guest/carrying.py` is in between), so it needs neither a port nor a store.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from operators.cgroups import BESIDE_BYTES, BESIDE_PROCESSES
from operators.errors import NotAnOperator
from operators.guest import carrying
from operators.guest.root import TEMPORARY_BYTES
from operators.instance import NO_NETWORK, Instance, Place, environment
from operators.manifest import Described
from servioticy.errors import Unavailable

VERSION = "v1.44"
FOLDER, CARRYING = "/operator", "/servioticy/carrying.py"
USER = "10002:10002"
NANO_CPUS = 1_000_000_000
DESCRIPTORS = 128
CALL_SECONDS = 10.0
USED_SECONDS = 1.0
"""So often it is asked what a container has used of the processor."""

CHUNK = 64 * 1024
MAX_ANSWER = 1024 * 1024
STDOUT, STDERR = 1, 2
LABELS = {"servioticy.part": "operator"}

_HEAD = struct.Struct(">BxxxI")
"""Before each part of what a container prints: of which stream, and how many bytes."""


def container(described: Described, folder: Path, image: str) -> dict[str, Any]:
    """Return the body of `POST /containers/create`: the manifest's limits, and few rights."""
    manifest = described.manifest
    memory = manifest.memory_bytes + BESIDE_BYTES
    own = environment(manifest.memory_bytes)
    return {
        "Image": image,
        "Entrypoint": ["python3"],  # whatever that of the image is
        "Cmd": [CARRYING, *described.command],
        "WorkingDir": FOLDER,
        "Env": [f"{name}={value}" for name, value in own.items() if name not in _OF_PROCESSES],
        "User": USER,
        "Labels": {**LABELS, "servioticy.operator": described.name},
        "OpenStdin": True,
        "StdinOnce": True,  # so it ends when we do, however we do
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
        "NetworkDisabled": True,
        "HostConfig": {
            "AutoRemove": True,
            "Binds": [f"{folder}:{FOLDER}:ro", f"{carrying.__file__}:{CARRYING}:ro"],
            "CapDrop": ["ALL"],
            "Init": True,
            "IpcMode": "none",
            "LogConfig": {"Type": "none", "Config": {}},
            "Memory": memory,
            "MemorySwap": memory,
            "NanoCpus": NANO_CPUS,
            "NetworkMode": "none",
            "PidsLimit": manifest.processes + BESIDE_PROCESSES,
            "ReadonlyRootfs": True,
            "SecurityOpt": ["no-new-privileges"],
            "Tmpfs": {"/tmp": f"size={TEMPORARY_BYTES},nosuid,nodev"},  # noqa: S108  its own
            "Ulimits": [{"Name": "nofile", "Soft": DESCRIPTORS, "Hard": DESCRIPTORS}],
        },
    }


_OF_PROCESSES = {"SERVIOTICY_OPERATOR", "PATH"}


class Docker(NamedTuple):
    """Where Docker listens, and what containers are made of."""

    path: str
    """of its socket"""
    image: str
    """one that is there, with a python3, and what programs are run by"""

    def begin(self, described: Described, folder: Path, place: Place) -> Container:
        """Begin a program. Raises NotAnOperator, Unavailable."""
        if described.network and place.strangers:
            raise NotAnOperator(NO_NETWORK)
        body = container(described, folder, self.image)
        id_ = str(json.loads(self.call("POST", "/containers/create", body))["Id"])
        try:
            attached = self._attached(id_)
            self.call("POST", f"/containers/{id_}/start")
        except BaseException:
            self.remove(id_)
            raise
        return Container(self, id_, attached)

    def used(self, id_: str) -> float:
        """Return what a container has used of the processor, in seconds. Raises Unavailable."""
        told = json.loads(self.call("GET", f"/containers/{id_}/stats?stream=false&one-shot=true"))
        return float(told["cpu_stats"]["cpu_usage"]["total_usage"]) / 1e9

    def remove(self, id_: str) -> None:
        """End a container at once, and take it away; nothing where it is gone."""
        try:
            self.call("DELETE", f"/containers/{id_}?force=true&v=true")
        except Unavailable:
            return  # it is gone, or it is about to be; and it ends with its standard input

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        """Ask Docker, and return its answer. Raises Unavailable with what it says is wrong."""
        connection = _Connection(self.path)
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            connection.request(method, f"/{VERSION}{path}", content, headers)
            response = connection.getresponse()
            said = response.read(MAX_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"Docker does not answer: {error}") from error
        finally:
            connection.close()
        if response.status >= 400:
            raise Unavailable(f"Docker: {_message(said)}")
        return said

    def _attached(self, id_: str) -> socket.socket:
        """Return a socket to what the container reads and prints. Raises Unavailable."""
        path = f"/containers/{quote(id_)}/attach?stream=1&stdin=1&stdout=1&stderr=1"
        connection = _Connection(self.path)
        try:
            connection.request(
                "POST", f"/{VERSION}{path}", headers={"Upgrade": "tcp", "Connection": "Upgrade"}
            )
            response = connection.getresponse()
            if response.status != 101:
                raise Unavailable(f"Docker does not attach: {_message(response.read(MAX_ANSWER))}")
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unavailable(f"Docker does not attach: {error}") from error
        except BaseException:
            connection.close()
            raise
        found = connection.sock
        connection.sock = None  # it is ours now
        found.settimeout(None)
        return found


class Container(Instance):
    """A container; as the node manager knows processes."""

    def __init__(self, docker: Docker, id_: str, attached: socket.socket) -> None:
        """Carry frames, in threads of its own, until it ends."""
        self._docker, self._id, self._attached = docker, id_, attached
        self.socket, self._inner = socket.socketpair()
        self.output, self._printing = os.pipe()
        self.status, status = os.pipe()
        os.close(status)  # it has begun
        self._talk()
        self._seconds = self._told_seconds = 0.0
        self._ends = threading.Event()
        begin = partial(threading.Thread, daemon=True)
        self._threads = [
            begin(target=_until_closed, args=(each,), name=name)
            for name, each in (("container-in", self._give), ("container-out", self._take))
        ]
        self._keeper = begin(target=self._keep, name="container")
        for each in (*self._threads, self._keeper):
            each.start()

    @property
    def pid(self) -> int:
        """It has none here."""
        return 0

    @property
    def lost(self) -> str:
        """Where it has ended it is told by what it no longer says."""
        return ""

    def take_used(self) -> float:
        """Return what it has used of the processor since it was asked last, as of a second ago."""
        found, self._told_seconds = self._seconds - self._told_seconds, self._seconds
        return max(0.0, found)

    def end(self) -> None:
        """End it; `is_gone` tells when that is done."""
        self.read_output()
        self._ends.set()
        self._close()

    def is_gone(self) -> bool:
        """Whether nothing of it is left."""
        return not self._keeper.is_alive()

    def _keep(self) -> None:
        """Ask what it uses, and take it away in the end."""
        while not self._ends.wait(USED_SECONDS):
            self._note_used()
        self._note_used()
        self._docker.remove(self._id)
        for each in (self._attached, self._inner):
            _shut(each)
        for thread in self._threads:
            thread.join(CALL_SECONDS)
        self._attached.close()
        self._inner.close()
        os.close(self._printing)

    def _note_used(self) -> None:
        try:
            self._seconds = max(self._seconds, self._docker.used(self._id))
        except (Unavailable, LookupError, ValueError, TypeError):
            return  # it is not known now

    def _give(self) -> None:
        """What is sent goes to its standard input."""
        while content := self._inner.recv(CHUNK):
            self._attached.sendall(content)

    def _take(self) -> None:
        """What it prints on its standard output are frames, and on the other one words."""
        try:
            with self._attached.makefile("rb") as source:
                while len(head := source.read(_HEAD.size)) == _HEAD.size:
                    stream, length = _HEAD.unpack(head)
                    while length and (content := source.read(min(length, CHUNK))):
                        length -= len(content)
                        if stream == STDOUT:
                            self._inner.sendall(content)
                        else:
                            os.write(self._printing, content)
        finally:
            _shut(self._inner)  # so its end is heard, however it ends


def _until_closed(carry: Callable[[], None]) -> None:
    try:
        carry()
    except OSError:
        return  # an end is closed


def _shut(which: socket.socket) -> None:
    try:
        which.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is already


def _message(said: bytes) -> str:
    try:
        return str(json.loads(said)["message"])[:300]
    except (ValueError, LookupError, TypeError):
        return said[:300].decode(errors="replace")


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("docker", timeout=CALL_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect there."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
