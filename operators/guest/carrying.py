"""In a container: carries between a program's socket and our standard input and output.

    python3 carrying.py COMMAND..

The program is born with its socket, as everywhere; frames go through as they are. What it prints
goes to our standard error, so that it is no frame. Loads nothing but the standard library.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading

CHUNK = 64 * 1024


def main(command: list[str]) -> int:
    """Begin the program, and carry until it ends, or nothing comes any more."""
    ours, theirs = socket.socketpair()
    own = os.environ | {"SERVIOTICY_OPERATOR": str(theirs.fileno())}
    words = [shutil.which(command[0]) or command[0], *command[1:]]
    process = subprocess.Popen(
        words, env=own, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=2
    )
    theirs.close()
    threading.Thread(target=_give, args=(ours, process), daemon=True).start()
    while content := ours.recv(CHUNK):
        while content:
            content = content[os.write(1, content) :]
    return process.wait()


def _give(ours: socket.socket, process: subprocess.Popen[bytes]) -> None:
    while content := os.read(0, CHUNK):
        ours.sendall(content)
    process.kill()  # nobody asks any more


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
