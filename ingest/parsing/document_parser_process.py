"""`python -m ingest.parsing.document_parser_process FD`: parses documents for an API process."""

from __future__ import annotations

import orjson

from sandbox import argument_names
from servioticy.apart.answering import serve
from servioticy.apart.frozen import written
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.documents.limits import Meter


def answer(request: bytes) -> bytes:
    """Return the definition of the Service Object whose id and document are asked for.

    Or why there is none; and what was counted.
    """
    service_object, document = request.split(b"\0", 1)
    meter = Meter()
    try:
        found: object = parse_service_object(
            orjson.loads(document), service_object.decode(), argument_names, meter
        )
    except BadDocument as error:
        found = error
    except Exception as error:  # noqa: BLE001  a fault of ours, told where the request is
        found = repr(error)
    return written((found, meter))


if __name__ == "__main__":
    serve(answer)
