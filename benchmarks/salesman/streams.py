"""The salesman as composite streams of a platform: this program only makes inputs and sends them.

What comes of them is computed by the streams `extraction`, `paths0` and so on, `distance0` and so
on, and `summary`, of a Service Object that is there already.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import time
from collections.abc import Mapping
from typing import Any

import salesman

BUSY = (429, 503)
TOKEN = "SALESMAN_TOKEN"  # noqa: S105  the name of a variable
SECONDS = 600.0


class Api:
    """The platform, over one connection."""

    def __init__(self, address: str) -> None:
        self._http = http.client.HTTPConnection(address, timeout=60)
        self._headers = {"Authorization": os.environ[TOKEN]}

    def put(self, path: str, update: Mapping[str, Any], trace: str) -> None:
        """Send an update, again and again where the platform is busy. Raises RuntimeError."""
        headers = {**self._headers, "traceparent": f"00-{trace}-{trace[:16]}-01"}
        body, until = json.dumps(update), time.monotonic() + SECONDS
        while time.monotonic() < until:
            status, told = self._asked("PUT", path, body, headers)
            if status not in BUSY:
                break
            time.sleep(0.05)
        if not 200 <= status < 300:
            raise RuntimeError(f"PUT {path}: {status} {told[:500]!r}")

    def last(self, path: str) -> dict[str, Any]:
        """Return the last update of a stream, an empty one where there is none yet."""
        status, told = self._asked("GET", f"{path}/lastUpdate", None, self._headers)
        found = json.loads(told)["data"] if status == 200 and told else []
        return found[0] if found else {}

    def _asked(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        self._http.request(method, path, body, headers)
        response = self._http.getresponse()
        return response.status, response.read()


def main() -> None:
    """Send so many inputs, with a break between two, and wait until the last has its summary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True, help="host:port of the API")
    parser.add_argument("--service-object", required=True)
    parser.add_argument("--begin", type=int, required=True, help="lastUpdate of the first input")
    parser.add_argument("--traces", required=True, help="24 digits of the ids of their traces")
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds")
    parser.add_argument("--vertices", type=int, default=8)
    parser.add_argument("--characters", type=int, default=1_000_000, help="a body's bound")
    chosen = parser.parse_args()
    api = Api(chosen.address)
    streams = f"/{chosen.service_object}/streams"
    at = chosen.begin
    for number in range(chosen.runs):
        given = salesman.create(f"run-{number}", chosen.vertices, chosen.characters)
        at = chosen.begin + number
        update = {"channels": {"text": {"current-value": given["text"]}}, "lastUpdate": at}
        api.put(f"{streams}/input", update, f"{chosen.traces}{number:08x}")
        time.sleep(chosen.pause)
    until = time.monotonic() + SECONDS
    while api.last(f"{streams}/summary").get("lastUpdate") != at:
        if time.monotonic() > until:
            raise RuntimeError(f"no summary of the last input within {SECONDS:g} s")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
