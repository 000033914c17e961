"""Stage 4: store what came out, in one transaction with its progress, then emit it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter

from pipeline.growth import Finished, Verdict
from pipeline.stages import rows
from pipeline.state.base import Base
from pipeline.state.batch import BatchState
from pipeline.work import Work
from servioticy.domain.emissions import Emission
from servioticy.domain.records import read_emitted
from servioticy.errors import Unavailable
from servioticy.ports.batches import Batch
from servioticy.ports.borders import Crossing
from servioticy.ports.output import Output

log = logging.getLogger("servioticy.pipeline")


MANY_LATE = 1000
LATE_AT_ONCE = 100
LATE_PAUSE_SECONDS = 0.003
"""Of so many records that come out late, those that go together, and the pause, while others are
active: delivery reads one record after the other, and what they emit is not to stand behind
thousands."""


def emit(
    states: Sequence[BatchState],
    endings: Iterable[Verdict],
    work: Work,
    base: Base,
    output: Output,
) -> Iterator[None]:
    """Store what follows from this stretch of the log and send it to subscribers.

    That is what its pieces have made, and `endings` beside theirs. Raises Fenced where another
    worker has the partition: then nothing is stored. What comes late is stored when this returns,
    and sent by who goes through what is returned, some of it with each step. The steps raise
    Unavailable, whatever goes wrong: what is stored must not be stored again, and is emitted from
    the store where the partition is begun anew.
    """
    new, last_updates, inputs, repeating, kept, gone = _finished(states)
    ended = [*endings, *chain.from_iterable([each.endings for each in states])]
    traces = work.traces
    emissions = rows.emissions(new, traces)
    crossings = rows.crossings(new, base.number, work.held, work.times, traces)
    if repeating or gone:
        # An earlier one of the same stream and timestamp may be on its way; stored over it,
        # this would take its place where it is emitted again from.
        output.flush()
    replaced = base.commit(
        lambda begun: Batch(
            base.number,
            begun.offset,
            work.end.offset,
            output.acknowledged,
            [*rows.updates(new, repeating), *rows.taken_back(gone)],
            rows.states(last_updates),
            rows.verdicts(ended),
            {each.source: each.next_offset for each in work.forwarded},
            put_off=work.put_off,
            taken_up=[each.key for each in work.late],
            inputs=rows.inputs(inputs),
            kept=rows.kept(kept),
            marks=work.marks,
            crossings=crossings,
            first_tree=begun.tree,
            next_tree=work.end.tree,
        )
    )
    base.remember(last_updates)
    base.remember(inputs)
    base.accounts.note(new, ended, replaced, gone)
    base.accounts.note_kept(kept)
    if work.late:
        return _sending(work, emissions, crossings, base, output)
    with _unavailable():
        send(output, work.end.offset, emissions, crossings)
    return iter(())


def _finished(states: Sequence[BatchState]) -> Finished:
    """All that pieces of several tenants have made, in order of the log."""
    if len(states) == 1:
        return states[0].finish()
    some = [each.finish() for each in states]
    return Finished(
        sorted(chain.from_iterable([each.rows for each in some]), key=itemgetter(3)),
        {stream: last for each in some for stream, last in each.last_updates.items()},
        {stream: last for each in some for stream, last in each.inputs.items()},
        frozenset().union(*[each.repeating for each in some]),
        list(chain.from_iterable([each.kept for each in some])),
        list(chain.from_iterable([each.gone for each in some])),
    )


def send(
    output: Output,
    next_offset: int,
    emissions: Sequence[Emission],
    crossings: Sequence[Crossing] = (),
) -> None:
    """Send what was made from the log before this offset. Raises Unavailable.

    It is stored, so nothing may hold up what follows: where the client fails with anything
    else, the records are sent one by one, and those it fails with again are left out, with
    an event that names each. They can be read from the history.
    """
    try:
        output.emit(next_offset, emissions, crossings)
        return
    except Unavailable:
        raise
    except Exception:
        log.exception("emission_failed", extra={"records": len(emissions)})
    for key, value in emissions:
        try:
            output.emit(output.acknowledged, [(key, value)])
        except Unavailable:
            raise
        except Exception:
            log.exception(
                "emission_given_up",
                extra={
                    "stream": key.decode(),
                    "timestamp": read_emitted(value).timestamp,
                    "bytes": len(value),
                },
            )
    output.emit(next_offset, (), crossings)


def _sending(
    work: Work,
    emissions: Sequence[Emission],
    crossings: Sequence[Crossing],
    base: Base,
    output: Output,
) -> Iterator[None]:
    """Send what has come late, and give way to others between two parts of it."""
    end = work.end.offset
    is_sparing = base.spares_others and len(emissions) > MANY_LATE
    at_once = LATE_AT_ONCE if is_sparing else max(1, len(emissions))
    for first in range(0, len(emissions), at_once):
        with _unavailable():
            send(output, end, emissions[first : first + at_once])
            output.flush()
        if first + at_once < len(emissions):
            yield
            time.sleep(LATE_PAUSE_SECONDS)
    with _unavailable():
        if crossings:
            send(output, end, (), crossings)
            output.flush()
    # Their place in the log is behind: it cannot tell how far emission has come.
    base.emitted_late.extend(each.key for each in work.late)


@contextlib.contextmanager
def _unavailable() -> Iterator[None]:
    """Raise Unavailable, whatever goes wrong with what is stored."""
    try:
        yield
    except Unavailable:
        raise
    except Exception as error:
        log.exception("emission_failed")
        raise Unavailable(f"what is stored could not be emitted: {error}") from error
