"""Workflows before they are kept: what parsing cannot tell, asked of those who can."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import orjson

from api.http.authentication import authenticated
from api.services import Services
from operators import manifest
from servioticy.domain.access import Right, may
from servioticy.domain.documents.codes import (
    BAD_CODE,
    NO_CHOICE,
    UNKNOWN_OPERATOR,
    UNKNOWN_STREAM,
)
from servioticy.domain.documents.errors import WHOLE, BadDocument, Part
from servioticy.domain.model import StreamRef
from servioticy.domain.program_code import OPERATOR
from servioticy.domain.workflows.model import (
    FILES,
    PARQUET,
    SINK,
    SOURCE,
    STREAM,
    TABLE,
    Files,
    SinkFiles,
    SinkTable,
    Workflow,
)
from servioticy.domain.workflows.programs import PROCEDURE, program_of
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.domain.workflows.stores import Store, stores
from servioticy.domain.workflows.tables import databases
from servioticy.ports.addresses import Address
from servioticy.ports.cursors import StoredCursor, write_cursor
from servioticy.ports.programs import Program
from servioticy.refusals import Conflict

CALLBACK = "workflow"
"""Of the subscription that brings the updates of a stream: delivery puts them into the queues."""
MOST_TO_STREAM = 1_000
"""Subscriptions of a tenant to one stream, as of others."""


class CheckedWorkflow:
    """A document that can run, for the tenant of the present request."""

    def __init__(self, document: Mapping[str, Any], services: Services) -> None:
        """Raises BadDocument with reason and place."""
        self.read: Workflow = parse_workflow(document)
        self.content = orjson.dumps(document).decode()
        self._services = services
        self._source: Address | None = None
        self._program_mib = self._check_programs()
        self._check_code()
        if self.read.source is not None:
            self._source = self._found(self.read.source, SOURCE)
        if self.read.files is not None:
            self._check_store(self.read.files)
        if self.read.sink_files is not None:
            self._check_writable(self.read.sink_files)
        if self.read.sink_table is not None:
            self._check_table(self.read.sink_table)
        if self.read.sink_stream is not None:
            self._check_sink(self.read.sink_stream)

    def subscribe(self, workflow: str) -> str | None:
        """Return the id of a new subscription that brings atoms; None: they come by HTTP."""
        address, source = self._source, self.read.source
        if address is None or source is None:
            return None
        services, id_ = self._services, uuid.uuid4().hex
        now, caller = services.now(), authenticated().caller
        document = {
            "id": id_,
            "createdAt": now,
            "updatedAt": now,
            "callback": CALLBACK,
            "source": source.service_object,
            "destination": workflow,
            "stream": source.stream,
            "customFields": {},
            "delay": 0,
            "expire": 0,
        }
        end = services.ports.log.end_offset(address.partition)
        rows = services.ports.statements("subscriptions").rows(
            "subscribe",
            id=id_,
            tenant=caller,
            stream=address.stream_id,
            service_object=None,
            group=None,
            callback=CALLBACK,
            destination=workflow,
            document=orjson.dumps(document).decode(),
            now=now,
            most=MOST_TO_STREAM,
            cursor=write_cursor(StoredCursor(since={address.partition: end})),
            expires_at=None,
        )
        _is_full, is_new = rows[0]
        if not is_new:
            raise Conflict(f"You have {MOST_TO_STREAM} subscriptions to this stream already")
        return id_

    def memory_mib(self) -> dict[int, int]:
        """Return what each procedure may have of memory, by its step."""
        return {
            step: self._program_mib.get(step, each.memory_mib)
            for step, each in enumerate(self.read.procedures)
        }

    def _check_programs(self) -> dict[int, int]:
        """Return the memory of each program by its step. Raises BadDocument: one is not there.

        What is looked at now is looked at again whenever it is begun.
        """
        wanted = {
            step: Program(authenticated().caller, each.program.name, each.program.version)
            for step, each in enumerate(self.read.procedures)
            if each.program is not None
        }
        if not wanted:
            return {}
        programs = list(dict.fromkeys(wanted.values()))
        found = self._services.ports.programs.found(programs)
        memory: dict[int, int] = {}
        for step, program in wanted.items():
            name = self.read.procedures[step].name
            if program not in found:
                part = WHOLE.at("procedures", name, OPERATOR, words=f"procedure {name}")
                reason = f"there is no version {program.version} of a program {program.name}"
                raise part.bad(f"{reason} that you have pushed", UNKNOWN_OPERATOR)
            described = manifest.read(found[program].manifest.encode())
            memory[step] = described.manifest.memory_bytes // manifest.MEBIBYTE
        return memory

    def _check_code(self) -> None:
        procedures = [each for each in self.read.procedures if each.program is None]
        programs = [program_of(each.code) for each in procedures]
        found = self._services.check_programs(authenticated().caller, programs)
        wrong = [
            WHOLE.at("procedures", each.name, "code", words=f"procedure {each.name}").bad(
                problem.removeprefix(f"{PROCEDURE}: "), BAD_CODE
            )
            for each, problems in zip(procedures, found, strict=True)
            for problem in problems
        ]
        if wrong:
            first = wrong[0]
            parts = tuple(wrong) if len(wrong) > 1 else ()
            raise BadDocument(first.reason, first.pointer, first.code, parts)

    def _found(self, stream: StreamRef, end: str) -> Address:
        """Return where the stream is. Raises BadDocument where the tenant may not read it."""
        token = authenticated().token
        address = self._services.ports.addresses.address(token, *stream)
        if (
            address is None
            or address.stream_id is None
            or not may(address.caller, Right.SUBSCRIBE, address.resource)
        ):
            reason = f"There is no stream {stream.stream[:100]!r} of this Service Object for you"
            raise WHOLE.at(end, STREAM).bad(reason, UNKNOWN_STREAM)
        return address

    def _check_store(self, files: Files) -> None:
        """Whether the operator lets this tenant name it. Raises BadDocument."""
        self._store(files.store, WHOLE.at(SOURCE, FILES, "store"))

    def _check_writable(self, files: SinkFiles) -> None:
        part = WHOLE.at(SINK, PARQUET, "store")
        if not self._store(files.store, part).is_writable:
            reason = f"The store {files.store!r} is only read: an operator says where to write"
            raise part.bad(reason, NO_CHOICE)

    def _check_table(self, table: SinkTable) -> None:
        """Whether the operator lets this tenant write there; whether the table is there is told
        by who writes: it may be made later."""
        found = databases(self._services.settings.functions.databases).get(table.database)
        if found is None or found.of(self._public_id()) is None:
            reason = f"There is no database {table.database!r} for you: an operator names them"
            raise WHOLE.at(SINK, TABLE, "database").bad(reason, NO_CHOICE)

    def _public_id(self) -> str:
        """Return by what others know the tenant; empty: it is gone."""
        rows = self._services.ports.statements("grants").rows(
            "public_id", tenant=authenticated().caller
        )
        return str(rows[0][0]) if rows else ""

    def _store(self, name: str, part: Part) -> Store:
        found = stores(self._services.settings.functions.stores).get(name)
        if found is None or found.of(self._public_id()) is None:
            reason = f"There is no store {name!r} for you: an operator makes them"
            raise part.bad(reason, NO_CHOICE)
        return found

    def _check_sink(self, stream: StreamRef) -> None:
        address = self._found(stream, SINK)
        part = WHOLE.at(SINK, STREAM)
        if address.tenant != address.caller:
            reason = "Atoms go to a stream of your own: sending is the owner's right alone"
            raise part.bad(reason, UNKNOWN_STREAM)
        declared = self._services.definitions.stream(address, stream.stream)
        if declared is None or declared.composite is not None:
            raise part.bad("Atoms go to a simple stream, not to a composite one", NO_CHOICE)
