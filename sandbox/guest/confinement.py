"""Leaving the machine behind: no network, no files, no privileges, nobody's user.

The zygote leaves the network, once for all its workers; each worker leaves the rest after
its engine has started, because V8 reads /dev/urandom and /proc then. What the machine does
not allow is said, not hidden: every function answers "" or why the layer is missing.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

OTHER_USER = 65533
"""Whom a worker of root becomes. Not 65534, nobody, whose processes others may be."""

SAME_USER = -1

NEW_USER, _NEW_NETWORK, _NEW_IPC = 0x10000000, 0x40000000, 0x08000000
_SET_DUMPABLE, _SET_NO_NEW_PRIVS = 4, 38
_CAPSET_VERSION = 0x20080522

_C = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def leave_network() -> str:
    """Move this process, which has one thread, and its children to an empty network namespace.

    For root without a user namespace: it could become nobody else in one.
    """
    user, group = os.geteuid(), os.getegid()
    new = _NEW_NETWORK | _NEW_IPC
    reason = call("unshare", new if user == 0 else new | NEW_USER)
    return reason if reason or user == 0 else stay_who_we_are(user, group)


def stay_who_we_are(user: int, group: int) -> str:
    """Be in a new user namespace whom we were outside of it, and nobody else."""
    try:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    except OSError as error:
        return f"in a new user namespace: {error}"
    return ""


def prepare_empty_root() -> str:
    """Stand in an empty folder that no longer exists; nothing can be made in it either."""
    try:
        folder = tempfile.mkdtemp(prefix="sandbox-")
        os.chdir(folder)
        os.rmdir(folder)  # noqa: PTH106
    except OSError as error:
        os.chdir("/")
        return str(error)
    return ""


def user_to_become() -> int:
    """Return OTHER_USER for a root that can become it, 0 for one that cannot, else SAME_USER.

    The root of a namespace with one user is that user outside.
    """
    if os.geteuid() != 0 and os.getuid() != 0:
        return SAME_USER
    if outside(OTHER_USER) is not None:
        return OTHER_USER
    return 0 if outside(0) == 0 else SAME_USER


def powerless(make: Callable[[], T], becoming: int) -> T:
    """Return what `make` makes in a thread without capabilities.

    The threads that it starts have none either; capabilities in a user namespace could not
    be taken from them later. A real root's can: leave_user() speaks for all threads, and
    would fail if they were not alike.
    """
    if becoming == OTHER_USER:
        return make()
    made: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            drop_capabilities()
            made.append(make())
        except BaseException as error:  # noqa: BLE001  raised again below
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


def leave_files() -> str:
    """Make the folder of prepare_empty_root(), in which we stand, the root of all paths."""
    try:
        os.chroot(".")
    except OSError as error:
        return str(error)
    return ""


def leave_user(becoming: int) -> str:
    """Become OTHER_USER, in all threads, if that is whom to become."""
    if becoming != OTHER_USER:
        return "" if becoming != 0 else "still root"
    try:
        os.setgroups([])
        os.setresgid(OTHER_USER, OTHER_USER, OTHER_USER)
        os.setresuid(OTHER_USER, OTHER_USER, OTHER_USER)
    except OSError as error:
        return f"still root: {error}"
    return ""


def leave_privileges() -> str:
    """Drop this thread's capabilities for good, and let no other process read our memory."""
    return (
        drop_capabilities() or call("prctl", _SET_DUMPABLE, 0, 0, 0, 0) or leave_new_privileges()
    )


def leave_new_privileges() -> str:
    """Let nothing that this process executes give it privileges."""
    return call("prctl", _SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def drop_capabilities() -> str:
    """Give up this thread's capabilities."""
    head = (ctypes.c_uint32 * 2)(_CAPSET_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    return call("capset", head, nothing)


def call(name: str, *arguments: object) -> str:
    """Call the C library: "", or why that has failed."""
    passed = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    if getattr(_C, name)(*passed) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def outside(user: int) -> int | None:
    """Return which user of the enclosing namespace this one is; None if it does not exist here."""
    for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= user < inside + count:
            return outside + user - inside
    return None
