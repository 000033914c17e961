"""A broker that is not ours: rumqttd, as the wheel of iotcore has it, in a process of its own."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from pathlib import Path

import waiting
from support.certificates import certified

from servioticy.embedded import tcp_ports as ports

USER, PASSWORD = "platform", "a password"
VERSIONS = (4, 5)
CONFIGURATION = """\
id = 0
[router]
id = 0
max_connections = 100
max_outgoing_packet_count = 200
max_segment_size = 104857600
max_segment_count = 10
{listeners}
"""
LISTENER = """\
[{section}]
name = "{name}"
listen = "127.0.0.1:{port}"
next_connection_delay_ms = 1
    [{section}.connections]
    connection_timeout_ms = 60000
    max_payload_size = 4000000
    max_inflight_count = 100
    dynamic_filters = true
        [{section}.connections.auth]
        {user} = "{password}"
        device = "{password}"
"""
TLS = """\
    [{section}.tls]
    certpath = "{folder}/certificate.pem"
    keypath = "{folder}/key.pem"
"""


class ExternalBroker:
    """It listens on a port for each version of MQTT, and on one with TLS."""

    def __init__(self, folder: Path) -> None:
        self.certificates = certified(folder)
        self.ports = {version: ports.free() for version in VERSIONS}
        self.tls_port = ports.free()
        self._file = folder / "broker.toml"
        self._file.write_text(self._configuration())
        self._process: subprocess.Popen[bytes]
        self.start()

    def _configuration(self) -> str:
        listeners = [self._listener(f"v{each}.1", self.ports[each]) for each in VERSIONS]
        if self.certificates is not None:
            tls = TLS.format(section="v5.2", folder=self.certificates)
            listeners.append(self._listener("v5.2", self.tls_port) + tls)
        return CONFIGURATION.format(listeners="\n".join(listeners))

    @staticmethod
    def _listener(section: str, port: int) -> str:
        names = {"section": section, "name": section.replace(".", "-"), "port": port}
        return LISTENER.format(**names, user=USER, password=PASSWORD)

    def start(self) -> None:
        """Start it, without anything that it knew before."""
        command = [sys.executable, "-m", "iotcore", "--config", str(self._file)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for port in self.ports.values():
            waiting.until(lambda port=port: listens(port))  # type: ignore[misc]

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Cable:
    """A way to the broker that a test can cut, and keep cut."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.is_whole = True
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Cut all connections; new ones last no longer until it is mended."""
        self.is_whole = False
        for each in self._sockets:
            _shut(each)
        self._sockets.clear()

    def mend(self) -> None:
        """Let connections through again."""
        self.is_whole = True

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            try:
                if not self.is_whole:
                    raise ConnectionError
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            self._sockets += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(65_536):
            other.sendall(data)
    except OSError:
        pass
    for each in (one, other):
        _shut(each)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side was quicker
        each.shutdown(socket.SHUT_RDWR)
