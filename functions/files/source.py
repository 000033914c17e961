"""The two steps before the first procedure, where the source is files: to look, and to cut.

A look gives the next stretch of the store's list, and what of it is new waits to be cut. What is
to be cut is told by an atom, a *ticket*: the file and where to begin. Each time a portion is cut
the ticket goes, and the atoms of the portion and the ticket of the rest come, in one transaction
(the pre-submit procedure of the paper, and its timeout handler). So a file is cut once, and what
somebody was killed over begins where the last portion ended. A record that is no atom gets a
ticket of its own, which ends as a dead letter with the reason, and can be tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from functions.files import records
from functions.files.columns import Columns
from functions.files.opening import Opening, opened
from functions.files.records import BadFile, Portion
from functions.files.store import (
    FileGone,
    FileRefused,
    StillCopied,
    StoreAway,
    StoreRefuses,
    TakesTooMuch,
)
from functions.files.store import Files as OpenedFiles
from functions.steps import BEGUN_MS, Failure, Result, Task
from servioticy.domain.workflows.looking import Place
from servioticy.domain.workflows.model import CSV, LOOK, PARQUET, Files
from servioticy.domain.workflows.stores import Bucket, Folder, Store
from servioticy.ports.atoms import Atom, Look, Seen

CHUNK = 1_048_576
"""Bytes of a file that are read for a portion."""
MAX_BAD = 100
"""Records of a file that are no atoms; with one more the rest of it is not cut."""
AWAY_MS = 5_000
REFUSED_MS, LONGEST_REFUSED_MS = 60_000, 3_600_000
"""After which a store is asked again that lets us do nothing, each time twice as long: an operator
has to mend that, and no file is to blame. One that waits is tried, and the others rest."""
MAX_RESTING = 10_000
"""Stores of tenants."""
LISTED_US = 10
"""Microseconds that a file of a list is charged as, beside what it takes here: Postgres looks for
it among those that are known."""
NO_STORE = "there is no such store for you any more"
MAX_TENANTS = 1_000

log = logging.getLogger("functions")


class Ticket(NamedTuple):
    """What is to be cut."""

    file: Seen
    at: int = 0
    """Where to begin: a byte, or in Parquet a row."""
    header: Sequence[str] | None = None
    """Names of the columns of CSV, which stood at its beginning."""
    bad: int = 0
    """Records that were no atoms so far."""
    is_only: bool = False
    """One record alone is meant."""
    refused: str = ""
    """Why the rest is not cut."""

    @classmethod
    def read(cls, body: bytes) -> Ticket:
        """Return what `body` made."""
        told = orjson.loads(body)
        return cls(
            Seen(told["key"], told["etag"], told["size"]),
            told.get("at", 0),
            told.get("header"),
            told.get("bad", 0),
            told.get("only", False),
            told.get("refused", ""),
        )

    def body(self) -> bytes:
        """Return it as an atom."""
        told: dict[str, Any] = {**self.file._asdict(), "at": self.at}
        if self.header is not None:
            told["header"] = self.header
        if self.bad:
            told["bad"] = self.bad
        if self.is_only:
            told["only"] = True
        if self.refused:
            told["refused"] = self.refused
        return orjson.dumps(told)


class Source:
    """The step for both."""

    def __init__(
        self,
        stores: Mapping[str, Store],
        public_id: Callable[[int], str],
        columns: Columns,
        opening: Opening = opened,
    ) -> None:
        """`public_id` tells by what others know a tenant."""
        self._stores = stores
        self._public_id = lru_cache(MAX_TENANTS)(public_id)
        self._columns = columns
        self._lock = threading.Lock()
        self._resting: dict[tuple[int, str], tuple[float, int]] = {}
        """Stores that let us do nothing: until when they are not asked, and how long that is."""
        self._open = opening

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Look at the store, or cut a portion of each of these files. Raises Unavailable."""
        files = task.workflow.files
        if files is None:  # a ticket of another version, which cannot be
            return Result(failed={each.id: Failure(NO_STORE, True) for each in atoms})
        began = time.thread_time()
        at = self._at(task.queue.tenant, files)
        if task.queue.step == LOOK:
            looks = {each.id: self._look(at, files, each) for each in atoms}
            listed = sum(len(each.files) for each in looks.values())
            result = Result(looks=looks, processor_us=LISTED_US * listed)
        else:
            result = self._cut_all(task.queue.tenant, at, files, atoms)
        used = int(1e6 * (time.thread_time() - began))
        return result._replace(processor_us=result.processor_us + used)

    def close(self) -> None:
        """Let copies go."""
        self._columns.close()

    def _at(self, tenant: int, files: Files) -> Folder | Bucket | None:
        store = self._stores.get(files.store)
        return None if store is None else store.of(self._public_id(tenant))

    def _look(self, at: Folder | Bucket | None, files: Files, atom: Atom) -> Look:
        place = Place.read(atom.body)
        if at is None:
            return Look(place=place, trouble=NO_STORE)
        try:
            page = self._open(at).page(files.prefix, place.after)
        except (StoreAway, StoreRefuses) as error:
            return Look(place=place, trouble=str(error))
        is_sure = not isinstance(at, Folder)
        return Look(page.files, place, page.upto, files.prefix, is_sure=is_sure)

    def _cut_all(
        self, tenant: int, at: Folder | Bucket | None, files: Files, atoms: Sequence[Atom]
    ) -> Result:
        done: dict[int, Sequence[bytes]] = {}
        again: dict[int, Sequence[bytes]] = {}
        failed: dict[int, Failure] = {}
        if rest_ms := self._rest_ms(tenant, files.store):
            return Result(later=dict.fromkeys([each.id for each in atoms], rest_ms))
        later: dict[int, int] = {}
        used = 0
        for place, atom in enumerate(atoms):
            ticket = Ticket.read(atom.body)
            try:
                if at is None:
                    raise StoreRefuses(NO_STORE)
                portion = self._cut(tenant, self._open(at), files, ticket)
            except StillCopied:
                later[atom.id] = BEGUN_MS
            except StoreAway as error:
                log.warning("store_away", extra={"tenant": tenant, "why": str(error)[:200]})
                later[atom.id] = AWAY_MS
            except StoreRefuses as error:
                log.warning("store_refuses", extra={"tenant": tenant, "why": str(error)[:200]})
                rest_ms = self._let_rest(tenant, files.store)
                later |= dict.fromkeys([each.id for each in atoms[place:]], rest_ms)
                break
            except FileRefused as error:
                failed[atom.id] = Failure(f"{ticket.file.key[:200]}: {error}")
            except TakesTooMuch as error:
                used += int(1e6 * error.seconds)
                failed[atom.id] = Failure(f"{ticket.file.key[:200]}: {error}")
            except (BadFile, FileGone) as error:
                failed[atom.id] = Failure(f"{ticket.file.key[:200]}: {error}", True)
            else:
                self._serves(tenant, files.store)
                used += portion.processor_us
                done[atom.id] = portion.atoms
                again[atom.id] = [each.body() for each in _rest(ticket, portion)]
        return Result(done, failed, later, used, again=again)

    def _rest_ms(self, tenant: int, store: str) -> int:
        """Return how long the store is not to be asked yet."""
        with self._lock:
            until, _ = self._resting.get((tenant, store), (0.0, 0))
        return max(0, int(1_000 * (until - time.monotonic())))

    def _let_rest(self, tenant: int, store: str) -> int:
        with self._lock:
            _, before = self._resting.get((tenant, store), (0.0, 0))
            rest_ms = min(max(REFUSED_MS, 2 * before), LONGEST_REFUSED_MS)
            if len(self._resting) >= MAX_RESTING:
                self._resting.clear()
            self._resting[tenant, store] = time.monotonic() + rest_ms / 1_000, rest_ms
        return rest_ms

    def _serves(self, tenant: int, store: str) -> None:
        with self._lock:
            self._resting.pop((tenant, store), None)

    def _cut(self, tenant: int, store: OpenedFiles, files: Files, ticket: Ticket) -> Portion:
        if ticket.refused:
            raise BadFile(ticket.refused)
        most = 1 if ticket.is_only else records.MOST
        if files.format == PARQUET:
            own_columns = tenant, ticket.at, most, files.store
            portion = self._columns.rows(store, ticket.file, *own_columns)
        else:
            chunk = store.read(ticket.file, ticket.at, CHUNK)
            is_end = ticket.at + len(chunk) >= ticket.file.size
            if not chunk and not is_end:
                raise FileGone("the file ends before it should")
            if files.format == CSV:
                own = files.separator, ticket.header
                portion = records.csv_rows(chunk, ticket.at, is_end, *own, most)
            else:
                portion = records.json_lines(chunk, ticket.at, is_end, most)
        if ticket.is_only and portion.bad:
            raise BadFile(f"at {portion.bad[0].at}: {portion.bad[0].reason}")
        return portion


def _rest(ticket: Ticket, portion: Portion) -> list[Ticket]:
    """Return what is left to be cut: the rest, and what has to be told of single records."""
    if ticket.is_only:
        return []
    header = ticket.header if portion.header is None else portion.header
    room = MAX_BAD - ticket.bad
    found = [
        ticket._replace(at=each.at, header=header, bad=0, is_only=True)
        for each in portion.bad[:room]
    ]
    bad = ticket.bad + len(portion.bad)
    if bad > MAX_BAD:
        last = portion.bad[room]
        reason = f"more than {MAX_BAD} records are no atoms; at {last.at}: {last.reason}"
        at = ticket.at if portion.at is None else portion.at
        found.append(ticket._replace(at=at, header=header, bad=0, refused=reason))
    elif portion.at is not None:
        found.append(ticket._replace(at=portion.at, header=header, bad=bad))
    return found
