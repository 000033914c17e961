"""Asking a process apart that reads files, or makes them: tenants take turns."""

from __future__ import annotations

import time
from collections.abc import Hashable
from contextlib import ExitStack

from functions.files.store import StoreAway, TakesTooMuch
from servioticy.apart.asking import OtherProcess
from servioticy.errors import Unavailable
from servioticy.turns import Turns


def ask_in_turn(turns: Turns, whose: Hashable, process: OtherProcess, request: bytes) -> bytes:
    """Return its answer.

    Raises StoreAway where the turn does not come, and TakesTooMuch where the process fails on it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(turns.turn(whose))
        except Unavailable as error:
            raise StoreAway("others' files have their turn") from error
        began = time.monotonic()
        try:
            return process.ask(request)
        except Unavailable as error:
            seconds = time.monotonic() - began
            raise TakesTooMuch(f"it takes too much: {error}", seconds) from error
