"""A Chromium for benchmarks and tests: the machine's, else one unpacked from Debian's packages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmarks import debian
from servioticy.errors import ServioticyError
from servioticy.settings import load

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio", "usr/lib/chromium")
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


class NoBrowser(ServioticyError):
    """There is no Chromium, and none could be fetched."""


def chromium() -> tuple[Path, dict[str, str]]:
    """Return the program, and what its environment needs. Raises NoBrowser."""
    named = os.environ.get("SERVIOTICY_TEST_BROWSER")
    found = named or next((each for each in map(shutil.which, NAMES) if each), None)
    if found:
        return Path(found), dict(os.environ)
    try:
        root = debian.unpacked(load().embedded.javascript_path.parent / "chromium", ["chromium"])
    except debian.NotUnpacked as error:
        raise NoBrowser(
            "what is measured and tested in a browser needs Chromium: install it (on Debian "
            f"`chromium`), or name it in SERVIOTICY_TEST_BROWSER; {error}"
        ) from error
    libraries = [str(root / each) for each in LIBRARIES]
    program = root / "usr/lib/chromium/chromium"
    return program, {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}
