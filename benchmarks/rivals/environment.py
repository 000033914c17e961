"""Environments of Python with what rivals need, each made once; nothing of ours is in them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from servioticy.errors import SetupError

FETCH_SECONDS = 900.0
FOLDER = Path(str(resources.files("benchmarks.rivals")))


class Packages(NamedTuple):
    """What is fetched for an environment."""

    names: str
    megabytes: int
    requirements: str
    """a file of this folder: pinned and hashed, with all that each needs"""
    first: Sequence[str] = ()
    """of that what is installed before the rest, which some are built with"""


WINDOWS = Packages("Bytewax and Quix Streams", 60, "windows.txt")
FLINK = Packages("PyFlink", 500, "flink.txt", ("wheel",))


def python_of(folder: Path, packages: Packages) -> Path:
    """Return the interpreter of an environment, made under the folder where it is not there yet.

    Raises SetupError where its packages cannot be fetched.
    """
    wanted = (FOLDER / packages.requirements).read_text()
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:12]
    made = folder / f"rivals-{digest}"
    python, complete = made / "bin" / "python", made / "complete"
    if complete.exists():
        return python
    sys.stderr.write(
        f"fetching {packages.names} into {made}: some {packages.megabytes} MB, once\n"
    )
    venv.create(made, clear=True, with_pip=True)
    lines = [each for each in wanted.splitlines() if not each.startswith("#")]
    first = [each for each in lines if each.partition("==")[0] in packages.first]
    for number, some in enumerate(filter(None, (first, lines))):
        listed = made / f"requirements-{number}.txt"
        listed.write_text("\n".join(some))
        _install(python, listed, builds=bool(packages.first))
    complete.touch()
    return python


def _install(python: Path, listed: Path, *, builds: bool) -> None:
    fetching = [str(python), "-m", "pip", "install", "--require-hashes", "--no-deps"]
    fetching += ["--no-build-isolation"] if builds else ["--only-binary", ":all:"]
    fetching += ["--disable-pip-version-check", "--progress-bar", "off"]
    try:
        done = subprocess.run(
            [*fetching, "-r", str(listed)],
            stdout=sys.stderr,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SetupError(f"the rivals' packages did not come within {FETCH_SECONDS:g} s") from None
    if done.returncode:
        raise SetupError(
            "the rivals' packages cannot be installed, as pip says above: they are for "
            "Python 3.11 on x86-64 Linux. Without --rivals nothing of them is needed"
        )
