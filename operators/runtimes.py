"""What a program is run by: which file its command begins with, and what has to be seen for it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from operators.errors import NotAnOperator
from operators.guest.root import HOME, SYSTEM

PATH = "/usr/local/bin:/usr/bin:/bin"


class Runtime(NamedTuple):
    """The command, and folders that it needs beside the system's."""

    command: tuple[str, ...]
    shown: tuple[str, ...]


def runtime(command: tuple[str, ...], folder: Path) -> Runtime:
    """Find the first word of a command. Raises NotAnOperator where there is no such program.

    Python is the one that runs the platform, wherever that is; all else is the operator's own, or
    below the system's folders.
    """
    first, *others = command
    if "/" in first:
        path = Path(os.path.normpath(folder / first))
        if not path.is_relative_to(folder) or path.is_symlink() or not path.is_file():
            raise NotAnOperator(f"command: there is no file {first} in the folder")
        return Runtime((f"{HOME}/{path.relative_to(folder)}", *others), ())
    if first in ("python", "python3"):
        prefix = sys.base_prefix
        python = os.path.realpath(f"{prefix}/bin/python{sys.version_info[0]}")
        shown = () if _is_of_system(prefix) else (prefix,)
        return Runtime((python, *others), shown)
    found = shutil.which(first, path=PATH)
    if found is None or not _is_of_system(os.path.realpath(found)):
        raise NotAnOperator(f"command: there is no {first} on this machine, in {PATH}")
    return Runtime((os.path.realpath(found), *others), ())


def _is_of_system(path: str) -> bool:
    return any(path == each or path.startswith(each + "/") for each in SYSTEM)
