"""Links that are lists of a store: two for each process of a program, and who may touch them."""

from __future__ import annotations

import json
import math
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import operators
from operators.links import Link
from operators.queues.pumping import KEPT_MILLISECONDS, Given, Most, give, take
from operators.queues.resp import Address, Connection, Refused, StoreLost
from operators.wire import MAX_FRAME_BYTES
from servioticy.errors import Unavailable
from servioticy.ports.programs import MAX_QUESTION_BYTES

PREFIX = "servioticy-operator-"
"""How users and lists of ours begin."""

MOST_ASKED = Most(2 * MAX_QUESTION_BYTES, None)
MOST_ANSWERED = Most(MAX_FRAME_BYTES, 17 * 1024 * 1024)
"""A little more than `operators/line.py` allows: who oversteps that is judged there."""

MOST_BYTES = MOST_ASKED.frame + 2 * MAX_FRAME_BYTES + (MOST_ANSWERED.unread or 0)
"""What a link may take of the store at most."""

JOIN_SECONDS = 10.0
SAY_SECONDS = 60.0
"""So often it is said that a link still is."""

_BOOT = (
    "import sys,types\n"
    "for name,folder in zip(('operators','operators.queues'),sys.argv[2:]):\n"
    " sys.modules[name]=module=types.ModuleType(name); module.__path__=[folder]\n"
    "import operators.queues.relay as relay\n"
    "relay.main(int(sys.argv[1]))"
)


def prefix(place: Address) -> str:
    """Return how users and lists of ours begin in one database.

    Users are the whole server's, and that a link still is only its database tells: platforms that
    share a server, each with a database of its own, do not take each other's away.
    """
    return f"{PREFIX}{place.database}-"


class Queues:
    """Makes links that are lists of a store."""

    def __init__(self, store: Callable[[], Address], close: Callable[[], None]) -> None:
        """`store` says where it is, and raises Unavailable; `close` is called at the end."""
        self._store = store
        self._close = close
        self._lock = threading.Lock()
        self._links: set[QueueLink] = set()
        self._sweep_at = -math.inf

    def link(self) -> Link:
        """Make two lists, a user who may use nothing else, and who does. Raises Unavailable."""
        place = self._store()
        try:
            if time.monotonic() >= self._sweep_at:
                _sweep(place)
                self._sweep_at = time.monotonic() + KEPT_MILLISECONDS / 1000
            made = QueueLink(place)
        except (StoreLost, Refused) as error:
            raise Unavailable(f"the store of queues: {error}") from error
        with self._lock:
            self._links = {each for each in self._links if each.is_alive} | {made}
        return made

    def close(self) -> None:
        """Wait until all lists and users are gone."""
        for each in self._links:
            each.join()
        self._close()


class QueueLink:
    """Two lists. Frames go into one, and come out of the other; threads carry them."""

    def __init__(self, place: Address) -> None:
        """Raises StoreLost, Refused, OSError."""
        self.lost = ""
        self._say_again_at = time.monotonic() + SAY_SECONDS
        name = prefix(place) + secrets.token_hex(8)
        self._name, self._asked, self._answered = name, f"{name}:asked", f"{name}:answered"
        password = secrets.token_urlsafe(24)
        self._giving = Connection(place)
        try:
            self._taking = Connection(place)
        except BaseException:
            self._giving.close()
            raise
        self.ours, self._inner = socket.socketpair()
        relayed, self.theirs = socket.socketpair()
        try:
            self._giving.calls(
                [
                    self._still_here,
                    (
                        *("ACL", "SETUSER", name, "reset", "on", f">{password}"),
                        *(f"%RW~{self._asked}", f"%W~{self._answered}"),
                        *("+blpop", "+rpush", "+pexpire", "+select"),
                    ),
                ]
            )
            self._relay, self._life = _relay(
                relayed,
                {
                    "address": place._replace(user=name, password=password),
                    "takes": self._asked,
                    "gives": self._answered,
                    "most": MOST_ANSWERED,
                },
            )
        except BaseException:
            for each in (self._giving, self._taking, self.ours, self._inner, self.theirs):
                each.close()
            raise
        finally:
            relayed.close()
        self._taker = threading.Thread(target=self._take, name="queue-take", daemon=True)
        self._giver = threading.Thread(target=self._give, name="queue-give", daemon=True)
        self._taker.start()
        self._giver.start()

    @property
    def is_alive(self) -> bool:
        """Whether anything is left of it."""
        return self._giver.is_alive()

    def join(self) -> None:
        """Wait until nothing is."""
        self._giver.join(JOIN_SECONDS)

    @property
    def _still_here(self) -> tuple[str | int, ...]:
        return ("SET", f"{self._name}:here", 1, "PX", KEPT_MILLISECONDS)

    def _give(self) -> None:
        """Carry until our end is closed, and then clear up."""
        try:
            with self._inner.makefile("rb") as source:
                give(source, self._giving, self._asked, MOST_ASKED, Given(MOST_ASKED))
        except (StoreLost, Refused) as error:
            self._lose(str(error))
        except OSError:
            pass  # closed
        finally:
            self._clear_up()

    def _take(self) -> None:
        try:
            take(self._taking, self._answered, self._inner, self._look, Given(MOST_ANSWERED))
            self._end()
        except (StoreLost, Refused) as error:
            self._lose(str(error))
        except OSError:
            pass  # nobody listens

    def _look(self) -> bool:
        """Say that we are still here; tell whether who carries for the program is not."""
        if self._relay.poll() is None:
            if time.monotonic() >= self._say_again_at:
                self._say_again_at += SAY_SECONDS
                self._taking.calls([self._still_here])
            return False
        if self._relay.returncode:
            self._lose("who carries for the program has ended")
        return self._relay.returncode != 0

    def _lose(self, reason: str) -> None:
        self.lost = self.lost or reason
        self._end()

    def _end(self) -> None:
        with suppress(OSError):
            self._inner.shutdown(socket.SHUT_RDWR)

    def _clear_up(self) -> None:
        is_reached = not self.lost  # whoever takes loses its connection now
        self._taking.interrupt()
        self._taker.join()
        self._relay.kill()
        self._relay.wait()
        os.close(self._life)
        with suppress(StoreLost, Refused):
            if is_reached:
                lists = (self._asked, self._answered, f"{self._name}:here")
                self._giving.calls([("DEL", *lists), ("ACL", "DELUSER", self._name)])
        for each in (self._giving, self._taking, self._inner):
            each.close()


def _relay(program: socket.socket, said: dict[str, object]) -> tuple[subprocess.Popen[bytes], int]:
    """Begin who carries for a program; with what it ends when that is closed."""
    come, life = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT, str(program.fileno()), *_folders()],
            stdin=come,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(program.fileno(),),
            env={},
            cwd="/",
            start_new_session=True,
        )
        os.write(life, json.dumps(said).encode() + b"\n")
    except BaseException:
        os.close(life)
        raise
    finally:
        os.close(come)
    return process, life


def _folders() -> list[str]:
    ours = Path(operators.__path__[0]).absolute()
    return [str(ours), str(ours / "queues")]


def _sweep(place: Address) -> None:
    """Take users away whose platform has died, of this database. Raises StoreLost, Refused."""
    store = Connection(place)
    try:
        users = store.call("ACL", "USERS")
        ours = [
            each
            for each in (users if isinstance(users, list) else ())
            if isinstance(each, bytes) and each.startswith(prefix(place).encode())
        ]
        here = store.calls([("EXISTS", each + b":here") for each in ours])
        gone = [each for each, is_here in zip(ours, here, strict=True) if not is_here]
        if gone:
            store.call("ACL", "DELUSER", *gone)
    finally:
        store.close()
