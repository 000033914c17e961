"""Sending what is stored to subscribers, whatever single records do to the client."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from servioticy.domain.records import EmittedRecord
from servioticy.errors import Unavailable
from servioticy.ports.output import Output

log = logging.getLogger("servioticy.pipeline")


def send(output: Output, next_offset: int, records: Sequence[EmittedRecord]) -> None:
    """Emit what was made from the log before this offset. Raises Unavailable.

    It is stored, so nothing may hold up what follows: where the client fails with anything
    else, the records are sent one by one, and those it fails with again are left out, with
    an event that names each. They can be read from the history.
    """
    try:
        output.emit(next_offset, records)
        return
    except Unavailable:
        raise
    except Exception:
        log.exception("emission_failed", extra={"records": len(records)})
    for each in records:
        try:
            output.emit(output.acknowledged, [each])
        except Unavailable:
            raise
        except Exception:
            log.exception(
                "emission_given_up",
                extra={
                    "stream": f"{each.service_object}/{each.stream}",
                    "timestamp": each.timestamp,
                    "bytes": len(bytes(each.update)),
                },
            )
    output.emit(next_offset, ())
