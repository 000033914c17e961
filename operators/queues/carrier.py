"""Begins a program where it is alone already, as in a container, and carries for it as relay.py.

    python -m operators.queues.carrier FOLDER SETTINGS

SETTINGS is a file of JSON with what relay.py is told. Ends when the program does, or the store is
lost; whoever runs containers begins it again.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from operators.queues.relay import begin


def main(folder: Path, settings: Path) -> None:
    """Begin the program, and carry."""
    command = json.loads((folder / "operator.json").read_text())["command"]
    ours, theirs = socket.socketpair()
    environment = {**os.environ, "SERVIOTICY_OPERATOR": str(theirs.fileno())}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL
    )
    theirs.close()
    begin(json.loads(settings.read_text()), ours)
    process.wait()
    while True:  # what it has said last is carried, and then this ends
        os.read(os.eventfd(0), 8)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
