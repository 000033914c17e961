"""A process that is asked ends with whoever asks, and where it is late; another one is begun."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from process_walks import alive
from waiting import until

from servioticy.apart.answering import NICE
from servioticy.apart.asking import OtherProcess, TookTooLong
from servioticy.errors import Unavailable

SECONDS = 60.0
ECHO = (
    sys.executable,
    "-c",
    """
import os, time
from servioticy.apart.answering import serve

def answer(request):
    if request == b"nice":
        return str(os.nice(0)).encode()
    if request == b"who":
        return str(os.getpid()).encode()
    if request == b"named":
        return os.environ.get("NAMED", "").encode()
    if request == b"session":
        return str(os.getsid(0)).encode()
    if request == b"late":
        time.sleep(600)
    if request == b"busy":
        while True:
            pass
    if request == b"end":
        os._exit(1)
    return request

serve(answer)
""",
)
DEAF = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
def echo() -> Iterator[OtherProcess]:
    process = OtherProcess(ECHO, SECONDS, "the echo", {"NAMED": "yes"})
    yield process
    process.stop()


def test_it_answers_one_after_the_other_in_a_process_that_others_come_before(
    echo: OtherProcess,
) -> None:
    large = b"x" * 5_000_000

    assert [echo.ask(each) for each in (b"a", large, b"named")] == [b"a", large, b"yes"]
    assert int(echo.ask(b"nice")) >= NICE
    assert int(echo.ask(b"who")) != os.getpid()


def test_one_that_ends_is_told_and_another_one_begun(echo: OtherProcess) -> None:
    before = echo.ask(b"who")
    with pytest.raises(Unavailable, match="the echo ended"):
        echo.ask(b"end")

    assert echo.ask(b"who") != before


def test_one_that_answers_more_than_it_may_is_ended_and_another_one_begun() -> None:
    """To the byte: whoever asks reads no more of it."""
    own = OtherProcess(ECHO, SECONDS, "the echo", most=1_000)
    before = own.ask(b"who")

    assert own.ask(b"x" * 1_000) == b"x" * 1_000
    assert own.ask(b"who") == before
    with pytest.raises(Unavailable, match="the echo ended"):
        own.ask(b"x" * 1_001)
    assert own.ask(b"who") != before
    own.stop()


def test_one_that_is_late_is_ended_and_another_one_begun(echo: OtherProcess) -> None:
    echo.ask(b"a")
    assert echo._process is not None
    process = echo._process._process
    echo.stop()
    quick = OtherProcess(ECHO, 3.0, "the echo")
    with pytest.raises(TookTooLong, match="the echo did not answer within 3 s"):
        quick.ask(b"late")

    assert process.poll() is not None
    assert quick._process is None
    quick.stop()


def test_one_that_does_not_even_listen_holds_up_nobody() -> None:
    """A request is larger than what Linux keeps for it."""
    deaf = OtherProcess(DEAF, 0.2, "the deaf one")

    with pytest.raises(TookTooLong):
        deaf.ask(b"x" * 5_000_000)


def test_it_ends_with_those_who_ask(echo: OtherProcess) -> None:
    """Also where they are killed: its end of the socket closes."""
    echo.ask(b"a")
    assert echo._process is not None
    echo._process._connection.close()

    assert echo._process._process.wait(30) == 0


def test_it_ends_with_those_who_ask_in_the_middle_of_an_answer_too(echo: OtherProcess) -> None:
    """A search may take many seconds, and nobody waits for it any more."""
    echo.ask(b"a")
    assert echo._process is not None
    echo._process._connection.send_bytes(b"busy")
    echo._process._connection.close()

    assert echo._process._process.wait(30) == 0


def test_it_ends_with_a_process_that_is_killed() -> None:
    """It is in a session of its own: whoever ends that one's group does not end it."""
    asker = (
        "import sys, test_apart; from servioticy.apart.asking import OtherProcess\n"
        "echo = OtherProcess(test_apart.ECHO, 60, 'the echo')\n"
        "print(echo.ask(b'who').decode(), flush=True)\n"
        "echo.ask(b'busy')"
    )
    path = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    with subprocess.Popen(
        [sys.executable, "-c", asker],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
    ) as process:
        assert process.stdout is not None
        answering = int(process.stdout.readline())
        process.kill()
        until(lambda: not alive(answering))


def test_it_yields_in_a_session_of_its_own(echo: OtherProcess) -> None:
    assert int(echo.ask(b"session")) == int(echo.ask(b"who")) != os.getsid(0)
