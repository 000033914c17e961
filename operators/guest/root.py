"""A file system of a program's own: what it is run by, its folder, a small /tmp, and nothing else.

All but /tmp is read-only. It is a tmpfs with what is bound into it, made the root of this process,
which is in a mount namespace of its own; the machine's is no longer reachable.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
FILES = ("/etc/ld.so.cache", "/etc/localtime")
NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki")
"""What is seen besides by who has the machine's network."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
HOME = "/operator"
"""Where its folder is."""
TEMPORARY = "/tmp"  # noqa: S108  nobody else's
"""Where it may write."""
TEMPORARY_BYTES = 16 * 1024 * 1024
"""So much, which is memory."""

_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXECUTION, _REMOUNT = 1, 2, 4, 8, 32
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_KEPT_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Of statvfs to those of mount: in a user namespace they may not be taken away."""

_C = ctypes.CDLL(None, use_errno=True)


def enter(base: str, folder: str, shown: list[str], temporary_bytes: int) -> None:
    """Make it over the folder `base`, and its root ours. Raises OSError.

    `shown`: folders to be seen where they are, beside the system's.
    """
    mount("none", "/", "", _RECURSIVE | _PRIVATE, "")
    options = f"mode=755,nr_inodes=1k,size={64 * 1024}"
    mount("tmpfs", base, "tmpfs", _NO_SUID, options)
    for path in SYSTEM:
        if Path(path).is_symlink():
            Path(base + path).symlink_to(os.readlink(path))  # noqa: PTH115
        elif Path(path).is_dir():
            _show(path, base + path)
    for path in shown:
        _show(path, base + path)
    _show(folder, base + HOME)
    for path in FILES:
        if Path(path).is_file():
            _show(os.path.realpath(path), base + path)
    for path in DEVICES:
        _bind(path, base + path)
    temporary = base + TEMPORARY
    Path(temporary).mkdir()
    flags = _NO_SUID | _NO_DEVICES | _NO_EXECUTION
    mount("tmpfs", temporary, "tmpfs", flags, f"mode=1777,nr_inodes=1k,size={temporary_bytes}")
    Path(base + "/proc").mkdir()
    with contextlib.suppress(OSError):  # not in every container; programs can do without
        mount("proc", base + "/proc", "proc", flags, "subset=pid,hidepid=2")
    mount("", base, "", _REMOUNT | _READ_ONLY | _NO_SUID, options)
    os.chdir(base)
    if _C.syscall(_PIVOT_ROOT[platform.machine()], b".", b".") != 0:
        _fail("pivot_root", base)
    if _C.umount2(b".", _DETACH) != 0:
        _fail("umount", base)
    os.chdir("/")


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    """Call mount(2). Raises OSError."""
    words = [each.encode() or None for each in (source, target, kind, options)]
    if _C.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]) != 0:
        _fail("mount", target)


def _show(path: str, target: str) -> None:
    _bind(path, target)
    had = os.statvfs(path).f_flag
    kept = sum(flag for asked, flag in _KEPT_FLAGS.items() if had & asked)
    mount("", target, "", _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES | kept, "")


def _bind(path: str, target: str) -> None:
    if Path(path).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    mount(path, target, "", _BIND, "")


def _fail(what: str, path: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, f"{what}: {os.strerror(number)}", path)
