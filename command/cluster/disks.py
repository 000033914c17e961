"""What a worker's machine has on its disk: a packed environment, a folder to work in, and neither
checkout nor anything of the other machines.

It is a mount namespace, in which those are hidden and its own are at a path that no other has.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from sysconfig import get_path

from command.packing.installed import HERE, OURS
from servioticy.settings import Settings

SCRATCH = "scratch"
MOUNTED = Path("/mnt")
"""Emptied for a worker, and what is its own is put there."""
CHECKOUT = HERE
PACKAGES = Path(get_path("purelib"))


def packed(folder: Path) -> Path:
    """Make the environment that workers are given, and return it.

    A copy of our own packages, and of all others a link into what is mounted beside it: their
    two gigabytes are not copied, and are at another path than here all the same.
    """
    shutil.rmtree(folder, ignore_errors=True)
    site = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    (folder / "bin").mkdir()
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to(Path(sys.executable).resolve())
    home = Path(sys.executable).resolve().parent
    (folder / "pyvenv.cfg").write_text(f"home = {home}\n", encoding="utf-8")
    for name in OURS:
        shutil.copytree(CHECKOUT / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    for each in PACKAGES.iterdir():
        if each.name not in OURS and not each.name.startswith("__editable__"):
            (site / each.name).symlink_to(Path("../../../../packages") / each.name)
    return folder


def of_worker(
    name: str, environment: Path, folder: Path, hidden: Iterable[Path], settings: Settings
) -> tuple[list[str], Mapping[str, str]]:
    """Return what to put before a worker's command, and its environment.

    `folder` is its own, which outlives it; `hidden` are folders of others.
    """
    at = MOUNTED / name
    bound = {
        environment: at / "environment",
        PACKAGES: at / "packages",
        folder: at / "work",
        settings.embedded.javascript_path: at / "javascript",
    }
    lines = [f"mount -t tmpfs none {MOUNTED}"]
    for source, target in bound.items():
        there = shlex.quote(str(target))
        lines += [f"mkdir -p {there}", f"mount --bind {shlex.quote(str(source))} {there}"]
    cache = settings.embedded.jars_path.parent
    lines += [
        f"mount -t tmpfs none {shlex.quote(str(each))}"
        for each in _outermost([CHECKOUT, Path(sys.prefix), cache, *hidden])
    ]
    work = at / "work"
    lines += [f"mkdir -p {work / SCRATCH}", f"cd {work}", 'exec "$@"']
    return ["unshare", "--mount", "--", "sh", "-ec", "\n".join(lines), "sh"], {
        "PATH": f"{at}/environment/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(work),
        "TMPDIR": str(work / SCRATCH),
        "SERVIOTICY_DATA": str(work),
        "SERVIOTICY_JARS": f"{work}/jars",
        "SERVIOTICY_JAVASCRIPT": f"{at}/javascript",
    }


def python(name: str) -> str:
    """Return that of a worker's environment."""
    return str(MOUNTED / name / "environment" / "bin" / "python")


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """Return those that are below none of the others, once each."""
    found = {each.resolve() for each in folders if each.exists()}
    return sorted(each for each in found if not found & set(each.parents))
