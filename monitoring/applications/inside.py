"""Within each Python process of an application: its aspects are woven as its modules load.

`sitecustomize`, which Python loads before anything of the application, calls `begin`. The
application knows nothing of it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from monitoring import sequences
from monitoring.following import Following

FOLDER, NAME = "MONITORED_FOLDER", "MONITORED_NAME"
"""Environment variables: where it is registered, and as what."""
LOOK_SECONDS = 0.2
CUSTOMIZE = "sitecustomize"
LOADED = """\
# Made by the monitor of this application: loaded by each of its Python processes.
from monitoring.applications import inside
inside.begin(__file__)
"""


def begin(file: str) -> None:
    """Weave, and go on as Python would have without us. Nothing of it can end the process."""
    _follow_safely()
    os.register_at_fork(after_in_child=_follow_safely)
    _customize_as_before(Path(file).resolve().parent)


def _follow_safely() -> None:
    try:
        _follow()
    except Exception as error:  # noqa: BLE001  the application is to run all the same
        sys.stderr.write(f"nothing is woven here: {error!r}\n")


def _follow() -> None:
    """Follow the file of aspects; in a fork of a process that did, too."""
    folder, name = Path(os.environ[FOLDER]), os.environ[NAME]
    sequences.SCOPE.name = name
    following = Following(folder / "aspects.toml", folder, name, look_seconds=LOOK_SECONDS)
    following.start()
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, AtLoading)]
    sys.meta_path.insert(0, AtLoading(following.names, following.look))


class AtLoading:
    """Has modules woven when they have been loaded, before anybody can call what they have."""

    def __init__(self, names: Callable[[str], bool], weave: Callable[[], None]) -> None:
        """`names` says whether any pointcut may name something of a module."""
        self._names, self._weave = names, weave

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the others find, with a loader that weaves in the end."""
        if not self._names(name):
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else _found(finder, name, path, target)
            if spec is not None:
                self._prepare(spec)
                return spec
        return None

    def _prepare(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        if loader is None or isinstance(loader, type) or not hasattr(loader, "exec_module"):
            return  # built in: there is nothing of Python's in it
        execute = loader.exec_module

        @wraps(execute)
        def executed(module: ModuleType) -> None:
            execute(module)
            self._weave()

        loader.exec_module = executed


def _found(
    finder: Any, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    find = getattr(finder, "find_spec", None)
    return None if find is None else find(name, path, target)


def _customize_as_before(ours: Path) -> None:
    """Load the `sitecustomize` that ours stands in front of, if there is one."""
    others = [each for each in sys.path if Path(each or ".").resolve() != ours]
    spec = PathFinder.find_spec(CUSTOMIZE, others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
