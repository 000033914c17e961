"""JSON Merge Patch (RFC 7396): a document that says what of another one is to change."""

from __future__ import annotations

from typing import Any


def merged(document: Any, patch: Any) -> Any:
    """Return the document with the patch applied; neither of them changes.

    An object is merged into, key by key, a null takes its key away, and everything else stands
    in the place of what was there. Keys keep their order, new ones come last.
    """
    if not isinstance(patch, dict):
        return patch
    found = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found
