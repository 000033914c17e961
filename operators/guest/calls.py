"""The system calls a program may make: enough for Python, Node, Go and what is compiled.

Not: sockets but pairs within the process, other processes, mounts, namespaces, tracing, keys, BPF,
io_uring, and the ways to memory that RLIMIT_DATA does not count (maps that are shared or grow
downwards, memfd_create, System V). `ioctl` by its request only: the socket that a program is born
with is of the platform's network namespace, and would tell the machine's addresses.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import socket
import termios
from collections.abc import Callable

from sandbox.guest.seccomp import CLONE3, Calls, Rule, SeccompRefused

_ALLOWED = (
    *((0, 63), (1, 64), (17, 67), (18, 68), (19, 65), (20, 66), (295, 69), (296, 70)),  # read...
    *((3, 57), (436, 436), (32, 23), (33, -1), (292, 24), (22, -1), (293, 59)),  # close, dup, pipe
    *((2, -1), (257, 56), (4, -1), (5, 80), (6, -1), (262, 79), (332, 291)),  # open, stat
    *((8, 62), (21, -1), (269, 48), (439, 439), (89, -1), (267, 78)),  # lseek, access, readlink
    *((72, 25), (73, 32), (74, 82), (75, 83), (76, 45), (77, 46), (285, 47)),  # fcntl, truncate
    *((78, -1), (217, 61), (79, 17), (80, 49), (81, 50), (95, 166)),  # getdents, getcwd, chdir
    *((82, -1), (264, 38), (316, 276), (83, -1), (258, 34), (84, -1)),  # rename, mkdir, rmdir
    *((87, -1), (263, 35), (90, -1), (91, 52), (280, 88)),  # unlink, chmod, utimensat
    *((137, 43), (138, 44), (221, 223), (326, 285)),  # statfs, fadvise, copy_file_range
    *((11, 215), (12, 214), (25, 216), (28, 233)),  # munmap, brk, mremap, madvise
    *((10, 226), (329, 288), (330, 289), (331, 290)),  # mprotect, pkey_*
    *((202, 98), (218, 96), (273, 99), (274, 100), (334, 293), (324, 283), (158, -1)),  # threads
    *(
        (24, 124),
        (143, 121),
        (145, 120),
        (146, 125),
        (147, 126),
        (204, 123),
        (315, 275),
    ),  # sched_*
    *((13, 134), (14, 135), (15, 139), (131, 132), (34, -1), (38, 103), (234, 131)),  # signals
    *((7, -1), (271, 73), (23, -1), (270, 72)),  # poll, select
    *((213, -1), (291, 20), (232, -1), (281, 22), (441, 441), (233, 21)),  # epoll
    *((284, -1), (290, 19), (283, 85), (286, 86), (287, 87)),  # eventfd, timerfd
    *((44, 206), (45, 207), (46, 211), (47, 212), (48, 210)),  # send, receive, shutdown
    *((51, 204), (52, 205), (54, 208), (55, 209)),  # names and options of sockets
    *((35, 101), (230, 115), (228, 113), (229, 114), (96, 169), (100, 153)),  # times
    *((39, 172), (110, 173), (186, 178), (102, 174), (104, 176), (107, 175), (108, 177)),  # who
    *((115, 158), (118, 148), (120, 150), (111, -1), (121, 155), (124, 156), (125, 90)),
    *((63, 160), (99, 179), (97, 163), (98, 165), (302, 261), (140, 141), (309, 168)),  # uname...
    *((318, 278), (61, 260), (247, 95), (219, 128)),  # getrandom, wait, restart_syscall
    *((59, 221), (60, 93), (231, 94)),  # execve: the program itself; exit
)
_GROWS_DOWN = 0x100
_CLONE_THREAD = 0x10000
_SET_NAME, _GET_NAME, _GET_DUMPABLE, _READ_BOUNDING, _SET_VMA = 15, 16, 3, 23, 0x53564D41
_REQUESTS = (
    *(termios.TCGETS, termios.TIOCGWINSZ, termios.FIONBIO, termios.FIONREAD),
    *(termios.FIOCLEX, termios.FIONCLEX),
)

PROGRAM = Calls(
    _ALLOWED,
    (
        Rule((9, 222), 3, without=mmap.MAP_SHARED | _GROWS_DOWN),  # mmap
        Rule((56, 220), 0, having=_CLONE_THREAD),  # clone
        Rule((16, 29), 1, values=_REQUESTS),  # ioctl
        Rule((53, 199), 0, values=(socket.AF_UNIX,)),  # socketpair
        Rule(
            (157, 167), 0, values=(_SET_NAME, _GET_NAME, _GET_DUMPABLE, _READ_BOUNDING, _SET_VMA)
        ),
    ),
    (CLONE3,),
)
"""What a program may do."""

WITH_NETWORK = Calls(
    (
        *PROGRAM.allowed,
        *((42, 203), (49, 200), (50, 201), (43, 202), (288, 242), (307, 269), (299, 243)),
    ),
    (*PROGRAM.by_argument, Rule((41, 198), 0, values=(socket.AF_INET, socket.AF_INET6))),
    PROGRAM.absent,
)
"""What one may do that has the machine's network."""


def prove(program_socket: int, network: bool) -> None:
    """Try what must not succeed, each by its own call. Raises SeccompRefused."""

    def addresses() -> None:
        fcntl.ioctl(program_socket, 0x8912, bytes(16))  # SIOCGIFCONF

    attempts: dict[str, Callable[[], object]] = {
        "socket": lambda: socket.socket(socket.AF_INET),
        "fork": _fork,
        "kill": lambda: os.kill(os.getpid(), 0),
        "the machine's addresses": addresses,
        "shared memory": lambda: mmap.mmap(-1, 4096),
        "another root": lambda: os.chroot("/"),
        "another user": lambda: os.setuid(os.getuid()),
    }
    if network:
        del attempts["socket"]
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError as error:
            if error.errno == errno.EPERM:
                continue
            raise SeccompRefused(f"{name}: {error}") from error
        raise SeccompRefused(f"{name} is possible")


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)
