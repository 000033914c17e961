"""A publisher of the operator's own: a file of Python with a function `publish`.

It gets a list of measurements as dictionaries, as the lines of the file publisher have them, in
a thread of its own. What it raises costs that list; TimeoutError and ConnectionError have it tried
again. A function `close` is called at the end, if it has one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from monitoring.configuration import NotUnderstood
from monitoring.model import Measurement
from servioticy.errors import Unavailable

MAX_BYTES = 1 << 20


class OwnPublisher:
    """Runs the file in this process: so only who may change our programs may write it."""

    def __init__(self, file: Path) -> None:
        """Raises NotUnderstood where the file is none of ours, or has no `publish`."""
        module = ModuleType("own_publisher")
        try:
            code = compile(_read(file), str(file), "exec", dont_inherit=True)
            exec(code, module.__dict__)  # noqa: S102  the operator's, as our own code is
        except Exception as error:  # whatever it says
            raise NotUnderstood(f"{file}: {error!r} - at `$.publish.own`") from error
        publish, close = getattr(module, "publish", None), getattr(module, "close", None)
        if not callable(publish) or not (close is None or callable(close)):
            raise NotUnderstood(f"{file} has no function `publish` - at `$.publish.own`")
        self._publish, self._close = publish, close

    def publish(self, measurements: Sequence[Measurement]) -> None:
        """Hand them over. Raises Unavailable, and whatever the file does."""
        told: list[Any] = msgspec.to_builtins(measurements)
        try:
            self._publish(told)
        except (TimeoutError, ConnectionError) as error:
            raise Unavailable(repr(error)) from error

    def close(self) -> None:
        """Tell it that nothing more comes."""
        if self._close is not None:
            self._close()


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        about = os.fstat(opened.fileno())
        if about.st_uid not in (0, os.geteuid()) or about.st_mode & stat.S_IWOTH:
            raise PermissionError("others may change it: it has to be yours, and yours to write")
        text = opened.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    return text
