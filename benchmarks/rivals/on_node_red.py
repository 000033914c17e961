"""Node-RED does the closed loop's work: takes a PUT, derives a value, stores both, sends one.

A device has a flow of its own: a request, a function, two rows of Postgres in one statement, the
answer once they are stored, and a WebSocket. Nobody has to say who he is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from benchmarks.rivals.environment import FOLDER
from servioticy.embedded import tcp_ports
from servioticy.errors import SetupError

FETCH_SECONDS = 600.0
START_SECONDS = 60.0
LOCKED = ("package.json", "package-lock.json")

_DERIVES = """
const { channels, lastUpdate } = msg.payload;
const value = channels.v["current-value"] + 1;
const text = JSON.stringify({ channels: { v: { "current-value": value } }, lastUpdate });
await global.get("ready");
await global.get("pool").query({
  name: "both",
  text: "INSERT INTO node_red VALUES ($1, 's0', $2, $3), ($1, 's1', $2, $4)",
  values: [DEVICE, lastUpdate, JSON.stringify(msg.payload), text],
});
msg.statusCode = 202;
msg.payload = "";
return [msg, { payload: text }];
"""


class NodeRed(NamedTuple):
    """One that runs."""

    port: int
    pid: int

    def live(self, device: str) -> str:
        """Where what is derived for a device is watched."""
        return f"ws://127.0.0.1:{self.port}/{device}/live"


def installed(folder: Path) -> Path:
    """Return where Node-RED is, installed under the folder where it is not there yet.

    By npm, each of its packages by the hash in the lock file. Raises SetupError.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise SetupError("Node-RED needs Node.js 20 and npm: apt-get install nodejs npm")
    lock = (FOLDER / "node_red" / "package-lock.json").read_bytes()
    made = folder / f"node-red-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not (made / "complete").exists():
        sys.stderr.write(f"fetching Node-RED into {made}: some 100 MB, once\n")
        made.mkdir(parents=True, exist_ok=True)
        for name in LOCKED:
            shutil.copy(FOLDER / "node_red" / name, made / name)
        asked = [npm, "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]
        try:
            subprocess.run(asked, cwd=made, stdout=sys.stderr, timeout=FETCH_SECONDS, check=True)
        except subprocess.SubprocessError:
            raise SetupError("npm could not install Node-RED, as it says above") from None
        (made / "complete").touch()
    return made


@contextmanager
def running(folder: Path, dsn: str, devices: list[str]) -> Iterator[NodeRed]:
    """Node-RED with a flow for each of these devices, which stores in the Postgres of `dsn`.

    Raises SetupError where it does not start.
    """
    own = folder.resolve() / f"node-red-{os.getpid()}"
    own.mkdir(parents=True)
    flows, port = own / "flows.json", tcp_ports.free()
    flows.write_text(json.dumps([node for each in devices for node in _flow(each)]))
    made = installed(folder)
    shutil.copy(FOLDER / "node_red" / "settings.js", made / "settings.js")
    environment = {"PORT": str(port), "FLOWS": str(flows), "FOLDER": str(own), "DSN": dsn}
    started = subprocess.Popen(
        [
            shutil.which("node") or "node",
            "node_modules/node-red/red.js",
            "--settings",
            "settings.js",
        ],
        cwd=made,
        env={**os.environ, **environment},
        stdout=sys.stderr,
    )
    try:
        found = NodeRed(port, started.pid)
        _wait(started, found.live(devices[0]))
        yield found
    finally:
        started.terminate()
        started.wait()
        shutil.rmtree(own)


def _wait(started: subprocess.Popen[bytes], live: str) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and started.poll() is None:
        with suppress(WebSocketException, OSError), connect(live, open_timeout=1.0):
            return
        time.sleep(0.2)
    raise SetupError("Node-RED does not start, as it says above")


def _flow(device: str) -> Iterator[dict[str, Any]]:
    tab, answer, socket, live = (f"{device}-{part}" for part in ("t", "a", "w", "l"))
    yield {"id": tab, "type": "tab", "label": device}
    path = f"/{device}/streams/s0"
    request = {"type": "http in", "url": path, "method": "put", "wires": [[f"{device}-f"]]}
    yield {"id": f"{device}-r", "z": tab, **request}
    code = _DERIVES.replace("DEVICE", json.dumps(device))
    function = {"type": "function", "func": code, "outputs": 2, "wires": [[answer], [socket]]}
    yield {"id": f"{device}-f", "z": tab, **function}
    yield {"id": answer, "z": tab, "type": "http response", "wires": []}
    yield {"id": socket, "z": tab, "type": "websocket out", "server": live, "wires": []}
    yield {
        "id": live,
        "type": "websocket-listener",
        "path": f"/{device}/live",
        "wholemsg": "false",
    }
