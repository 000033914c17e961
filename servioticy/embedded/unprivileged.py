"""Running a program that refuses to run as root, when we are root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

NOBODY = 65534
_NAMESPACE = ["--user", "--map-user=1000", "--map-group=1000"]
_BECOME_NOBODY = (
    f"import os, sys; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def wrap(command: list[str]) -> list[str]:
    """Return the command to run so that the program does not see itself as root.

    In a user namespace of its own it is user 1000 there and still us outside, so files
    keep their owner. Where namespaces are refused it becomes `nobody`.
    """
    if os.geteuid() != 0:
        return command
    if namespaces_allowed():
        return [shutil.which("unshare") or "unshare", *_NAMESPACE, "--", *command]
    return [sys.executable, "-I", "-S", "-c", _BECOME_NOBODY, *command]


def give(path: Path) -> None:
    """Let the wrapped program own this file, or this folder and all in it."""
    if os.geteuid() != 0:
        return
    owner = 0 if namespaces_allowed() else NOBODY
    if path.stat().st_uid != owner:
        for each in (path, *path.rglob("*")):
            os.chown(each, owner, owner, follow_symlinks=False)


@cache
def namespaces_allowed() -> bool:
    """Tell whether this machine lets us make user namespaces."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    attempt = [unshare, *_NAMESPACE, "--", "true"]
    return subprocess.run(attempt, capture_output=True, check=False).returncode == 0
