"""How far something has come: a bar for who looks at a terminal, nothing for all others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from servioticy import terminal

Advanced = Callable[[int, str], None]
"""It is given the bytes done, and a few words."""


@contextmanager
def shown(what: str, total: int | None) -> Iterator[Advanced]:
    """Show how much of so many bytes is done; without a total, how many are."""
    console = terminal.console(sys.stderr)
    if console is None:
        yield lambda _done, _words: None
        return
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=20),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TextColumn("{task.fields[words]}"),
    )
    with progress.Progress(*columns, console=console) as bar:
        task = bar.add_task(what, total=total, words="")
        yield lambda done, words: bar.update(task, completed=done, words=words)
