"""`python -m ingest.parsing.document_parser_process FD`: parses documents for an API process.

It ends with the API process, whose end of the socket then closes.
"""

from __future__ import annotations

import os
import pickle
import sys
from multiprocessing.connection import Connection

import orjson

from sandbox import argument_names
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.documents.limits import Meter

NICE = 5
"""Whoever waits for the API comes first."""


def main() -> None:
    """Answer until nobody asks any more."""
    os.nice(NICE)
    connection = Connection(int(sys.argv[1]))
    while True:
        try:
            service_object, document = connection.recv_bytes().split(b"\0", 1)
            connection.send_bytes(answer(service_object.decode(), document))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def answer(service_object: str, document: bytes) -> bytes:
    """Return the definition, or why there is none, and what was counted."""
    meter = Meter()
    try:
        found: object = parse_service_object(
            orjson.loads(document), service_object, argument_names, meter
        )
    except BadDocument as error:
        found = error
    except Exception as error:  # noqa: BLE001  a fault of ours, told where the request is
        found = repr(error)
    return pickle.dumps((found, meter), pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
