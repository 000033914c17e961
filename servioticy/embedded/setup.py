"""What `make setup` does after pip: `python -m servioticy.embedded.setup`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from servioticy import terminal
from servioticy.embedded import classes, jars, java, javascript
from servioticy.embedded.downloads import Progress
from servioticy.errors import ServioticyError
from servioticy.settings import Settings, load

if TYPE_CHECKING:
    from rich.console import Console


def prepare(settings: Settings) -> None:
    """Download what is missing and compile our classes; quick when nothing is missing."""
    if javascript.missing(settings):
        with _shown("JavaScript", terminal.console(sys.stderr)) as shown:
            absent = javascript.download(settings, shown)
        for package in absent:
            _say(f"{package.name} is not in the registry; {javascript.NEEDED_BY[package.name]}")
    runtime = java.find(settings)
    if jars.missing(settings):
        with _shown("jars", terminal.console(sys.stderr)) as shown:
            missing = jars.download(settings, shown)
        for jar in missing:
            _say(f"{jar.name} is not in the repository; classes of ours stand in for it")
    for each in jars.compiled(settings):
        if not classes.is_ready(classes.jar(settings, each)):
            _say(f"compiling Java classes: {each.value}")
            classes.build(settings, each, runtime)
    _say(
        f"ready: Java {runtime.version} ({runtime.source}), "
        f"jars in {settings.embedded.jars_path}, "
        f"JavaScript in {javascript.folder(settings)}"
    )


def main() -> int:
    """Prepare the machine; if that cannot be done, say why in a line and return 1."""
    try:
        prepare(load())
    except ServioticyError as error:
        _say(str(error))
        return 1
    return 0


@contextmanager
def _shown(what: str, console: Console | None) -> Iterator[Progress]:
    """Tell how a download goes on: by a bar in a terminal, else by its first and last file."""

    def say(done: int, total: int, size: int) -> None:
        if done in (1, total):
            _say(f"downloading {what}: {done} of {total}, {size / 1e6:.1f} MB")

    if console is None:
        yield say
        return
    from rich import progress

    columns = (
        progress.TextColumn(f"servioticy: downloading {what}"),
        progress.BarColumn(bar_width=20),
        progress.TextColumn("{task.completed} of {task.total}, {task.fields[megabytes]:.1f} MB"),
    )
    with progress.Progress(*columns, console=console) as bar:
        task = bar.add_task(what, total=None, megabytes=0.0, visible=False)

        def draw(done: int, total: int, size: int) -> None:
            bar.update(task, completed=done, total=total, megabytes=size / 1e6, visible=True)

        yield draw


def _say(text: str) -> None:
    sys.stderr.write(f"servioticy: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
