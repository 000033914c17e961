"""The end of a workflow: atoms are updates of a stream there, requests, results, or nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from functions.calling import Caller
from functions.steps import LATER_MS, Failure, Result, Task
from servioticy.domain.batches.items import Item
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import SensorUpdate, StreamRef
from servioticy.domain.outside_addresses import Rules
from servioticy.domain.workflows.model import CALLBACK, COLLECT, STREAM
from servioticy.errors import Unavailable
from servioticy.ports.addresses import Address
from servioticy.ports.atoms import Atom
from servioticy.ports.statements import Statements
from servioticy.refusals import OverQuota

if TYPE_CHECKING:
    from ingest.ingest import Ingest

FULL_MS = 5_000
"""Where the tenant may send no more now."""
CALLING_SECONDS = 5.0
"""After so long no further atom of those that were taken is sent: others may have the place."""
NO_STREAM = Failure("the stream of the sink is not there any more")

log = logging.getLogger("functions")


class Sinks:
    """Brings atoms to where they go."""

    def __init__(
        self, ingest: Callable[[], Ingest], streams: Statements, caller: Caller | None = None
    ) -> None:
        """`ingest` makes the way into the log, once, when the first atom goes it."""
        self._caller = caller or Caller(Rules())
        self._make_ingest = ingest
        self._streams = streams
        self._making = threading.Lock()
        self._made: Ingest | None = None

    def _ingest(self) -> Ingest:
        with self._making:
            self._made = self._made or self._make_ingest()
            return self._made

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Return what came of these."""
        nothing: dict[int, Sequence[bytes]] = {each.id: () for each in atoms}
        if task.workflow.sink == STREAM and task.workflow.sink_stream is not None:
            return self._send(task.queue.tenant, task.workflow.sink_stream, atoms)
        if task.workflow.sink == CALLBACK:
            return self._call(task, atoms)
        return Result(nothing, collected=task.workflow.sink == COLLECT)

    def _call(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Send one after the other, for a while: a receiver that is slow has only that.

        What fails is tried again as what a procedure fails on.
        """
        until = time.monotonic() + CALLING_SECONDS
        done: dict[int, Sequence[bytes]] = {}
        failed: dict[int, Failure] = {}
        later: dict[int, int] = {}
        for each in atoms:
            if time.monotonic() > until:
                later[each.id] = 0
                continue
            headers = {
                "webhook-id": f"{task.queue.workflow}.{each.id}",
                "webhook-timestamp": str(int(time.time())),
            }
            url = task.workflow.sink_url
            found = self._caller.post(task.queue.tenant, url, each.body, headers)
            if 200 <= found.status < 300:
                done[each.id] = ()
            else:
                reason = f"{found.status or 'no answer'} {found.reason}".strip()
                is_hopeless = found.is_forbidden or found.status == HTTPStatus.GONE
                failed[each.id] = Failure(f"the receiver: {reason}", is_hopeless)
        return Result(done, failed, later)

    def _send(self, tenant: int, stream: StreamRef, atoms: Sequence[Atom]) -> Result:
        """Let them be updates, by the same way as if the tenant had sent them in a batch."""
        try:
            address = self._address(tenant, stream)
            if address is None or not self._ingest().declared({stream: address}):
                return Result(failed={each.id: NO_STREAM for each in atoms})
            items = [
                Item(place, stream, _Body(each.body).read) for place, each in enumerate(atoms)
            ]
            found = self._ingest().take_batch(items, {stream: address})
        except (Unavailable, OverQuota) as error:
            log.warning("sink_waits", extra={"tenant": tenant, "why": str(error)[:200]})
            pause = FULL_MS if isinstance(error, OverQuota) else LATER_MS
            return Result(later=dict.fromkeys([each.id for each in atoms], pause))
        refused = {
            atoms[each["index"]].id: Failure(
                f"the stream refuses it: {each['message']} ({each['pointer'] or 'whole'})", True
            )
            for each in found.refused
        }
        return Result({each.id: () for each in atoms if each.id not in refused}, refused)

    def _address(self, tenant: int, stream: StreamRef) -> Address | None:
        rows = self._streams.rows(
            "streams",
            tenant=tenant,
            service_objects=[stream.service_object],
            streams=[stream.stream],
        )
        for id_, _name, public, version, place, stream_id in rows:
            return Address(tenant, id_, tenant, public, version, place, stream_id)
        return None


class _Body:
    """An atom that is to be read as an update."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def read(self, reader: UpdateReader) -> SensorUpdate:
        return reader.parse(self._body)
