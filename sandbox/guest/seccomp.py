"""The system calls a worker may still make once it has started: a short allow list.

Everything else answers EPERM, in every thread, for good. What is left computes, waits,
uses memory that cannot be executed, and speaks on descriptors that are already open.
Other processes are given other lists (`operators/guest/calls.py`).
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import socket
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

Numbers = tuple[int, int]
"""On x86_64, and on aarch64; -1: it has none."""


class Rule(NamedTuple):
    """A call that is allowed by the lower half of one of its arguments."""

    numbers: Numbers
    argument: int
    """which, from 0"""
    without: int = 0
    """while it has none of these bits"""
    having: int = 0
    """and this one"""
    values: tuple[int, ...] = ()
    """and is one of these, if there are any"""


class Calls(NamedTuple):
    """A list of system calls; all others answer EPERM."""

    allowed: tuple[Numbers, ...]
    by_argument: tuple[Rule, ...]
    absent: tuple[Numbers, ...]
    """answer that there is no such call"""


_ALLOWED = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "poll": (7, -1),
    "ppoll": (271, 73),
    "recvfrom": (45, 207),
    "sendto": (44, 206),
    "brk": (12, 214),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "futex": (202, 98),
    "rt_sigreturn": (15, 139),
    "rt_sigprocmask": (14, 135),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "getpid": (39, 172),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "membarrier": (324, 283),
    "rseq": (334, 293),
    "restart_syscall": (219, 128),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "getrandom": (318, 278),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
# Allowed while the third argument, the protection, does not say "executable".
_NEVER_EXECUTABLE = {"mmap": (9, 222), "mprotect": (10, 226), "pkey_mprotect": (329, 288)}
# glibc tries clone3 first, and the older call only after this answer.
CLONE3 = (435, 435)

WORKER = Calls(
    tuple(_ALLOWED.values()),
    tuple(Rule(each, 2, without=mmap.PROT_EXEC) for each in _NEVER_EXECUTABLE.values()),
    (CLONE3,),
)
"""What a worker of the sandbox may do."""

_MACHINES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}

_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _HAS_BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT, _ARGUMENT_BYTES = 0, 4, 16, 8
_SET_MODE_FILTER, _ALL_THREADS = 1, 1

_C = ctypes.CDLL(None, use_errno=True)


class SeccompRefused(Exception):
    """The kernel did not take the filter, or does not enforce it."""


def prepare() -> None:
    """Do once for all processes that are forked from this one what would take each its time."""
    machine = platform.machine()
    if machine in _MACHINES:
        _program(WORKER, *_MACHINES[machine][:2])


def install(calls: Calls | None = None) -> None:
    """Filter this process's calls, in all its threads, as WORKER if no other list is given.

    Needs no_new_privs. For good. Raises SeccompRefused.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        raise SeccompRefused(f"no list of system calls for {machine}")
    column, architecture, number = _MACHINES[machine]
    program = _program(calls or WORKER, column, architecture)
    filters = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(filters))
    if _C.syscall(number, _SET_MODE_FILTER, _ALL_THREADS, head) != 0:
        raise SeccompRefused(os.strerror(ctypes.get_errno()))


def prove() -> None:
    """Try what must not succeed, each by its own call. Raises SeccompRefused."""
    for name, attempt in _ATTEMPTS.items():
        try:
            attempt()
        except OSError as error:
            if error.errno == errno.EPERM:  # EACCES would be a file's permissions
                continue
            raise SeccompRefused(f"{name}: {error}") from error
        raise SeccompRefused(f"{name} is possible")


@cache
def _program(calls: Calls, column: int, architecture: int) -> bytes:
    lines = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for numbers in calls.allowed:
        if numbers[column] >= 0:
            lines += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ALLOW)]
    for rule in calls.by_argument:
        if rule.numbers[column] >= 0:
            looks = _looks(rule)
            lines += [(_EQUAL, 0, len(looks), rule.numbers[column]), *looks]
    for numbers in calls.absent:
        lines += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    lines.append((_RETURN, 0, 0, _ERRNO | errno.EPERM))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _looks(rule: Rule) -> list[tuple[int, int, int, int]]:
    """Look at an argument, and allow the call or not."""
    refused = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    lines = [(_LOAD, 0, 0, _ARGUMENTS_AT + rule.argument * _ARGUMENT_BYTES)]
    if rule.without:
        lines += [(_HAS_BITS, 0, 1, rule.without), refused]
    if rule.having:
        lines += [(_HAS_BITS, 1, 0, rule.having), refused]
    for value in rule.values:
        lines += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [*lines, refused if rule.values else (_RETURN, 0, 0, _ALLOW)]


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


_ATTEMPTS: dict[str, Callable[[], object]] = {
    "open": lambda: os.open("/", os.O_RDONLY),
    "socket": socket.socket,
    "socketpair": socket.socketpair,
    "fork": _fork,
    "exec": lambda: os.execv("/", ["/"]),  # noqa: S606  must fail
    "kill": lambda: os.kill(os.getpid(), 0),
    "unlink": lambda: Path("/nothing").unlink(),
    "setuid": lambda: os.setuid(os.getuid()),
    "executable memory": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC),
}
