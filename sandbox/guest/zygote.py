"""The warm parent of all workers: it has loaded everything and runs nothing.

It is exec'd, never forked from its owner, so it has one thread and none of the owner's
memory, files or environment. Each request carries one end of a socket pair; a forked
worker keeps it, and the answer is the worker's pid, or 0 if there was no fork. It ends
when its owner's end of the control socket closes, and takes the workers along.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
from pathlib import Path

from sandbox import protocol
from sandbox.guest import engines, layers, worker
from sandbox.guest.policy import rules
from sandbox.guest.scripts import realm
from sandbox.guest.worker import Shared
from sandbox.yielding import may_change_many, yield_to_others


def main(
    control_descriptor: int, engine: str, javascript: str, clock: str, nice: str, heap_mib: str
) -> None:
    """Serve requests on an outside socket until it closes.

    `javascript` is the absolute path of the folder with the files of third_party.py, `clock` how
    time passes in scripts (scripts.py), `nice` how much lower the priority of all is, and
    `heap_mib` what scripts have of memory.
    """
    yield_to_others(int(nice))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a worker
    control = socket.socket(fileno=control_descriptor)
    heap = int(heap_mib) * engines.MEBIBYTE
    leads = may_change_many()  # while we are who we are
    outside = layers.leave(heap)
    folder = Path(javascript)
    loaded = engines.load(engine, folder, heap)
    shared = Shared(loaded, realm(clock), rules(folder), outside, int(nice), leads)
    gc.collect()
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, protocol.SPAWN.size, 1)
        if len(message) != protocol.SPAWN.size or len(descriptors) != 1:
            break
        connection = socket.socket(fileno=descriptors[0])
        service = worker.Service(*protocol.SPAWN.unpack(message))
        pid = _fork(control, connection, shared, service)
        connection.close()
        control.sendall(protocol.PID.pack(pid))
    os._exit(0)


def _fork(
    control: socket.socket, connection: socket.socket, shared: Shared, service: worker.Service
) -> int:
    zygote = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        return 0
    if pid == 0:
        control.close()
        silence = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):  # V8 prints pages when it aborts
            os.dup2(silence, standard)
        worker.main(connection, shared, zygote, service)
    return pid
