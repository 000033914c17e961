"""What `servioticy cluster` becomes, in networks of its own: `python -m command.cluster`."""

from __future__ import annotations

import os
import sys
import time
from functools import partial

from command.cluster import disks, machines, network, slow_cables
from command.cluster.programs import Cluster
from servioticy.embedded.folder import DataFolder
from servioticy.errors import ServioticyError
from servioticy.settings import Settings, load
from servioticy.settings.loading import PREFIX
from servioticy.supervisor.program import Event
from servioticy.supervisor.supervisor import Supervisor


def main() -> int:
    """Run until SIGINT; an expected failure is one line and exit code 1."""
    try:
        settings = load()
        for name in [*os.environ]:  # each program is told its own
            if name.startswith(PREFIX):
                del os.environ[name]
        _run(settings)
    except ServioticyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _run(settings: Settings) -> None:
    began = time.monotonic()
    folder = DataFolder(settings.data_path)
    try:
        network.build(folder.path / "networks")
        disks.packed(folder.path / "environment")
        cluster = Cluster(settings, folder.path, _outside())
        slow_cables.write(folder.path, {})
        slow = partial(slow_cables.programs, folder.path, folder.path / "networks")
        supervisor = Supervisor(cluster.programs(), folder, _report, _facts(cluster), slow)
        told: list[bool] = []

        def tell() -> bool:
            if not told:
                told.append(True)
                _say(f"servioticy cluster ready ({time.monotonic() - began:.1f} s)")
                _say(_where(cluster.settings))
            return False

        supervisor.run_forever(tell)
    finally:
        folder.release()
        _say("servioticy cluster stopped")


def _outside() -> tuple[int, int]:
    """Return the sockets that were opened before we had networks of our own."""
    api, live = map(int, sys.argv[1:])
    return api, live


def _facts(cluster: Cluster) -> dict[str, object]:
    """What other commands are told of it."""
    settings = cluster.settings
    return {
        "stores": cluster.stores,
        "dsn": settings.store.dsn,
        "bootstrap_servers": settings.log.bootstrap_servers,
        "api_url": settings.requests.public_url,
        "live_url": settings.delivery.public_url.replace("http", "ws", 1),
    }


def _where(settings: Settings) -> str:
    front = machines.address("balancer")
    at, live = settings.api.port, settings.delivery.port
    lines = [f"  {each:<11} {machines.address(each)}" for each in machines.NUMBERS]
    return "\n".join(
        [
            *lines,
            f"  REST        http://{front}:{at}, from here http://127.0.0.1:{at}",
            f"  WebSockets  ws://{front}:{live}, from here ws://127.0.0.1:{live}",
            "Ctrl-C stops it. On the client's machine: servioticy cluster run COMMAND ...",
            "To cut one off, and to make up for it:    servioticy cluster cut worker-1 [store]",
            "                                          servioticy cluster heal",
        ]
    )


def _report(event: Event) -> None:
    if event.kind in ("ready", "exited", "unresponsive"):
        detail = f" {event.detail.splitlines()[0]}" if event.detail else ""
        sys.stderr.write(f"  {event.program}: {event.kind}{detail}\n")
        sys.stderr.flush()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
