"""What one task knows of its partition: who is computed here, and the last updates.

The task may trust its memory, because nobody else stores for these streams: the fence
of every transaction proves it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from itertools import islice

from pipeline.accounting.accounts import Accounts
from pipeline.errors import BatchTooLarge
from pipeline.growth import Keeping, Keys
from pipeline.limits import IDLE_SECONDS
from pipeline.state.beginning import Beginning
from pipeline.state.channels import Channels
from pipeline.state.components import Components, StillLoading
from pipeline.state.decided import Decided
from pipeline.state.last_update_cache import LastUpdateCache
from pipeline.state.recalling import asked_for, recalled_past, room_left
from pipeline.state.times import Times
from pipeline.work import Work
from servioticy.domain import emissions
from servioticy.domain.evaluators.past import PastKey
from servioticy.domain.evaluators.programs import HEAD
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import InputRef, LastUpdate, ServiceObject, StreamRef
from servioticy.domain.pauses import Paused, short
from servioticy.domain.plans import Plan
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Activate, ActivateAll
from servioticy.ports.kept_entries import StoredEntry
from servioticy.ports.partition_store import PartitionStore
from servioticy.ports.put_off import TreeKey

RECALLED_AT_ONCE = 1000
"""Last updates that are looked up until others may go on: half a millisecond where they are
known, some five where the store is asked."""


class Partition:
    """The state of a partition at its stored progress, loaded as it is needed."""

    def __init__(
        self,
        number: int,
        store: PartitionStore,
        remembered_bytes: int,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Claim the partition; `remembered_bytes` of last updates are remembered.

        What has not been used for `idle_seconds` is forgotten. Raises Unavailable while another
        worker has it.
        """
        self._idle_seconds = idle_seconds
        self.number = number
        self.store = store
        self.decided = Decided()
        self.accounts = Accounts()
        next_offset, next_tree, self.emitted_offset = store.begin(number)
        self.progress = TreeKey(next_offset, next_tree)
        self.claim = store.claim(number)
        """Of the partition, by which late work may be stored beside its batches."""
        self.under_way: Set[int] = frozenset()
        """Tenants of whom something is computed beside the batches."""
        self.spares_others = False
        """What is sent now is what all wait for."""
        self.forwarded_offsets = store.forwarded(number)
        """From each partition, the offset before which all that it forwarded has come."""
        self.counted = 0
        """How often it was asked how many records wait since the partition was begun."""
        self.waiting = Counter(store.waiting(number))
        """How many records of each tenant have been put off."""
        self.senders: Counter[int] = Counter()
        """How many of these they have sent themselves, as far as that is known: not of those
        that were put off before the partition was begun."""
        self.awaiting = store.awaiting(number)
        """Whose updates from outside are held here, and how many records of each are."""
        self._beginning = Beginning(store.begins_put_off(number))
        self.emitted_late: list[TreeKey] = []
        """Records that had been put off, and of which all is emitted and acknowledged."""
        self.to_purge = True
        """Whether something deleted or erased may still have rows; at first nobody knows."""
        self.times = Times(number, store)
        self.is_to_ask = True
        """Whether programs may be to be asked, or others than before; at first nobody knows."""
        self._last_updates = LastUpdateCache(remembered_bytes)
        self._components = Components(
            number, store, clock, forget_inputs=self._last_updates.forget
        )
        self.graph = self._components.graph
        self._known = self._components.known
        self.channels = Channels(number, store)

    def service_object(
        self, service_object: str, *, at_once: bool = False
    ) -> ServiceObject | int | StillLoading | None:
        """The Service Object if it is computed here, else the partition where it is.

        None where it does not exist, or no version of it is in force yet. What is not known
        is loaded, a part at a time if it is much, or all `at_once`.
        """
        return self._components.get(service_object, at_once=at_once)

    def prepare(self, service_objects: Iterable[str]) -> Set[str]:
        """Load the components of these together, where they are not known and there is time.

        Returns those of small components for which there was none.
        """
        return self._components.prepare(service_objects)

    def spare_who_rests(self, tenants: Set[int]) -> None:
        """Load nothing of these tenants: their records are put off, whatever is loaded of them."""
        self._components.spare(rests=tenants)

    def give_way(self, is_awaited: Callable[[], bool]) -> None:
        """Load of everybody what is asked for, in slices that end where somebody waits."""
        self._components.spare(is_awaited=is_awaited)

    def known(self, service_object: str) -> ServiceObject | None:
        """The Service Object if it is loaded."""
        return self._known.get(service_object)

    def tenant_here(self, service_object: str) -> int | None:
        """Whose it is, if it is loaded, or begun to be; None where it is not known here."""
        return self._components.tenant_of(service_object)

    def in_force(self, service_object: str) -> ServiceObject | None:
        """The Service Object as it is at the stored progress, alone; None where none is."""
        known = self._known.get(service_object)
        return known or next(iter(self.store.service_objects([service_object])), None)

    def pop_loading(self) -> Mapping[int, float]:
        """The seconds that loading has taken since this was last asked, by tenant."""
        return self._components.pop_spent()

    def forget(self, service_objects: Iterable[str], *, last_updates: bool = False) -> None:
        """Load their components anew when needed; with their last updates, if asked."""
        gone = self._components.forget(service_objects)
        if last_updates:
            self._last_updates.forget_all(gone)
            self.times.look_anew()
            self.is_to_ask = True

    def reload(self, service_object: str) -> None:
        """It has changed, or gone: load its component anew when needed."""
        self._components.reload(service_object)
        self._last_updates.forget_all([service_object])

    def reload_all(self, members: Iterable[str], changed: Iterable[str]) -> None:
        """The same of some that have changed; `members` are all of their components."""
        self._components.forget(members)
        self._last_updates.forget_all(changed)

    def reload_purged(self, service_object: str) -> None:
        """It was deleted, or a stream of it erased: reload it, and its rows are to be removed."""
        self.reload(service_object)
        self.to_purge = True

    def forget_inputs(
        self, service_objects: Iterable[str], streams: Iterable[StreamRef], *, is_open: bool
    ) -> None:
        """Look up again what these Service Objects know of streams of others.

        Where it is not known that they are, or are not, `open`, their components are loaded anew.
        """
        sources = list(streams)
        for each in service_objects:
            known = self._known.get(each)
            if known is None:
                continue
            found = [known.inputs.get(ref) for ref in sources]
            if all(each is not None and each.is_open == is_open for each in found):
                self._last_updates.forget(InputRef(ref, known.sequence) for ref in sources)
            else:
                self._components.forget([each])

    def read_in(self, stream: StreamRef, partition: int) -> None:
        """Note that others read a stream in this partition, too."""
        self._components.read_in(stream, partition)

    def tenant_of(self, service_object: str) -> int | None:
        """Whose it is, wherever it is computed; None where it does not exist."""
        found = self.store.owner(service_object)
        return found and found[0]

    def owner_of(self, service_object: str) -> int | None:
        """The partition where it is computed, or will be; None where it does not exist."""
        found = self.store.owner(service_object)
        return found and found[1]

    def is_deleted(self, service_object: str) -> bool:
        """Whether a Service Object that is not computed here has been deleted."""
        members = self.store.component(service_object)
        return any(each.id == service_object and each.deleted for each in members)

    def beginning(self, stream: StreamRef) -> Iterable[tuple[int, str]]:
        """Whom a stream will feed once what their tenants have waiting is computed.

        By tenant and Service Object: a begin of theirs has been put off.
        """
        return self._beginning.of(stream)

    def note_beginning(self, record: bytes) -> None:
        """Note that a begin has been put off."""
        self._beginning.add(record)

    def count_waiting(self) -> None:
        """Ask how many records wait, and whose are held: some that were may wait now."""
        self.counted += 1
        self.awaiting = self.store.awaiting(self.number)
        self.waiting = Counter(self.store.waiting(self.number))
        for each in self.senders.keys() - self.waiting.keys():
            del self.senders[each]
        self._beginning.keep(self.waiting)

    def note_stored_beside(self, work: Work, counted: int) -> None:
        """Note that late work is stored: since it had been `counted` so often.

        If that has been done since it may be counted already, and is asked for again. To ask each
        time would take everybody as long as one tenant has records that wait.
        """
        if counted == self.counted:
            self.note_waiting(work)
        else:
            self.count_waiting()

    def note_waiting(self, work: Work) -> None:
        """Note that this work is stored: so many more, or fewer, records wait."""
        self.waiting.update(each.tenant for each in work.put_off if not each.held)
        self.senders.update(each.tenant for each in work.put_off if not each.tree)
        for each in work.put_off:
            if each.held and each.tenant in self.awaiting:
                self.awaiting[each.tenant] += 1
        if work.late:
            self.waiting.subtract(each.tenant for each in work.late)
            self.waiting = +self.waiting
            self.senders.subtract(each.tenant for each in work.late if not each.tree)
            self.senders = +self.senders
            self._beginning.keep(self.waiting)

    def recall(self, plans: Iterable[Plan]) -> Paused[Mapping[StreamRef, LastUpdate | None]]:
        """The last updates that trees of these plans need, as they are now.

        One query at most for so many. They stay as they are, whatever is learnt or forgotten
        meanwhile; and nothing changes them, as all of it is of one tenant.
        """
        needed = iter(self.graph.needed(plans))
        found: dict[StreamRef, LastUpdate | None] = {}
        while some := list(islice(needed, RECALLED_AT_ONCE)):
            if found:
                yield
            self._look_up(some)
            found.update(self._last_updates.of(some))
        return found

    def recall_all(self, work: Work) -> None:
        """Ask for those of several tenants together, where they are not known.

        What takes long to find out leaves that to its own piece.
        """
        refs = dict.fromkeys(root.origin for each in work.updates for root in each.roots)
        plans = [short(self.graph.planning(self.graph.stream(each)), 1) for each in refs]
        few = [each for each in plans if each and len(each.streams) <= RECALLED_AT_ONCE]
        self._look_up(self.graph.needed(few))

    def _look_up(self, refs: Iterable[StreamRef]) -> None:
        """Ask for these last updates where they are not known."""
        unknown = self._last_updates.use(refs)
        if unknown:
            found = asked_for(unknown, self.graph, self.store)
            self._last_updates.keep(found.items())

    def recall_kept(self, keys: Keys, known: Keeping, *, is_one: bool) -> Keeping:
        """What composites keep under these keys, as it is stored, beside what is known of others.

        It is asked for by batch and not remembered: one query. So is what history has of what they
        read, as far as there is room: of a tree that `is_one` by itself the rest is not known;
        several raise BatchTooLarge, so that each has the room for itself if need be.
        """
        keeping = {stream: dict(entries) for stream, entries in known.items()}
        entries = [each for each in keys if not isinstance(each[1], PastKey)]
        if entries:
            found = self.store.kept({(stream.stream_id, key) for stream, key in entries})
            for stream, key in entries:
                keeping.setdefault(stream, {})[key] = found.get((stream.stream_id, key))
        if len(entries) < len(keys):
            past = [(stream, key) for stream, key in keys if isinstance(key, PastKey)]
            told, is_all = recalled_past(past, self.graph, self.store, room_left(known))
            if not is_all and not is_one:
                raise BatchTooLarge
            for (stream, key), value in told.items():
                keeping.setdefault(stream, {})[key] = value
        return keeping

    def note_kept(self, kept: Iterable[StoredEntry]) -> None:
        """Note what composites keep from here on."""
        self.times.note(kept)
        # Also where nothing waits any more: then others have room.
        self.is_to_ask |= any(each.key == HEAD for each in kept)

    def note_in_force(self) -> None:
        """Note that another version is in force: what waits may be woken, or asked, otherwise."""
        self.times.look_anew()
        self.is_to_ask = True

    def remember(self, last_updates: Mapping[KnownStream, LastUpdate]) -> None:
        """Note that these were stored as last updates."""
        self._last_updates.keep((stream.ref, last) for stream, last in last_updates.items())

    def trim(self, *, contested: bool = False) -> None:
        """Between two batches: forget what there is no room for, the least recently used first.

        Not components of tenants of whom something is `under_way`.
        """
        self._last_updates.trim()
        self.channels.trim()
        self._components.trim(self.under_way, contested=contested)

    def forget_unused(self) -> int:
        """Forget some of what nobody has used for long, and return how many Service Objects.

        Between two batches, and again while it is some: a few milliseconds at a time.
        """
        gone = self._components.forget_unused(self._idle_seconds, self.under_way)
        self._last_updates.forget_all(gone)
        if gone:
            self.store.forget_parsed(self._idle_seconds)
            emissions.forget()
        return len(gone)

    def commit(self, batch: Callable[[TreeKey], Batch]) -> Mapping[int, int]:
        """Store the batch that begins at our progress, which then moves to its end.

        Returns of streams the bytes that are stored less, as the store does. Raises Unavailable
        where progress has passed its end already, and what storing raises.
        """
        content = batch(self.progress)
        if self.emitted_late:
            content = replace(content, emitted_late=tuple(self.emitted_late))
        end = TreeKey(content.next_offset, content.next_tree)
        if end < self.progress:
            raise Unavailable("this has been stored already: the partition is begun anew")
        replaced = self.store.store(content)
        self.emitted_late.clear()
        self.note_kept(content.kept)
        if isinstance(content.effect, Activate | ActivateAll):
            self.note_in_force()
        self.progress = end
        self.emitted_offset = max(self.emitted_offset, content.emitted_offset)
        return replaced
