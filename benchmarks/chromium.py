"""A Chromium for benchmarks and tests: the machine's, else one unpacked from Debian's packages.

That needs no root: `apt-get` is given folders of its own for its lists, checks the signatures of
the archive as always, and says what the machine lacks. Nothing is installed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from servioticy.errors import ServioticyError
from servioticy.settings import load

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio", "usr/lib/chromium")
SECONDS = 540.0
FLAGS = (
    "--no-sandbox",  # the tests of CI run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
_URI = re.compile(r"^'([^']+)' (\S+\.deb) ", re.MULTILINE)


class NoBrowser(ServioticyError):
    """There is no Chromium, and none could be fetched."""


def chromium() -> tuple[Path, dict[str, str]]:
    """Return the program, and what its environment needs. Raises NoBrowser."""
    named = os.environ.get("SERVIOTICY_TEST_BROWSER")
    found = named or next((each for each in map(shutil.which, NAMES) if each), None)
    if found:
        return Path(found), dict(os.environ)
    folder = load().embedded.javascript_path.parent / "chromium"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "root/usr/lib/chromium/chromium"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            _unpack(folder)
            (folder / "ready").touch()
    libraries = [str(folder / "root" / each) for each in LIBRARIES]
    return program, {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}


def _unpack(folder: Path) -> None:
    """Unpack Chromium, and the libraries that this machine lacks. Raises NoBrowser."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise NoBrowser(
            "what is measured and tested in a browser needs Chromium: install it (on Debian "
            "`chromium`), or name it in SERVIOTICY_TEST_BROWSER; only with apt-get can it be "
            "fetched for you"
        )
    own = _own_folders(folder)
    _run("apt-get", *own, "-qq", "update")
    wanted = ("-qq", "-y", "--no-install-recommends", "--print-uris", "install", "chromium")
    names = [name for _, name in _URI.findall(_run("apt-get", *own, *wanted))]
    packages = sorted({name.partition("_")[0] for name in names} - {"xdg-utils"})
    debs = folder / "debs"
    debs.mkdir(exist_ok=True)
    _run("apt-get", *own, "-qq", "download", *packages, cwd=debs)
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for each in sorted(debs.glob("*.deb")):
        _run("dpkg-deb", "-x", str(each), str(root))
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


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, cwd=cwd, check=False
    )
    if done.returncode != 0:
        raise NoBrowser(f"Chromium could not be fetched: {' '.join(command)}: {done.stderr}")
    return done.stdout
