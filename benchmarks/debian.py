"""Programs out of Debian's packages for benchmarks and tests, unpacked into a folder.

That needs no root: `apt-get` is given folders of its own for its lists, checks the signatures of
the archive as always, and says what the machine lacks. Nothing is installed.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from servioticy.errors import ServioticyError

SECONDS = 540.0
"""For a browser, over a slow line."""
LEFT_OUT = {"xdg-utils"}
"""What none of these programs needs where nobody sits before it."""
_URI = re.compile(r"^'([^']+)' (\S+\.deb) ", re.MULTILINE)


class NotUnpacked(ServioticyError):
    """A package could not be fetched or unpacked."""


def unpacked(folder: Path, names: Sequence[str], seconds: float = SECONDS) -> Path:
    """Return where these packages are unpacked, with those that they need and the machine lacks.

    Once, whoever asks meanwhile waits. Raises NotUnpacked, also where it takes longer.
    """
    root = folder / "root"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            _unpack(folder, root, names, time.monotonic() + seconds)
            (folder / "ready").touch()
    return root


def _unpack(folder: Path, root: Path, names: Sequence[str], until: float) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise NotUnpacked("only with apt-get can it be fetched for you")
    own = _own_folders(folder)
    _run(until, "apt-get", *own, "-qq", "update")
    wanted = ("-qq", "-y", "--no-install-recommends", "--print-uris", "install", *names)
    files = [name for _, name in _URI.findall(_run(until, "apt-get", *own, *wanted))]
    packages = sorted({name.partition("_")[0] for name in files} - LEFT_OUT)
    debs = folder / "debs"
    debs.mkdir(exist_ok=True)
    _run(until, "apt-get", *own, "-qq", "download", *packages, cwd=debs)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for each in sorted(debs.glob("*.deb")):
        _run(until, "dpkg-deb", "-x", str(each), str(root))
    shutil.rmtree(debs)


def _own_folders(folder: Path) -> list[str]:
    """Return options that keep apt-get from writing where only root may."""
    lists, cache = folder / "apt/lists", folder / "apt/cache"
    for each in (lists / "partial", cache / "archives/partial"):
        each.mkdir(parents=True, exist_ok=True)
    chosen: Mapping[str, str] = {
        "Dir::State::lists": str(lists),
        "Dir::Cache": str(cache),
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "",
    }
    return [part for name, value in chosen.items() for part in ("-o", f"{name}={value}")]


def _run(until: float, *command: str, cwd: Path | None = None) -> str:
    left = max(0.0, until - time.monotonic())
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=left, cwd=cwd, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NotUnpacked(f"{' '.join(command)}: not done in the time that it has") from error
    if done.returncode != 0:
        raise NotUnpacked(f"{' '.join(command)}: {done.stderr}")
    return done.stdout
