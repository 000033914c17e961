"""V8, entered as seldom and as cheaply as possible. The only importer of py_mini_racer.

The package's own MiniRacer class costs 0.1 to 0.4 ms a call, most of it in hops through
an asyncio loop on another thread. We need one call per frame and no loop, so this module
speaks to the package's library directly (its C interface, in `_dll.py`; the version is
pinned in setup.cfg and `tests/unit/test_sandbox_engine.py` fails if it moves). A call is
one hop: the text goes in as `this`, which a strict function receives as it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from py_mini_racer._dll import init_mini_racer, mr_callback_func

from sandbox.guest.engines import (
    HEAP_BYTES,
    MEBIBYTE,
    FlagsRefused,
    Handle,
    MakeEngine,
    NotParsed,
    OutOfMemory,
    ScriptFailed,
    TimedOut,
)

FLAGS = (
    "--single-threaded",  # no V8 threads, so that the zygote can fork
    "--jitless",  # no WebAssembly, and none of the compilers that V8's holes are found in
    "--no-compilation-cache",  # it would keep a text that is compiled once
    "--stack-size=256",
    "--disallow-code-generation-from-strings",
    "--enable-experimental-regexp-engine-on-excessive-backtracks",
)

# Value types of mini_racer.cc.
_INTEGER, _TEXT, _UNDEFINED = 3, 5, 11
_FAILED, _NOT_PARSED, _OUT_OF_MEMORY, _TERMINATED = 200, 201, 202, 204

_AT_WORK = b"at work"

_NOTHING_THROWN = "null"
"""What is told where a call ended without a value or an error: V8 had no memory for one. What
scripts throw is caught by the realm."""


def initialise(heap_bytes: int = HEAP_BYTES) -> Any:
    """Load V8 with our flags. A fork after this is safe; after the first isolate it is not.

    V8 looks at what a script may have only after a collection, hence twice as much of its own.
    """
    flags = f"--max-heap-size={2 * heap_bytes // MEBIBYTE}", *FLAGS
    return init_mini_racer(flags=flags, ignore_duplicate_init=True)


def load(_javascript: Path, heap_bytes: int = HEAP_BYTES) -> MakeEngine:
    """Load V8, and return what makes an engine whose flags are at work.

    Flags are the process's, and V8 lets nobody change them once it has begun: they are at work
    in all that are forked from here, if they are in one. Where that one does not say so each is
    asked itself: it may only have had no time, or no memory.
    """
    initialise(heap_bytes)
    make: Callable[[int], Engine] = Engine if _are_at_work(heap_bytes) else proven
    return partial(make, heap_bytes)


def proven(heap_bytes: int) -> Engine:
    """Make an engine whose flags are at work. Raises FlagsRefused."""
    engine = Engine(heap_bytes)
    prove(engine)
    return engine


def _are_at_work(heap_bytes: int) -> bool:
    """Whether a process says so that is made for it: this one must have no isolate."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            proven(heap_bytes)
            os.write(theirs, _AT_WORK)
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        found = answer.read()
    with contextlib.suppress(ChildProcessError):  # where nobody waits for children
        os.waitpid(pid, 0)
    return found == _AT_WORK


class Engine:
    """An engine is one isolate with one context."""

    def __init__(self, heap_bytes: int = HEAP_BYTES) -> None:
        self._library = initialise(heap_bytes)
        self._answer: Handle = None
        self._answered = threading.Lock()
        self._answered.acquire()

        @mr_callback_func
        def callback(callback_id: int, raw_val_handle: Handle) -> None:  # noqa: ARG001
            self._answer = raw_val_handle
            self._answered.release()

        self._callback = callback  # ctypes does not keep it alive
        self._context = self._library.mr_init_context(callback)
        self._library.mr_set_hard_memory_limit(self._context, heap_bytes)
        self._undefined = self._library.mr_alloc_int_val(self._context, 0, _UNDEFINED)
        self._none = self.evaluate(b"[]", 5)

    def evaluate(self, source: bytes, seconds: float, name: bytes = b"") -> Handle:
        """Run a script of this name and return its value, which the caller releases."""
        # Of several such comments the last one counts.
        code = self._text(source + b"\n//# sourceURL=" + name if name else source)
        task = self._library.mr_eval(self._context, code, 1)
        try:
            return self._wait(task, seconds)
        finally:
            self.release(code)

    def call(self, function: Handle, text: bytes, seconds: float, *arguments: Handle) -> Handle:
        """Call `function` with `text` as its `this`; the caller releases what it returns."""
        this = self._text(text)
        passed = self._array(arguments) if arguments else self._none
        task = self._library.mr_call_function(self._context, function, this, passed, 1)
        try:
            return self._wait(task, seconds)
        finally:
            self.release(this)
            if arguments:
                self.release(passed)

    def call_for_text(self, function: Handle, text: bytes, seconds: float) -> bytes:
        """Call a function that returns a string, and return its bytes."""
        return self.text_of(self.call(function, text, seconds))

    def text_of(self, handle: Handle) -> bytes:
        """Return a string's bytes, b"" for any other value, and release the handle."""
        content = handle.contents
        text = _bytes(content) if content.type == _TEXT else b""
        self.release(handle)
        return text

    def number_of(self, handle: Handle) -> int:
        """Return a small integer, -1 for any other value, and release the handle."""
        content = handle.contents
        value = int(content.value.int_val) if content.type == _INTEGER else -1
        self.release(handle)
        return value

    def item(self, array: Handle, index: int) -> Handle:
        """Return an element of an array; the caller releases it."""
        key = self._library.mr_alloc_int_val(self._context, index, _INTEGER)
        try:
            return self._library.mr_get_object_item(self._context, array, key)
        finally:
            self.release(key)

    def release(self, handle: Handle) -> None:
        """Give a value back to V8."""
        self._library.mr_free_value(self._context, handle)

    def _text(self, content: bytes) -> Handle:
        return self._library.mr_alloc_string_val(self._context, content, len(content), _TEXT)

    def _array(self, items: tuple[Handle, ...]) -> Handle:
        array = self.evaluate(b"[" + b"0," * len(items) + b"]", 5)
        for index, item in enumerate(items):
            key = self._library.mr_alloc_int_val(self._context, index, _INTEGER)
            self.release(self._library.mr_set_object_item(self._context, array, key, item))
            self.release(key)
        return array

    def _wait(self, task: int, seconds: float) -> Handle:
        if not self._answered.acquire(timeout=max(seconds, 0.001)):
            self._library.mr_cancel_task(self._context, task)
            raise TimedOut
        content = self._answer.contents
        kind = content.type
        if kind < _FAILED:
            return self._answer
        message = _bytes(content).decode("utf-8", "replace")
        if kind == _NOT_PARSED:
            raise NotParsed(_first_line(message))
        if kind == _OUT_OF_MEMORY:
            raise OutOfMemory
        if kind == _TERMINATED:
            raise TimedOut
        if _first_line(message) == _NOTHING_THROWN:
            raise OutOfMemory
        raise ScriptFailed(_first_line(message))


def prove(engine: Engine) -> None:
    """Raise FlagsRefused unless every flag is at work.

    V8 prints an unknown flag to stderr, and silently drops all that follow it.
    """
    checks = {
        b"typeof WebAssembly === 'undefined' ? 1 : 0": "--jitless",
        b"(()=>{try{new Function('');return 0}catch{return 1}})()": "--disallow-code-generation",
        b"(()=>{let n=0,f=()=>{n++;f()};try{f()}catch{};return n<9999?1:0})()": "--stack-size",
        # 2^30 steps without the linear engine, which is also the last flag of all.
        b"/^(?:a+)+$/.test('a'.repeat(30)+'b')?0:1": "--enable-experimental-regexp-engine",
    }
    for source, flag in checks.items():
        deadline = time.monotonic() + 2
        try:
            proven = engine.number_of(engine.evaluate(source, deadline - time.monotonic())) == 1
        except TimedOut:
            proven = False
        if not proven:
            raise FlagsRefused(flag)


def _bytes(content: Any) -> bytes:
    return ctypes.string_at(content.value.value_ptr, content.len)


def _first_line(message: str) -> str:
    """Return `<anonymous>:2: SyntaxError: Unexpected token` without its first word."""
    return message.partition("\n")[0].removeprefix("<anonymous>:")
