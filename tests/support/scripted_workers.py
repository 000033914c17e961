"""Workers of a sandbox that say what the test has them say, forked from a process that is small.

To fork the one that runs the tests takes tens of milliseconds: all that it has in memory is noted.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

from sandbox import protocol

MOST_BYTES = 1 << 17
END = pickle.dumps(None)


class Scripted:
    """A zygote whose workers have an answer to each frame, and then end."""

    pid = None

    def __init__(self) -> None:
        self.answers: Sequence[bytes] = ()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, __file__, str(number)]
            self._process = subprocess.Popen(
                command, pass_fds=[number], env={**os.environ, "PYTHONPATH": ":".join(sys.path)}
            )

    def spawn(self, checks: bool = False, is_patient: bool = False) -> tuple[socket.socket, int]:
        """Return a new worker's connection and process id."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [pickle.dumps(self.answers)], [theirs.fileno()])
        return ours, int(self._control.recv(20))

    def close(self) -> None:
        """End all workers; others may be started."""
        self._control.send(END)
        assert self._control.recv(20) == b"ended"

    def end(self) -> None:
        """End what they are forked from."""
        self._control.close()
        self._process.wait()


def _serve(connection: socket.socket, answers: Sequence[bytes]) -> None:
    connection.sendall(answers[0])
    reader = protocol.Reader(connection)
    for answer in answers[1:]:
        reader.read()
        connection.sendall(answer)


def _fork(control: socket.socket) -> None:
    children: list[int] = []
    while True:
        asked, numbers, _flags, _from = socket.recv_fds(control, MOST_BYTES, 1)
        if not asked:  # who asks has gone
            break
        if asked == END:
            _end(children)
            control.send(b"ended")
            continue
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                control.close()
                _serve(socket.socket(fileno=numbers[0]), pickle.loads(asked))
            os._exit(0)
        os.close(numbers[0])
        children.append(child)
        control.send(str(child).encode())
    _end(children)


def _end(children: list[int]) -> None:
    for each in children:
        os.kill(each, signal.SIGKILL)
        os.waitpid(each, 0)
    children.clear()


if __name__ == "__main__":
    _fork(socket.socket(fileno=int(sys.argv[1])))
