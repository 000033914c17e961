"""In which dialect a document is written: what its version says, or what it looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from servioticy.domain.model import Dialect
from servioticy.domain.pauses import Paces, Paused

VERSIONS: dict[Any, Dialect] = {"0.1.0": "expression", "0.2.0": "function"}
NEWEST = "0.2.0"


def dialect_of(
    document: dict[str, Any], argument_names: Callable[[str], tuple[str, ...]]
) -> Paused[Dialect]:
    """Return the dialect of a document.

    Without a version that we know, it is functions where any channel's code is one: no
    expression is, so no document is understood otherwise than before.
    """
    version = document.get("version")
    if isinstance(version, str) and version in VERSIONS:
        return VERSIONS[version]
    has_functions = yield from _has_functions(document, argument_names)
    return "function" if has_functions else "expression"


def _has_functions(
    document: dict[str, Any], argument_names: Callable[[str], tuple[str, ...]]
) -> Paused[bool]:
    paces = Paces()
    for stream in _values(document.get("streams")):
        for channel in _values(stream.get("channels") if isinstance(stream, dict) else None):
            if paces.pauses(1):
                yield
            code = channel.get("current-value") if isinstance(channel, dict) else None
            if isinstance(code, str) and is_function(code, argument_names):
                return True
    return False


def is_function(code: str, argument_names: Callable[[str], tuple[str, ...]]) -> bool:
    """Tell whether the text begins as a function does."""
    try:
        argument_names(code)
    except ValueError:
        return False
    return True


def version_warning(document: dict[str, Any]) -> list[str]:
    """Return what is to be told of a document's version: nothing where it is one of ours."""
    version = document.get("version")
    if version is None or (isinstance(version, str) and version in VERSIONS):
        return []
    return [
        f"version {version!r:.40} is not known: the document is read as what it looks like; "
        f"the newest version is {NEWEST!r}"
    ]


def _values(content: Any) -> list[Any]:
    return list(content.values()) if isinstance(content, dict) else []
