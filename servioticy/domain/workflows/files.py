"""The source of a workflow that is files: what its document says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from servioticy.domain.documents.codes import NO_CHOICE, REQUIRED, TOO_MUCH, WRONG_TYPE
from servioticy.domain.documents.errors import Part
from servioticy.domain.workflows.model import CSV, NDJSON, PARQUET, Files

FILES_KEYS = ("store", "prefix", "format", "separator", "every", "reserved")
FORMATS = (CSV, NDJSON, PARQUET)
SEPARATORS = (",", ";", "\t", "|")
MAX_PREFIX = 500
"""Bytes."""
EVERY_SECONDS, LEAST_SECONDS, MOST_SECONDS = 60, 5, 86_400
MAX_RESERVED = 1_000
STORE = re.compile(r"[A-Za-z0-9_-]{1,50}")


def files_of(content: Mapping[str, Any], part: Part) -> Files:
    """Understand them. Raises BadDocument; whether there is such a store is asked by who can."""
    store = content.get("store")
    if store is None:
        raise part.at("store").bad("files are in a store, by its name", REQUIRED)
    if not isinstance(store, str) or not STORE.fullmatch(store):
        raise part.at("store").bad("a store has a name of 1 to 50 of A-Z a-z 0-9 _ -", WRONG_TYPE)
    form = content.get("format")
    if form is None:
        raise part.at("format").bad(f"is one of {', '.join(FORMATS)}", REQUIRED)
    if form not in FORMATS:
        raise part.at("format").bad(f"is one of {', '.join(FORMATS)}", NO_CHOICE)
    separator = content.get("separator", ",")
    if separator not in SEPARATORS or ("separator" in content and form != CSV):
        raise part.at("separator").bad("is a comma, semicolon, tab or | of CSV", NO_CHOICE)
    return Files(
        store,
        prefix_of(content.get("prefix", ""), part.at("prefix")),
        form,
        separator,
        1000 * _number(content, "every", EVERY_SECONDS, LEAST_SECONDS, MOST_SECONDS, part),
        _number(content, "reserved", 0, 0, MAX_RESERVED, part),
    )


def prefix_of(prefix: Any, part: Part) -> str:
    """Return what names begin with; none of its parts leads out of the store."""
    if not isinstance(prefix, str):
        raise part.bad("is text", WRONG_TYPE)
    try:
        size = len(prefix.encode())
    except UnicodeEncodeError:
        raise part.bad("is text in UTF-8", WRONG_TYPE) from None
    if size > MAX_PREFIX:
        raise part.bad(f"has at most {MAX_PREFIX} bytes", TOO_MUCH)
    if any(not each.isprintable() for each in prefix):
        raise part.bad("has no control characters", WRONG_TYPE)
    parts = prefix.split("/")
    if prefix.startswith("/") or any(each in (".", "..") for each in parts) or "" in parts[:-1]:
        raise part.bad("is the beginning of names, as in/2026/, without . and ..", WRONG_TYPE)
    return prefix


def _number(
    content: Mapping[str, Any], key: str, usual: int, least: int, most: int, part: Part
) -> int:
    value = content.get(key, usual)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise part.at(key).bad(f"is a whole number from {least} to {most}", WRONG_TYPE)
    return value
