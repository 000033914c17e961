"""The JavaScript of others that the sandbox needs, in a folder that its owner names."""

from __future__ import annotations

from pathlib import Path

ACORN = "acorn.js"
"""The parser behind the allow-list."""

QUICKJS = "quickjs.wasm"
"""The second engine; the first one, V8, comes as a Python package."""


def needed(engine: str) -> tuple[str, ...]:
    """Return the names of the files that a sandbox with this engine needs."""
    return (ACORN, QUICKJS) if engine == "quickjs" else (ACORN,)


def missing(folder: Path, engine: str) -> list[str]:
    """Return the names of the needed files that are not in this folder."""
    return [name for name in needed(engine) if not (folder / name).is_file()]
