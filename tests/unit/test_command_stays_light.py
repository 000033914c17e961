"""Commands that only ask load nothing that they do not use: they answer at once."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from servioticy.embedded import tcp_ports

ID = "1423072260000" + "0" * 32
HEAVY = {
    *("api", "ingest", "broker", "delivery", "pipeline", "sandbox", "benchmarks", "demonstration"),
    *("pyspark", "pandas", "pyarrow", "numpy", "flask", "confluent_kafka", "kafka", "psycopg2"),
    *("py_mini_racer", "wasmtime", "jsonpath_ng", "aiohttp", "prometheus_client", "joserfc"),
    *("cryptography", "rich", "click", "pygments", "pooch", "psutil", "river"),
}
"""What programs need, and people who look at a terminal."""
ASKS = {"httpx", "httpcore", "h11"}
FOLLOWS = {"websockets"}
LOOKED_FOR = {*HEAVY, *ASKS, *FOLLOWS, "asyncio"}
COMMANDS = {
    "--help": set(),
    "up --help": set(),
    "bench --help": set(),
    f"get {ID} s": ASKS,
    f"get {ID}": ASKS,
    "get s": ASKS,
    f"history {ID} s": ASKS,
    f"export {ID} s": ASKS,
    f"put {ID} s x=1": ASKS,
    f"tail {ID} s": FOLLOWS,
    f"status {ID} s": ASKS,
    f"status {ID}": ASKS,
    "usage": ASKS,
    "top --once --json": ASKS,
}
LISTS = (
    "import atexit, sys; from command import cli;"
    "atexit.register(lambda: sys.stderr.write('\\nLOADED ' + ' '.join("
    "sorted({each.split('.')[0] for each, found in sys.modules.items() if found}))));"
    "sys.exit(cli.main(sys.argv[1:]))"
)


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        one = {"id": ID, "name": "roof", "channels": {}, "lastUpdate": 1}
        page = [] if self.path.startswith("/usage") else [one]
        state = {"state": "active", "cpu-seconds": 0, "verdicts": []}
        body = json.dumps({"data": page, "streams": {"s": {}}, **state, "quotas": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST = do_GET  # noqa: N815 - the name is given

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Something that answers as the API may."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_only_what_it_uses(command: str, url: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SERVIOTICY_URL": url,
        "SERVIOTICY_LIVE_URL": url,
        "SERVIOTICY_TOKEN": "t",
        "SERVIOTICY_DATA": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", LISTS, *command.split()],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    said, _, loaded = done.stderr.rpartition("\nLOADED ")

    # What answers here knows no WebSockets, of which `tail` is told.
    assert (done.returncode == 1) == ("is not delivery" in said) == command.startswith("tail")
    assert set(loaded.split()) & LOOKED_FOR == COMMANDS[command], said


@pytest.mark.parametrize("command", ["tenant quota ana", "tenant create ana", "tenant delete ana"])
def test_an_operator_who_asks_the_store_loads_the_store_alone(command: str) -> None:
    """What starts a Postgres where none runs is of no use where there is one."""
    dsn = f"postgresql://127.0.0.1:{tcp_ports.free()}/nothing"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SERVIOTICY_DSN": dsn}
    done = subprocess.run(
        [sys.executable, "-c", LISTS, *command.split()],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    said, _, loaded = done.stderr.rpartition("\nLOADED ")

    assert done.returncode == 1, said
    assert set(loaded.split()) & LOOKED_FOR == {"psycopg2"}
