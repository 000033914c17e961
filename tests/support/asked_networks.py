"""Makes the networks of a cluster, cuts and heals them, and tells who reached whom: a program.

`python asked_networks.py FOLDER`, in namespaces of its own; prints a JSON object.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import waiting

from command.cluster import machines, network

PORT = 7000
SECONDS = "0.5"
HEARD = """
import socket, sys
for host in sys.argv[2:]:
    try:
        socket.create_connection((host, 7000), float(sys.argv[1])).close()
        print(1, end="")
    except OSError:
        print(0, end="")
"""


def main(folder: Path) -> None:
    """Let three of them and ourselves reach each other."""
    network.build(folder)
    names = ("client", "store", "driver")
    listening = [_listening(folder, each) for each in names]
    try:
        told = {"whole": _reached(folder, names)}
        network.change(network.cut("store"))
        told["store cut off"] = _reached(folder, names)
        network.change(network.healed("store"))
        network.change(network.deaf("driver"), network.inside(folder, "store"))
        network.change(network.deaf("store"), network.inside(folder, "driver"))
        told["store and driver cut"] = _reached(folder, names)
        network.change(network.hearing(["driver"]), network.inside(folder, "store"))
        network.change(network.hearing(["store"]), network.inside(folder, "driver"))
        told["healed"] = _reached(folder, names)
        slow = [sys.executable, "-m", "command.cluster.slowness", str(folder), "store", "40"]
        slowing = subprocess.Popen(slow)
        waiting.until(lambda: _seconds(folder, "client", "store") > 0.08)
        told["slow"] = {
            "store": f"{_seconds(folder, 'client', 'store'):.3f}",
            "driver": f"{_seconds(folder, 'client', 'driver'):.3f}",
        }
        slowing.terminate()
        slowing.wait()
        told["no longer slow"] = _reached(folder, names)
    finally:
        for each in listening:
            each.kill()
    sys.stdout.write(json.dumps(told))


def _listening(folder: Path, machine: str) -> subprocess.Popen[bytes]:
    code = "import socket\ns = socket.create_server(('', 7000))\nprint(flush=True)\n"
    code += "while True: s.accept()[0].close()"
    command = [*network.inside(folder, machine), sys.executable, "-c", code]
    started = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert started.stdout is not None
    started.stdout.readline()
    return started


def _seconds(folder: Path, machine: str, other: str) -> float:
    """How long a connection takes: there, and back."""
    code = "import socket, sys, time\nat = time.monotonic()\n"
    code += "socket.create_connection((sys.argv[1], 7000), 5).recv(1)\n"
    code += "print(time.monotonic() - at)"
    command = [*network.inside(folder, machine), sys.executable, "-c", code]
    command.append(machines.address(other))
    return float(subprocess.run(command, capture_output=True, check=True).stdout)


def _reached(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """By machine whom of the others it reaches: a 1 or a 0 for each."""
    found = {}
    for each in names:
        hosts = [machines.address(other) for other in names if other != each]
        command = [*network.inside(folder, each), sys.executable, "-c", HEARD, SECONDS, *hosts]
        found[each] = subprocess.run(command, capture_output=True, text=True).stdout
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
