"""QuickJS as WebAssembly in wasmtime. The only importer of wasmtime.

The file comes from the npm package @jitl/quickjs-wasmfile-release-sync. Its exports have short
names that change with its version; `_EXPORTS` explains those of 0.32.0. A script sees a memory
of its own and nothing else: the host's functions give it a clock, more memory up to a limit,
and no files.
"""

from __future__ import annotations

import ctypes
import json
import math
import struct
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import wasmtime
from wasmtime import Config, Func, Instance, Memory, MemoryType, Module, Store

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
from sandbox.third_party import QUICKJS

OWN_BYTES = 64 * MEBIBYTE
"""What the instance may have beside the heap of scripts."""
STACK_BYTES = 192 * 1024
"""Of the stack in its memory, which QuickJS counts; the machine's must not end first."""

WASM_STACK_BYTES = 2 * 1024 * 1024
TICK_SECONDS = 0.005
_PAGE = 65536

_EXPORTS = {
    "start": "u", "malloc": "v", "free": "M", "set_memory_limit": "y", "set_stack_size": "D",
    "undefined": "E", "new_runtime": "K", "new_context": "N", "free_value": "P",
    "free_text": "S", "new_text": "_", "text": "$", "number": "Z", "item": "ia", "call": "ma",
    "exception": "na", "dump": "oa", "evaluate": "pa", "type": "ra",
}  # fmt: skip


def load(javascript: Path, heap_bytes: int = HEAP_BYTES) -> MakeEngine:
    """Compile the module, a second's work, and return what makes an engine of it."""
    config = Config()
    config.epoch_interruption = True
    config.max_wasm_stack = WASM_STACK_BYTES
    engine = wasmtime.Engine(config)
    module = Module.from_file(engine, str(javascript / QUICKJS))
    return partial(proven, module, engine, heap_bytes)


def proven(module: Module, shared: wasmtime.Engine, heap_bytes: int) -> Engine:
    """Make an engine whose limits have been tried. Raises FlagsRefused."""
    engine = Engine(module, shared, heap_bytes)
    deep = b"(()=>{let n=0,f=()=>{n++;f()};try{f()}catch{};return n<9999?1:0})()"
    much = b"(()=>{try{return 'a'.repeat(2**28).length?0:0}catch{return 1}})()"
    for source, limit in ((deep, "stack size"), (much, "memory limit")):
        if engine.number_of(engine.evaluate(source, 2)) != 1:
            raise FlagsRefused(limit)
    return engine


class Engine:
    """An engine is one runtime with one context, in a WebAssembly instance of its own."""

    def __init__(self, module: Module, engine: wasmtime.Engine, heap_bytes: int) -> None:
        self._store = Store(engine)
        self._store.set_limits(memory_size=heap_bytes + OWN_BYTES)
        self._store.set_epoch_deadline(1000)
        self._ticker = _Ticker(engine)
        kind = next(each.type for each in module.imports if isinstance(each.type, MemoryType))
        self._memory = Memory(self._store, kind)
        imports = [
            self._memory if isinstance(each.type, MemoryType) else self._host(each)
            for each in module.imports
        ]
        exports = Instance(self._store, module, imports).exports(self._store)
        self._functions: dict[str, Any] = {
            name: exports[short] for name, short in _EXPORTS.items()
        }
        self._ask("start")
        runtime = self._ask("new_runtime")
        self._ask("set_memory_limit", runtime, heap_bytes)
        self._ask("set_stack_size", runtime, STACK_BYTES)
        self._context = self._ask("new_context", runtime, 0)
        self._undefined = self._ask("undefined")
        self._names: dict[bytes, int] = {}

    def evaluate(self, source: bytes, seconds: float, name: bytes = b"script") -> Handle:
        """Run a script of this name and return its value, which the caller releases."""
        with self._ticker.within(self._store, seconds):
            if name not in self._names:
                self._names[name] = self._put(name + b"\0")
            called = self._names[name]
            text = self._put(source + b"\0")
            try:
                value = self._ask("evaluate", self._context, text, len(source), called, 0, 0)
            finally:
                self._ask("free", text)
            return self._checked(value)

    def call(self, function: Handle, text: bytes, seconds: float, *arguments: Handle) -> Handle:
        """Call `function` with `text` as its `this`; the caller releases what it returns."""
        with self._ticker.within(self._store, seconds):
            this = self._text(text)
            passed = self._put(struct.pack(f"<{len(arguments)}I", *arguments) or b"\0")
            try:
                count = len(arguments)
                value = self._ask("call", self._context, function, this, count, passed)
            finally:
                self._ask("free", passed)
                self.release(this)
            return self._checked(value)

    def call_for_text(self, function: Handle, text: bytes, seconds: float) -> bytes:
        """Call a function that returns a string, and return its bytes."""
        return self.text_of(self.call(function, text, seconds))

    def text_of(self, handle: Handle) -> bytes:
        """Return a string's bytes, b"" for any other value, and release the handle."""
        kind = self._ask("type", self._context, handle)
        is_text = self._at(kind) == b"string"
        self._ask("free", kind)
        found = self._text_to_free(self._ask("text", self._context, handle)) if is_text else b""
        self.release(handle)
        return found

    def number_of(self, handle: Handle) -> int:
        """Return a small integer, -1 for any other value, and release the handle."""
        value = self._ask("number", self._context, handle)
        self.release(handle)
        return int(value) if math.isfinite(value) and value == int(value) else -1

    def item(self, array: Handle, index: int) -> Handle:
        """Return an element of an array; the caller releases it."""
        return self._ask("item", self._context, array, index)

    def release(self, handle: Handle) -> None:
        """Give a value back."""
        self._ask("free_value", self._context, handle)

    def _ask(self, name: str, *arguments: Any) -> Any:
        try:
            return self._functions[name](self._store, *arguments)
        except wasmtime.Trap as trap:
            if trap.trap_code == wasmtime.TrapCode.INTERRUPT:
                raise TimedOut from trap
            raise OutOfMemory from trap  # a corrupted or exhausted memory: of no more use
        except wasmtime.WasmtimeError as error:
            raise OutOfMemory from error

    def _checked(self, value: Handle) -> Handle:
        error = self._ask("exception", self._context, value)
        if not error:
            return value
        thrown = json.loads(self._text_to_free(self._ask("dump", self._context, error)) or b"{}")
        self.release(error)
        self.release(value)
        if not isinstance(thrown, dict):
            raise ScriptFailed(str(thrown)[:300])
        reason = f"{thrown.get('name')}: {thrown.get('message')}"
        if thrown.get("name") == "SyntaxError":
            raise NotParsed(f"{_line(str(thrown.get('stack')))}: {reason}")
        if reason == "InternalError: out of memory":
            raise OutOfMemory
        raise ScriptFailed(reason[:300])

    def _text(self, content: bytes) -> Handle:
        text = self._put(content + b"\0")
        try:
            return self._ask("new_text", self._context, text)
        finally:
            self._ask("free", text)

    def _put(self, content: bytes) -> int:
        at = int(self._ask("malloc", len(content)))
        if not at:
            raise OutOfMemory
        self._memory.write(self._store, content, at)
        return at

    def _text_to_free(self, at: int) -> bytes:
        """Return the text at this address, and free it."""
        found = self._at(at)
        if at:
            self._ask("free_text", self._context, at)
        return found

    def _at(self, at: int) -> bytes:
        """Return the text at this address, which ends with 0."""
        start = ctypes.addressof(self._memory.data_ptr(self._store).contents)
        return ctypes.string_at(start + at) if at else b""

    # ---- What a script's world asks of ours. ---------------------------------------------

    def _host(self, wanted: wasmtime.ImportType) -> Func:
        kind: Any = wanted.type
        given: dict[str, Any] = {
            "k": self._grow,
            "m": self._local_time,
            "n": self._time_zone,
            "p": _now,
        }
        zero: Any = 0 if kind.results else None

        def nothing(*_: Any) -> Any:
            return zero

        function = given.get(wanted.name or "", nothing)
        return Func(self._store, kind, function)

    def _grow(self, size: int) -> int:
        pages = -(-(size & 0xFFFFFFFF) // _PAGE) - self._memory.size(self._store)
        try:
            self._memory.grow(self._store, max(0, pages))
        except wasmtime.WasmtimeError:
            return 0
        return 1

    def _local_time(self, seconds: int, at: int) -> None:
        """Write a `struct tm` of UTC."""
        now = time.gmtime(max(-(2**40), min(2**40, seconds)))
        fields = (now.tm_sec, now.tm_min, now.tm_hour, now.tm_mday, now.tm_mon - 1)
        more = (now.tm_year - 1900, (now.tm_wday + 1) % 7, now.tm_yday - 1, 0, 0)
        self._memory.write(self._store, struct.pack("<10i", *fields, *more), at)

    def _time_zone(self, offset: int, daylight: int, standard: int, summer: int) -> None:
        self._memory.write(self._store, bytes(4), offset)
        self._memory.write(self._store, bytes(4), daylight)
        for name in (standard, summer):
            self._memory.write(self._store, b"UTC\0", name)


class _Ticker:
    """A ticker counts the engine's epochs up while a script runs, which ends at its last one."""

    def __init__(self, engine: wasmtime.Engine) -> None:
        self._engine = engine
        self._busy = threading.Event()
        threading.Thread(target=self._tick, daemon=True).start()

    def within(self, store: Store, seconds: float) -> _Ticker:
        """Return what a `with` needs so that its body is interrupted after so many seconds."""
        store.set_epoch_deadline(max(1, math.ceil(seconds / TICK_SECONDS)) + 1)
        return self

    def __enter__(self) -> None:
        self._busy.set()

    def __exit__(self, *error: object) -> None:
        self._busy.clear()

    def _tick(self) -> None:
        while self._busy.wait():
            time.sleep(TICK_SECONDS)
            self._engine.increment_epoch()


def _now() -> float:
    return float(int(time.time() * 1000))


def _line(stack: str) -> str:
    """Return the line of `    at script:3:7`, which is "3"."""
    _, _, place = stack.partition("script:")
    return place.partition(":")[0].strip() or "1"
