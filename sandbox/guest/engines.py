"""What the sandbox wants of a JavaScript engine, and the engines there are.

"v8" is the usual one. "quickjs" runs in WebAssembly and is slower; it is there for the day
on which V8 has a known hole and no new wheel.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

Handle = Any
"""A value that the engine holds for us; release() gives it back."""

MODULES = {"v8": "sandbox.guest.v8", "quickjs": "sandbox.guest.quickjs"}


class ScriptFailed(Exception):
    """The code threw."""


class NotParsed(Exception):
    """The code is not JavaScript: "<line>: <reason>"."""


class OutOfMemory(Exception):
    """The code met the heap limit. The engine must not be used again."""


class TimedOut(Exception):
    """The code outlived its budget. The engine must not be used again."""


class FlagsRefused(Exception):
    """The engine does not run with the limits it was given, so it cannot be relied on."""


PROGRAM = b"program"
"""What programs are called where an error says where it was made."""


class Engine(Protocol):
    """An engine is one context in one thread. Every method may raise the exceptions above."""

    def evaluate(self, source: bytes, seconds: float, name: bytes = ...) -> Handle:
        """Run a script of this name and return its value, which the caller releases."""

    def call(self, function: Handle, text: bytes, seconds: float, *arguments: Handle) -> Handle:
        """Call `function` with `text` as its `this`; the caller releases what it returns."""

    def call_for_text(self, function: Handle, text: bytes, seconds: float) -> bytes:
        """Call a function that returns a string, and return its bytes."""

    def text_of(self, handle: Handle) -> bytes:
        """Return a string's bytes, b"" for any other value, and release the handle."""

    def item(self, array: Handle, index: int) -> Handle:
        """Return an element of an array; the caller releases it."""

    def release(self, handle: Handle) -> None:
        """Give a value back."""


MEBIBYTE = 1024 * 1024
HEAP_BYTES = 64 * MEBIBYTE
"""Where a script is stopped, if nothing else is said."""

MakeEngine = Callable[[], Engine]
"""It makes an engine whose limits have been tried. Raises FlagsRefused."""


def load(name: str, javascript: Path, heap_bytes: int = HEAP_BYTES) -> MakeEngine:
    """Load what all workers share of an engine; a fork after this is safe.

    `javascript` is the folder with the files of third_party.py; scripts have so much of a heap.
    Raises KeyError for an unknown engine.
    """
    make: MakeEngine = importlib.import_module(MODULES[name]).load(javascript, heap_bytes)
    return make
