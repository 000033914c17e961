"""The operator of what follows revisions: it finds inputs as they were at a revision's time.

What reads a result that is told again is computed again for that time. Whoever computes it is
given all its inputs with the revision, as code over windows is, so nobody but this operator looks
into history. It keeps how many revisions it has followed: that is the number of the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sandbox.revisions import Revision, revision_of
from sandbox.trees import Event
from servioticy.domain.evaluators.operators import Answer, Ends, Entries, Output, Step
from servioticy.domain.evaluators.past import Past, Unknown
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.verdicts import ERROR, MISSING
from servioticy.domain.windowed import FollowedBy

COUNT = b"n"
"""The key of how many revisions have been followed."""

MAX_STREAMS = 1000
"""Of one input, each of which is looked up."""


class Following:
    """The operator."""

    takes_answers = False

    def keys(self, _code: OperatorCode, _argument: int | None, _event: Event) -> Sequence[bytes]:
        """What every computation looks at."""
        return [COUNT]

    def step(self, step: Step, entries: Entries) -> Answer:
        """Gather the inputs as they were at the time of a revision."""
        document = step.trigger.document or b""
        revision = revision_of(document)
        if step.argument is None or step.past is None or revision is None:
            return Answer(kind="")
        found = [
            document if number == step.argument else _then(step.past, streams, step)
            for number, streams in enumerate(cast(FollowedBy, step.code.operator).inputs)
        ]
        if None in found and cast(FollowedBy, step.code.operator).skips:
            raise Ends(MISSING, "an input had no update yet")
        number = int(entries.get(COUNT) or b"0") + 1
        entries.put(COUNT, b"%d" % number)
        return Answer([Output(step.trigger.timestamp, _brought(found, step, number, revision))])


def _then(past: Past, streams: Sequence[str], step: Step) -> bytes | None:
    """What an input was then; None: there was nothing. Raises Ends."""
    if len(streams) > MAX_STREAMS:
        reason = f"an input of more than {MAX_STREAMS} streams is not looked up as it was"
        raise Ends(ERROR, reason)
    try:
        found = past.newest(streams, step.trigger.timestamp)
    except Unknown:
        reason = "what an input was then is not known here: it is another tenant's"
        raise Ends(ERROR, reason) from None
    return None if found is None else found.document


def _brought(found: Sequence[bytes | None], step: Step, number: int, revision: Revision) -> bytes:
    """All inputs, as code that is brought them reads them."""
    windows = b",".join([b"null" if each is None else b'{"value":%b}' % each for each in found])
    mark = b',"retracted":true' if revision.retracted else b""
    form = b'{"windows":[%b],"argument":%d,"lastUpdate":%d,"revision":%d%b}'
    return form % (windows, step.argument or 0, step.trigger.timestamp, number, mark)
