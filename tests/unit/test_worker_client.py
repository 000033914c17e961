"""The hold on a worker of the sandbox that is there no more."""

from __future__ import annotations

import os
import socket
from unittest import mock

import pytest

from sandbox import protocol
from sandbox.host.worker_client import WorkerClient
from sandbox.host.zygote_client import InfraError


def spawned(said: bytes) -> mock.Mock:
    """A zygote whose worker has said this and ended, before anybody looked at it."""
    ours, theirs = socket.socketpair()
    theirs.sendall(said)
    theirs.close()
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    return mock.Mock(spawn=lambda _checks, _is_patient: (ours, pid))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (protocol.frame(protocol.BROKEN, b"no seccomp"), "no seccomp"),
        (b"", "the script's process ended"),
    ],
)
def test_one_that_ended_before_it_was_looked_at_tells_why(said: bytes, reason: str) -> None:
    worker = WorkerClient(spawned(said))

    with pytest.raises(InfraError, match=reason):
        worker.ready()
    worker.kill()
    assert worker.ended


def test_one_that_cannot_be_watched_is_none() -> None:
    with (
        mock.patch.object(os, "pidfd_open", side_effect=OSError(24, "too many files")),
        pytest.raises(InfraError, match="too many files"),
    ):
        WorkerClient(spawned(b""))
