"""An environment of Python with what the rivals need, made once; nothing of ours is in it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from importlib import resources
from pathlib import Path

from servioticy.errors import SetupError

FETCH_SECONDS = 600.0
REQUIREMENTS = Path(str(resources.files("benchmarks.rivals"))) / "requirements.txt"
"""Pinned and hashed."""


def python_of(folder: Path) -> Path:
    """Return the interpreter of the environment, made under the folder where it is not there yet.

    Raises SetupError where its packages cannot be fetched.
    """
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    made = folder / f"rivals-{digest}"
    python, complete = made / "bin" / "python", made / "complete"
    if complete.exists():
        return python
    sys.stderr.write(f"fetching Bytewax and Quix Streams into {made}: some 60 MB, once\n")
    venv.create(made, clear=True, with_pip=True)
    fetching = [str(python), "-m", "pip", "install", "--require-hashes", "--only-binary", ":all:"]
    fetching += ["--no-deps", "--disable-pip-version-check", "--progress-bar", "off"]
    try:
        done = subprocess.run(
            [*fetching, "-r", str(REQUIREMENTS)],
            stdout=sys.stderr,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SetupError(f"the rivals' packages did not come within {FETCH_SECONDS:g} s") from None
    if done.returncode:
        raise SetupError(
            "the rivals' packages cannot be installed, as pip says above: they are wheels for "
            "Python 3.11 on x86-64 Linux. Without --rivals nothing of them is needed"
        )
    complete.touch()
    return python
