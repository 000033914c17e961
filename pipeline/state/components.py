"""The Service Objects that a partition knows: whole components, loaded when they are needed.

What is computed together is known together. A component may be large: it is loaded in
slices, and between two of them others are computed.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from pipeline.limits import LOADING_SECONDS
from pipeline.slice import Slice, nobody
from pipeline.state.loading import Loading, portions
from pipeline.state.weights import weight_of_copy
from servioticy.domain.contested import CONTESTED_SECONDS
from servioticy.domain.graph import Graph
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.domain.patterns import Pattern
from servioticy.ports.partition_store import ComponentMember, PartitionStore

MAX_DEFINITION_BYTES = 512 * 1024 * 1024
"""Of Service Objects known at once, estimated; beyond it whole components are forgotten."""

MAX_LOOKED_AT = 200
"""Service Objects of which is looked at once whether they are unused: 0.1 ms."""
MARKS = 10
"""So many times are remembered of those within which something is not forgotten."""


class StillLoading(NamedTuple):
    """A Service Object whose component is not loaded yet."""

    tenant: int


class Components:
    """The Service Objects computed in one partition, with their graph."""

    def __init__(
        self,
        partition: int,
        store: PartitionStore,
        clock: Callable[[], float] = time.monotonic,
        forget_inputs: Callable[[Iterable[StreamRef]], None] = lambda _refs: None,
    ) -> None:
        """`forget_inputs` is told of inputs from outside that are no longer known."""
        self._forget_inputs = forget_inputs
        self.graph = Graph(())
        self.known: dict[str, ServiceObject] = {}
        """Those that are loaded, by their id."""
        self._partition = partition
        self._store = store
        self._clock = clock
        self._members: dict[str, frozenset[str]] = {}
        """Of those that are not alone in their component, all that are in it."""
        self._weights: dict[str, int] = {}
        self._weight = 0
        self._patterns: dict[str, Pattern] = {}
        """What those were made by that may be like others."""
        self._copies: Counter[Pattern] = Counter()
        self._pattern_weights: dict[Pattern, int] = {}
        """It stays while there is a copy, whoever it was cut for: so long it counts."""
        self._used: dict[str, int] = {}
        """After how many batches each was used last; the longest unused first, about."""
        self._marks: deque[tuple[float, int]] = deque()
        """How many batches there had been at some times."""
        self._batches = 0
        self._loading: dict[str, Loading] = {}
        self._rests: Set[int] = frozenset()
        self._is_awaited: Callable[[], bool] = nobody
        self._seconds_left = LOADING_SECONDS
        self._spent: defaultdict[int, float] = defaultdict(float)

    def get(
        self, service_object: str, *, at_once: bool = False
    ) -> ServiceObject | int | StillLoading | None:
        """The Service Object if it is computed here, else the partition where it is.

        None where it does not exist, or no version of it is in force yet. It is loaded where
        it is not known, for a short time between two batches, or `at_once`.
        """
        known = self.known.get(service_object)
        if known is not None:
            self._use(service_object, self._batches)
            return known
        loading = self._loading.get(service_object)
        if loading is None:
            members = {each.id: each for each in self._store.component(service_object)}
            asked = members.get(service_object)
            if asked is None or asked.version is None:
                return None
            if asked.owner_partition != self._partition:
                return asked.owner_partition
            loading = self._begin(members.values())
        tenant = loading.tenants[service_object]
        if not at_once and tenant in self._rests:
            return StillLoading(tenant)
        if not self._go_on(loading, at_once=at_once):
            return StillLoading(tenant)
        return self.known.get(service_object)

    def spare(
        self, rests: Set[int] = frozenset(), is_awaited: Callable[[], bool] = nobody
    ) -> None:
        """From now on load nothing of tenants of whom something rests: it has its turn.

        And end a slice sooner where somebody waits for what follows it.
        """
        self._rests, self._is_awaited = rests, is_awaited

    def tenant_of(self, service_object: str) -> int | None:
        """Whose it is, if it is loaded, or begun to be."""
        known, loading = self.known.get(service_object), self._loading.get(service_object)
        if known is not None:
            return known.tenant
        return None if loading is None else loading.tenants[service_object]

    def prepare(self, service_objects: Iterable[str]) -> Set[str]:
        """Begin to load those that are not known, and load as many as there is time for.

        Many small components are loaded together: one by one would take ten times as long.
        Larger ones are left to `get`. Returns those of the small ones for which there was no time.
        """
        unknown = [each for each in dict.fromkeys(service_objects) if each not in self.known]
        new = [each for each in unknown if each not in self._loading]
        self._load_together(self._small(unknown))  # however long it takes to find the others
        self._begin_all(new)
        self._load_together(self._small(new))
        small = self._small(unknown)
        return {id_ for each in small for id_ in each.tenants}

    def _small(self, service_objects: Iterable[str]) -> list[Loading]:
        """The small ones of these components that are not loaded yet, as far as they are begun."""
        begun = dict.fromkeys(self._loading.get(each) for each in service_objects)
        small = [each for each in begun if each is not None and each.is_small]
        return [each for each in small if not self._rests & set(each.tenants.values())]

    def _begin_all(self, service_objects: Sequence[str]) -> None:
        """Begin to load these, as far as they are computed here."""
        if not service_objects:
            return
        began = self._clock()
        for members in self._store.components(service_objects):
            if any(self._is_computed_here(each) for each in members):
                self._begin(members)
        self._seconds_left -= self._clock() - began

    def _load_together(self, some: Sequence[Loading]) -> None:
        """Load these components, for as long as there is time; the rest goes on in the next."""
        for each in some:
            if each.is_complete:
                self._finish(each, self._seconds_left)
        by_id = {each.id: loading for loading in some for each in loading.left}
        for asked in portions([each for loading in some for each in loading.left]):
            if self._seconds_left <= 0:
                return
            self._load_some(asked, by_id)
        for loading in some if self._seconds_left > 0 else ():
            if not loading.is_complete:
                loading.end()  # what was not found is gone

    def _load_some(self, service_objects: Sequence[str], loadings: Mapping[str, Loading]) -> None:
        """Load these, each a member of one of the components; until there is no time left."""
        began = self._clock()
        for found in self._store.service_objects(service_objects):
            loading = loadings[found.id]
            loading.add(found)
            took = self._clock() - began
            self._seconds_left -= took
            self._spent[found.tenant] += took
            if loading.is_complete:
                self._finish(loading, self._seconds_left)
            if self._seconds_left <= 0:
                return
            began = self._clock()

    def _is_computed_here(self, member: ComponentMember) -> bool:
        return member.version is not None and member.owner_partition == self._partition

    def _begin(self, members: Iterable[ComponentMember]) -> Loading:
        """Begin to load those of a component that are computed here."""
        loading = Loading(each for each in members if self._is_computed_here(each))
        self._loading.update(dict.fromkeys(loading.tenants, loading))
        return loading

    def forget(self, service_objects: Iterable[str]) -> set[str]:
        """Load the components of these anew when they are needed; all that is forgotten.

        With them goes what was known of their inputs from outside.
        """
        gone: set[str] = set()
        for each in service_objects:
            gone |= self._members.get(each, frozenset({each}))
            self._stop_loading(each)
        self._forget_inputs(self.graph.drop(gone))
        for each in gone:
            self.known.pop(each, None)
            self._members.pop(each, None)
            self._used.pop(each, None)
            self._weight -= self._weights.pop(each, 0)
            self._forget_pattern(self._patterns.pop(each, None))
        return gone

    def _forget_pattern(self, pattern: Pattern | None) -> None:
        """One copy less of it; with the last one it goes."""
        if pattern is not None:
            self._copies[pattern] -= 1
            if not self._copies[pattern]:
                del self._copies[pattern]
                self._weight -= self._pattern_weights.pop(pattern)

    def reload(self, service_object: str) -> None:
        """It has changed, or gone: all who are known in its component are loaded anew.

        The component may have grown by the change.
        """
        members = {each.id for each in self._store.component(service_object)}
        self.forget(members | {service_object})

    def pop_spent(self) -> Mapping[int, float]:
        """The seconds that loading has taken since this was last asked, by tenant."""
        spent, self._spent = self._spent, defaultdict(float)
        return spent

    def read_in(self, ref: StreamRef, partition: int) -> None:
        """Note that others read a stream in this partition, too."""
        known = self.known.get(ref.service_object)
        if known is None or not self.graph.knows(ref):
            return
        stream = self.graph.stream(ref)
        if partition not in stream.read_in:
            stream.read_in = (*stream.read_in, partition)
            read_in = {**known.read_in, ref.stream: stream.read_in}
            self.known[known.id] = replace(known, read_in=read_in)

    def trim(self, under_way: Set[int] = frozenset(), *, contested: bool = False) -> None:
        """Between two batches: forget what there is no room for, the least recently used first.

        A component goes as a whole, with the time of the one of its members used last; none of
        tenants of whom something is `under_way`. From here on there is time again to load others,
        less while `contested`.
        """
        self._batches += 1
        self._seconds_left = CONTESTED_SECONDS if contested else LOADING_SECONDS
        self._trim_loading()
        if self._weight <= MAX_DEFINITION_BYTES:
            return
        components = {self._members.get(each, frozenset((each,))) for each in self.known}
        last_used = {
            members: max(self._used.get(each, 0) for each in members)
            for members in components
            if self.known[next(iter(members))].tenant not in under_way
        }
        for members in sorted(last_used, key=lambda each: last_used[each]):
            if self._weight <= MAX_DEFINITION_BYTES * 3 // 4:
                break
            self.forget(members)

    def forget_unused(self, seconds: float, under_way: Set[int] = frozenset()) -> set[str]:
        """Forget some components that nobody has used for so long, or a tenth longer, as a whole.

        None of tenants of whom something is `under_way`. Returns the Service Objects that are
        forgotten; to be asked again while there are any.
        """
        self._batches += 1
        unused_since = self._batches_before(seconds)
        gone: set[str] = set()
        for each in list(islice(self._used, MAX_LOOKED_AT)):
            if each in gone:
                continue
            if self._used[each] >= unused_since:
                break
            members = self._members.get(each, frozenset((each,)))
            newest = max(self._used.get(member, 0) for member in members)
            if newest >= unused_since or self.known[each].tenant in under_way:
                self._use(each, newest)  # the next one is looked at first
            else:
                gone |= self.forget((each,))
        return gone

    def _use(self, service_object: str, batch: int) -> None:
        self._used.pop(service_object, None)
        self._used[service_object] = batch

    def _batches_before(self, seconds: float) -> int:
        """How many batches there had been so many seconds ago; 0 where that is not known."""
        now = self._clock()
        if not self._marks or now - self._marks[-1][0] >= seconds / MARKS:
            self._marks.append((now, self._batches))
        while len(self._marks) > 1 and now - self._marks[1][0] >= seconds:
            self._marks.popleft()
        at, batches = self._marks[0]
        return batches if now - at >= seconds else 0

    def _trim_loading(self) -> None:
        """Begin anew with what is hardly begun, where too much is loaded in part."""
        begun = sorted(set(self._loading.values()), key=lambda each: each.weight)
        weight = sum(each.weight for each in begun)
        for each in begun[:-1]:
            if weight <= MAX_DEFINITION_BYTES // 4:
                break
            weight -= each.weight
            self._stop_loading(next(iter(each.tenants)))

    def _go_on(self, loading: Loading, *, at_once: bool) -> bool:
        """Load some more; whether that is all, and the component is known."""
        seconds = float("inf") if at_once else self._seconds_left
        if not loading.is_complete:
            if seconds <= 0:
                return False
            began = self._clock()
            loaded = loading.go_on(self._store, self._over(seconds))
            took = self._clock() - began
            seconds -= took
            self._seconds_left -= took
            self._charge(loaded, loading.weights, took)
        return loading.is_complete and self._finish(loading, seconds)

    def _finish(self, loading: Loading, seconds: float) -> bool:
        """Make the graph of what is loaded; whether it is made, and the component known.

        It is given as much time as there is: once it is made, all is known at once.
        """
        if seconds <= 0:
            return False
        began = self._clock()
        is_made = loading.make_graph(self.graph, self._over(seconds))
        if is_made:
            self._add(loading)
        took = self._clock() - began
        self._seconds_left -= took
        self._charge(loading.loaded, loading.weights, took)
        return is_made

    def _over(self, seconds: float) -> Callable[[], bool]:
        """Return what tells whether a slice of so many seconds that begins now is over."""
        if seconds == float("inf"):
            return nobody
        return Slice(self._clock, seconds, self._is_awaited).is_over

    def _add(self, loading: Loading) -> None:
        """The component is loaded: from now on it is known."""
        self.forget(loading.tenants)
        here = loading.loaded
        for each in here:
            self.known[each.id] = each
            self._use(each.id, self._batches)
        if len(here) > 1:
            members = frozenset([each.id for each in here])
            self._members.update(dict.fromkeys(members, members))
        if loading.pattern is not None:
            self.graph.copy(loading.pattern, here[0])
        elif loading.graph is not None and len(here) == 1:
            self.graph.merge_alone(loading.graph, here[0])
        elif loading.graph is not None:
            self.graph.merge(loading.graph)
        self._weigh(loading)

    def _weigh(self, loading: Loading) -> None:
        """Count what is loaded, and what it shares with others once."""
        weights, here = loading.weights, loading.loaded
        pattern = self.graph.made_by(here[0].id) if len(here) == 1 else None
        if pattern is not None:
            own = min(weight_of_copy(here[0]), loading.weight)
            weights = {here[0].id: own}
            if pattern not in self._copies:
                self._pattern_weights[pattern] = loading.weight - own
                self._weight += loading.weight - own
            self._copies[pattern] += 1
            self._patterns[here[0].id] = pattern
        self._weights.update(weights)
        self._weight += sum(weights.values())

    def _charge(
        self, service_objects: Sequence[ServiceObject], weights: Mapping[str, int], seconds: float
    ) -> None:
        """Each tenant pays for its own part."""
        whole = sum(weights[each.id] for each in service_objects)
        for each in service_objects:
            self._spent[each.tenant] += seconds * weights[each.id] / whole

    def _stop_loading(self, service_object: str) -> None:
        loading = self._loading.get(service_object)
        for each in loading.tenants if loading else ():
            self._loading.pop(each, None)
