"""A process of the sandbox whose start takes longer than somebody can wait."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from unittest import mock

import pytest

from sandbox import InfraError, TookTooLong, protocol
from sandbox.host.allowance import Allowance
from sandbox.host.spare import Spare
from sandbox.host.starting import Starting
from sandbox.host.worker_client import READY_SECONDS, WorkerClient

ASK = WorkerClient._ask
NO_TIME = 0.0
READY = protocol.frame(protocol.READY, b"{}")


class Silent:
    """A zygote whose workers say nothing by themselves."""

    def __init__(self) -> None:
        self.theirs: list[socket.socket] = []
        self._pid = os.posix_spawn("/bin/true", ["true"], {})
        os.waitpid(self._pid, 0)

    def spawn(self, checks: bool = False, is_patient: bool = False) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        self.theirs.append(theirs)
        return ours, self._pid

    def close(self) -> None:
        for each in self.theirs:
            each.close()


@pytest.fixture
def zygote() -> Iterator[Silent]:
    zygote = Silent()
    yield zygote
    zygote.close()


def started(zygote: Silent, is_patient: bool = False) -> WorkerClient:
    return WorkerClient(zygote, is_patient=is_patient)  # type: ignore[arg-type]


def test_who_comes_next_goes_on_waiting_for_it(zygote: Silent) -> None:
    starting = Starting(lambda: started(zygote))
    with pytest.raises(TookTooLong):
        starting.ready(Allowance(NO_TIME))
    (theirs,) = zygote.theirs
    theirs.sendall(READY)

    first = starting.ready(Allowance())
    with pytest.raises(TookTooLong):
        starting.ready(Allowance(NO_TIME))

    assert first.alive()
    assert len(zygote.theirs) == 2  # nobody gets one that another has
    first.kill()
    starting.close()


def test_one_that_has_ended_since_is_none(zygote: Silent) -> None:
    starting = Starting(lambda: started(zygote))
    with pytest.raises(TookTooLong):
        starting.ready(Allowance(NO_TIME))
    zygote.theirs[0].close()

    with pytest.raises(TookTooLong):
        starting.ready(Allowance(0.05))
    assert len(zygote.theirs) == 2
    starting.abandon()


def test_the_one_that_was_to_be_there_already_is_left_to_others(zygote: Silent) -> None:
    spare = Spare(zygote)  # type: ignore[arg-type]
    spare.prepare()
    with pytest.raises(TookTooLong):
        spare.take(Allowance(NO_TIME))
    zygote.theirs[0].sendall(READY)

    taken = spare.take()

    assert taken.alive()
    taken.kill()
    spare.close()


@pytest.mark.parametrize("is_patient", [False, True])
def test_it_is_waited_for_so_long_in_all(zygote: Silent, *, is_patient: bool) -> None:
    """One that has only what nobody else wants for longer; but one that hangs for ever, not."""
    worker, waited = started(zygote, is_patient), 0.0

    def silence(_worker: WorkerClient, _message: bytes, seconds: float) -> object:
        nonlocal waited
        waited += seconds
        return ASK(_worker, b"", 0.0)

    with (
        mock.patch("sandbox.host.worker_client.time.monotonic", lambda: waited),
        mock.patch.object(WorkerClient, "_ask", silence),
        pytest.raises(InfraError),
    ):
        while True:
            with contextlib.suppress(TookTooLong):
                worker.ready(Allowance(READY_SECONDS / 2, lambda: 0.0))
    assert waited == READY_SECONDS * (20 if is_patient else 1)
