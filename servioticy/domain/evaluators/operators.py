"""Operators: evaluators that take one computation at a time, keep entries, and set times.

What an operator makes of a computation depends on what it is given and on what it keeps, and on
nothing else: so a part of the log that is computed again after a crash comes to the same. What it
keeps are entries under keys, of which a commit writes those that are other ones than before. An
entry may have a time of the log at which the composite is woken for it: that comes as a record of
the log, so computing never looks at a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic, thread_time
from typing import NamedTuple, NoReturn, Protocol, TypeAlias

from sandbox import ProcessorSeconds, TookTooLong
from sandbox.trees import CLOCK, Call, Event, Grown, Kept, Last, Made, Node, Wake
from servioticy.domain.cache import Cache
from servioticy.domain.evaluators.evaluator import Evaluator, Lacking
from servioticy.domain.evaluators.past import NOW, Moment, Past
from servioticy.domain.evaluators.steps import Outcome, inputs_read
from servioticy.domain.evaluators.stepwise import KeptBefore, Stepwise, is_woken
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.verdicts import COLLECTED, EMITTED, ERROR

MAX_KEY_BYTES = 256
MAX_VALUE_BYTES = 65_536
MAX_CHANGES = 1000
"""Entries that one computation may change."""

LONG_BEFORE = 2**62
"""Milliseconds."""

MAX_TENANTS = 10_000
"""Of so many it is known what they have taken of the processor."""


MAX_LACKING = 10_000
"""Entries: where so many are lacking nobody looks for more."""

NOTHING_YET = Outcome((), ""), 0.0
"""Of a computation that is done again once more is known."""


def to_ask_since(at: int) -> int:
    """Return when an entry is due for which somebody is to be asked, since this time of the log.

    It is never due as a time; of two the one that has waited for longer is the smaller.
    """
    return at - LONG_BEFORE


class Ends(Exception):
    """A computation makes nothing; the kind of verdict, and why."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(message)
        self.kind = kind


Run: TypeAlias = Callable[[Sequence[Call]], Sequence[Grown]]
"""Has code run in the tenant's sandbox: what comes of each call. It answers with nothing where all
of this is to be done again, once more is known."""


def _runs_nothing(_calls: Sequence[Call]) -> NoReturn:
    raise AssertionError("this operator has been given nobody who runs code")


class Side(NamedTuple):
    """A composite whose updates another one's computations make, beside their own."""

    code: OperatorCode
    own: Last | None
    """Its last output."""


class Step(NamedTuple):
    """A computation."""

    code: OperatorCode
    at: int
    """The log's time, in ms since 1970; 0 where the log does not tell."""
    argument: int | None
    """Which of its inputs has woken the composite; None: the clock."""
    trigger: Last
    """The update that has, or the time that has come, in ms since 1970, without a document."""
    due: bytes | None
    """The key whose time that is."""
    source: str
    """The name of the trigger's stream, where the composite does not look at others."""
    inputs: Sequence[Last | None]
    """The last update of each input."""
    own: Last | None
    """The composite's last output."""
    name: str = ""
    """Of its code, for accounts and suspensions."""
    run: Run = _runs_nothing
    past: Past | None = None
    """What history has of its inputs. None: nobody here knows."""
    trace: str = ""
    """The trace context that what has woken it came with; empty: none."""
    sides: Sequence[Side] = ()
    """Composites whose updates it makes, too."""
    read_as: int = 0
    """As of the node (`sandbox/trees.py`)."""


class Computation(NamedTuple):
    """One of the composite with this number: it is woken so by an update, at that time."""

    node: int
    event: Event
    wake: Wake
    at: int
    """The log's time, as in Step."""
    moment: Moment = NOW
    """What has happened by now of what the store does not have yet."""
    trace: str = ""
    """As there."""


class Output(NamedTuple):
    """An update that a computation makes."""

    timestamp: int
    document: bytes
    """Compact JSON. Empty: what the composite made of this timestamp is taken back, and nobody is
    told what that was."""
    side: int = 0
    """Of which composite: 0 of the one that computes, else of a side, the first being 1."""


class Answer(NamedTuple):
    """What comes of a computation that has taken in what woke it."""

    outputs: Sequence[Output] = ()
    """Of each composite in the order of their timestamps, which differ."""
    kind: str = COLLECTED
    """How it ends where there are none; "": nobody is told."""
    message: str = ""


class Entries:
    """What one composite keeps, while it computes."""

    def __init__(self, node: int, known: KeptBefore) -> None:
        self._node = node
        self._known = known
        self._changed: dict[bytes, Kept] = {}

    def get(self, key: bytes) -> bytes | None:
        """What is kept under a key. Raises Lacking where that is not known yet."""
        return self._entry(key).value

    def need(self, keys: Iterable[bytes]) -> None:
        """Raise Lacking of all of these that are not known."""
        lacking = [
            (self._node, key)
            for key in keys
            if key not in self._changed and (self._node, key) not in self._known
        ]
        if lacking:
            raise Lacking(lacking)

    def due(self, key: bytes) -> int | None:
        """When the composite is to be woken for it. Raises Lacking as the other does."""
        return self._entry(key).due

    def add(self, key: bytes, value: bytes) -> None:
        """Keep this under a key of which the composite knows that there is nothing under it.

        Raises Ends as `put` does.
        """
        self._set(Kept(self._node, key, value))

    def put(self, key: bytes, value: bytes, due: int | None = None) -> None:
        """Keep this under the key, and be woken for it when it is due, in ms since 1970.

        What was under it has to be known: raises Lacking where it is not, and Ends where it is
        too large or too much.
        """
        self._change(Kept(self._node, key, value, due))

    def drop(self, key: bytes) -> None:
        """Keep nothing under the key any more. Raises Lacking as the others do."""
        self._change(Kept(self._node, key, None))

    def has_put(self, key: bytes) -> bool:
        """Whether it has been said anew what is under the key, and when that is due."""
        return key in self._changed

    @property
    def changed(self) -> Sequence[Kept]:
        """What is other than before."""
        return list(self._changed.values())

    def _entry(self, key: bytes) -> Kept:
        found = self._changed.get(key) or self._known.get((self._node, key))
        if found is None:
            raise Lacking([(self._node, key)])
        return found

    def _change(self, entry: Kept) -> None:
        self._entry(entry.key)
        self._set(entry)

    def _set(self, entry: Kept) -> None:
        if len(entry.key) > MAX_KEY_BYTES or len(entry.value or b"") > MAX_VALUE_BYTES:
            raise Ends(ERROR, f"an entry has at most {MAX_KEY_BYTES} and {MAX_VALUE_BYTES} bytes")
        self._changed[entry.key] = entry
        if len(self._changed) > MAX_CHANGES:
            raise Ends(ERROR, f"a computation changes at most {MAX_CHANGES} entries")


class Operator(Protocol):
    """Computes composites, one computation at a time."""

    takes_answers: bool
    """Whether what its clock brings are answers of somebody who was asked, not times."""

    def keys(self, code: OperatorCode, argument: int | None, event: Event) -> Sequence[bytes]:
        """Return the keys that a computation is likely to look at: they are asked for together."""

    def step(self, step: Step, entries: Entries) -> Answer:
        """What comes of a computation. Raises Ends where that is to have kept nothing."""


class Operators:
    """The evaluator of composites that an operator computes."""

    def __init__(self, operator: Operator, javascript: Evaluator | None = None) -> None:
        """`javascript`: who runs code that the operator has to ask for what it computes."""
        self._operator = operator
        self._javascript = javascript
        self._used: Cache[str, float] = Cache(MAX_TENANTS)

    def evaluate(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[Grown]:
        """What came of each call. Raises Lacking, and TookTooLong between two computations.

        Where a computation lacks something, those after it are tried without it, to see what they
        lack: else it would be asked for once for each update.
        """
        began, waiting = thread_time(), monotonic()

        def run(calls: Sequence[Call]) -> Sequence[Grown]:
            spent = monotonic() - waiting
            if self._javascript is None:
                _runs_nothing(calls)
            if within is not None and spent >= within:
                raise TookTooLong(spent, within)
            return self._javascript.evaluate(
                tenant, calls, None if within is None else within - spent
            )

        try:
            lacking = [
                (key, number) for number, call in enumerate(calls) for key in self._unknown(call)
            ]
            if lacking:
                raise Lacking([key for key, _ in lacking], [number for _, number in lacking])
            found = []
            until = None if within is None else began + within
            for number, call in enumerate(calls):
                steps = _Steps(call, self._operator, until, MAX_LACKING - len(lacking), run)
                found.append(steps.grow())
                lacking += [(key, number) for key in steps.lacking]
            if lacking:
                raise Lacking([key for key, _ in lacking], [number for _, number in lacking])
            return found
        finally:
            used = self._used.get(tenant) or 0.0
            self._used.put(tenant, used + thread_time() - began, 1)

    def once(
        self,
        nodes: Sequence[Node],
        computation: Computation,
        lasts: Mapping[int, Last],
        kept: KeptBefore,
        name: str,
        run: Run,
    ) -> Outcome:
        """What comes of one computation, where all that is kept is at hand.

        `name` is that of its code, which `run` has run where the operator asks for it.
        """
        return computed(self._operator, nodes, computation, lasts, Nothing(kept), name, run)

    def is_ready(self, _tenant: str) -> bool:
        """Nothing has to be started."""
        return True

    def processor_seconds(self, tenant: str) -> ProcessorSeconds:
        """What the tenant's computations have taken."""
        used = ProcessorSeconds(self._used.get(tenant) or 0.0)
        if self._javascript is None:
            return used
        return used.plus(self._javascript.processor_seconds(tenant))

    def _unknown(self, call: Call) -> Iterator[tuple[int, bytes]]:
        """The keys that the events of a call lead to a look at, and that are not known."""
        known = {(each.node, each.key) for each in call.kept}
        for tree in call.trees:
            for event in tree:
                for wake in call.wiring.nodes[event.node].wakes:
                    if not is_woken(event, wake, call.wiring.nodes):
                        continue
                    for key in self._keys(call, wake, event):
                        if (wake.node, key) not in known:
                            known.add((wake.node, key))
                            yield wake.node, key

    def _keys(self, call: Call, wake: Wake, event: Event) -> Sequence[bytes]:
        code = call.wiring.nodes[wake.node].code
        if wake.argument == CLOCK:
            found = self._operator.keys(code, None, event)
            if self._operator.takes_answers:
                return found
            return found if event.document in found else [event.document, *found]
        return self._operator.keys(code, wake.argument, event)


class _Steps(Stepwise):
    """Grows the trees of a call by an operator."""

    def __init__(
        self,
        call: Call,
        operator: Operator,
        until: float | None = None,
        room: int = 1,
        run: Run = _runs_nothing,
    ) -> None:
        """`until`: of what this thread has taken of the processor, in seconds. Where entries are
        lacking it is tried on, as long as there is `room` for more of them."""
        super().__init__(call, _nobody)
        self._operator = operator
        self._began = thread_time()
        self._until = until
        self._room = room
        self._run = run
        self.lacking: dict[tuple[int, bytes], None] = {}
        """What computations lack: then nothing has come of any."""

    def outcome(
        self, node: int, event: Event, wake: Wake, lasts: Mapping[int, Last], kept: KeptBefore
    ) -> tuple[Outcome, float]:
        """What comes of one computation; nothing, where it lacks something. Raises TookTooLong."""
        if node in self.call.refused:
            return Outcome((), *self.call.refused[node]), 0.0
        is_late = self._until is not None and thread_time() > self._until
        if self.lacking and (is_late or len(self.lacking) >= self._room):
            return NOTHING_YET
        if is_late:
            raise TookTooLong(thread_time() - self._began, (self._until or 0.0) - self._began)
        try:
            at = self.call.at[self._tree_number] if self.call.at else 0
            moment = self.call.moment or self.moment(event)
            trace = self.call.traces[self._tree_number] if self.call.traces else ""
            asked = Computation(node, event, wake, at, moment, trace)
            nodes = self.call.wiring.nodes
            name, run = self.call.names[node], self._run_unless_lacking
            return computed(self._operator, nodes, asked, lasts, kept, name, run), 0.0
        except Lacking as more:
            self.lacking.update(dict.fromkeys(more.keys))
            return NOTHING_YET

    def _run_unless_lacking(self, calls: Sequence[Call]) -> Sequence[Grown]:
        return [] if self.lacking else self._run(calls)


class Nothing(Mapping[tuple[int, bytes], Kept]):
    """What composites keep, where all of it is in memory: of a key that is not, it is nothing."""

    def __init__(self, known: KeptBefore) -> None:
        self._known = known

    def __getitem__(self, key: tuple[int, bytes]) -> Kept:
        """Return what is kept under it."""
        found = self._known.get(key)
        return Kept(*key, None) if found is None else found

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Go through what is known to be there."""
        return iter(self._known)

    def __len__(self) -> int:
        """Return how much that is."""
        return len(self._known)

    def __contains__(self, key: object) -> bool:
        """Tell that it is known of every key."""
        return True


def computed(
    operator: Operator,
    nodes: Sequence[Node],
    computation: Computation,
    lasts: Mapping[int, Last],
    kept: KeptBefore,
    name: str,
    run: Run,
) -> Outcome:
    """What comes of a computation of one of these streams. Raises Lacking.

    `name` is that of its code, which `run` has run where the operator asks for it.
    """
    node, event, wake, at, moment, trace = computation
    composite = nodes[node]
    entries = Entries(node, kept)
    inputs: list[Last | None] = []
    if composite.reads:
        read = inputs_read(composite, event, wake, lasts)
        inputs = [None if each is None else lasts[each] for each in read]
    by_clock = wake.argument == CLOCK
    due = event.document if by_clock and not operator.takes_answers else None
    if due is not None:
        time = entries.due(due)
        if time is None or time > event.timestamp:  # it has come before, or is another one
            return Outcome((), "")
    argument = None if by_clock else wake.argument
    trigger = Last(event.node, event.timestamp, b"" if due is not None else event.document)
    source = nodes[event.node].name
    own = lasts.get(node)
    sides = [Side(nodes[each].code, lasts.get(each)) for each in composite.sides]
    past = Past(entries.get, moment)
    asked = Step(
        composite.code,
        at,
        argument,
        trigger,
        due,
        source,
        inputs,
        own,
        name,
        run,
        past,
        trace,
        sides,
        composite.read_as,
    )
    times = [each and each.timestamp for each in inputs] if composite.reads else None
    try:
        answer = operator.step(asked, entries)
    except Ends as end:
        entries = Entries(node, kept)  # it has kept nothing
        if due is not None:
            _note_come(entries, due)
        return Outcome((), end.kind, str(end), times, entries.changed)
    if due is not None and not entries.has_put(due):
        _note_come(entries, due)
    changed = entries.changed
    if not answer.outputs:
        return Outcome((), answer.kind, answer.message, times, changed)
    # Where there are several each is a step of its own; a single one goes as any other does.
    several = len(answer.outputs) > 1 or composite.apart
    made = [
        Made(0, 0, each.side, each.timestamp, each.document, None, nth if several else None)
        for nth, each in enumerate(answer.outputs)
    ]
    return Outcome(made, EMITTED, "", times, changed)


def _note_come(entries: Entries, key: bytes) -> None:
    """Keep what is under the key, and its time no more: or it would come again and again."""
    value = entries.get(key)
    if value is not None:
        entries.put(key, value)
    else:
        entries.drop(key)


def _nobody(_tree: int, _node: int, _call: Call) -> NoReturn:
    raise AssertionError("an operator is asked for each computation itself")
