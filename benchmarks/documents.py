"""How long it takes to understand a document, the worst ones among them.

Needs nothing that runs. Each kind of document is grown until it is refused or as large as
a body may be; the largest one that is accepted is measured, and one of half its size.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Sequence

import orjson

from benchmarks.worst_documents import KINDS, Kind
from sandbox import argument_names
from servioticy.domain import references
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.settings import Settings

TRIES = 3


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print, for each kind, what is accepted of it and what that and a refusal take."""
    parser = argparse.ArgumentParser("servioticy bench documents")
    parser.add_argument("--only", default="", help="kinds whose name has this in it")
    options = parser.parse_args(arguments)
    most = settings.requests.max_body_bytes
    print(
        "kind: largest accepted, ms, ms of half of it, MB when parsed; ms of a body at the limit"
    )
    for kind in KINDS:
        if options.only in kind.__name__:
            print(_line(kind, most), flush=True)


def _line(kind: Kind, most: int) -> str:
    refused = _milliseconds(_body(kind, most))
    accepted = _largest_accepted(kind, most)
    if not accepted:
        return f"{kind.__name__}: never accepted; {refused:.0f} ms"
    text = orjson.dumps(kind(accepted))
    whole, half = _milliseconds(text), _milliseconds(orjson.dumps(kind(accepted // 2)))
    return (
        f"{kind.__name__}: {len(text):,} bytes, {whole:.0f} ms, {half:.0f} ms, "
        f"{_megabytes(text):.1f} MB; {refused:.0f} ms"
    )


def _body(kind: Kind, most: int) -> bytes:
    """Return the document of this kind that is just as large as may be."""
    low, high = 0, 2 * most
    while high - low > most // 200:
        middle = (low + high) // 2
        low, high = (middle, high) if len(orjson.dumps(kind(middle))) <= most else (low, middle)
    return orjson.dumps(kind(low))


def _largest_accepted(kind: Kind, most: int) -> int:
    low, high = 0, 2 * most
    while high - low > most // 500:
        middle = (low + high) // 2
        fits = _accepted(orjson.dumps(kind(middle)), most)
        low, high = (middle, high) if fits else (low, middle)
    return low


def _accepted(text: bytes, most: int) -> bool:
    if len(text) > most:
        return False
    try:
        parse_service_object(orjson.loads(text), "so", argument_names)
    except BadDocument:
        return False
    return True


def _milliseconds(text: bytes) -> float:
    """Return the processor time of reading it, or of refusing it; the least of some tries."""
    found = []
    for _ in range(TRIES):
        references.parsed_paths.clear()
        gc.collect()
        began = time.process_time()
        _accepted(text, len(text))
        found.append(time.process_time() - began)
    return 1000 * min(found)


def _megabytes(text: bytes) -> float:
    tracemalloc.start()
    try:
        parsed = parse_service_object(orjson.loads(text), "so", argument_names)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 1e6 if parsed else 0.0
    finally:
        tracemalloc.stop()
