"""The verdicts: how a computation can end, each with a sentence (docs/glossary.md).

A verdict is a short word, stored with the number of computations that ended so. Those of
code that has run, or that was not let run, come from the sandbox (`sandbox.program`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_meanings: dict[str, str] = {}

VERDICTS: Mapping[str, str] = MappingProxyType(_meanings)
"""All verdicts: the word, and the sentence that says what it means."""


def _verdict(word: str, meaning: str) -> str:
    _meanings[word] = meaning
    return word


EMITTED = _verdict("emitted", "It made an update, which is stored and sent to subscribers.")
STALE = _verdict(
    "stale", "The trigger is not newer than what the option `staleness` compares it with."
)
COLLECTED = _verdict(
    "collected", "An operator has taken it into what it keeps, and nothing comes out yet."
)
LATE = _verdict(
    "late", "Every window that it would be in has ended; the update itself is stored all the same."
)
UNANSWERED = _verdict(
    "unanswered",
    "So many updates wait already for the program that computes the stream that no more may.",
)
ABANDONED = _verdict(
    "abandoned",
    "Windows that were open when a version with other windows or inputs came into force "
    "ended with nothing.",
)
FILTERED = _verdict(
    "filtered",
    "A filter is false, the value of a function is null, or a program makes nothing of it.",
)
SCRIPT_ERROR = _verdict("script-error", "The code threw an error.")
ERROR = _verdict(
    "error",
    "A value does not fit its channel's type, inputs or output are too large, or the program "
    "that computes the stream has failed.",
)
TIMEOUT = _verdict("timeout", "The code ran longer than it may.")
OOM = _verdict("oom", "The code needed more memory than it may.")
CRASH = _verdict("crash", "The process that ran the code ended.")
SUSPENDED = _verdict(
    "suspended", "The code is not run for a while, because it ended too many processes."
)
POLICY = _verdict("policy", "The code uses what is not allowed, or could not be checked.")
SYNTAX = _verdict("syntax", "The code is not JavaScript of the form that its dialect asks for.")
SUPERSEDED = _verdict(
    "superseded", 'With `diamonds: "settle"`: a later path of the same tree computes.'
)
MISSING = _verdict("missing", 'With `missing: "skip"`: an input has no update yet.')
HOP_LIMIT = _verdict(
    "hop-limit",
    "It is more than `max_hops` composites and borders deep in its tree, or more than eight of "
    "these are borders between tenants.",
)
COMPUTATION_LIMIT = _verdict(
    "computation-limit", "Its tenant has had `max_computations` of the tree already."
)
SIZE_LIMIT = _verdict(
    "size-limit", "Its tenant's outputs of the tree have `max_tree_bytes` already."
)
TIME_LIMIT = _verdict(
    "time-limit",
    "Its tenant's code has run for `max_tree_script_ms` in the tree already.",
)
REVOKED = _verdict(
    "revoked",
    "What it reads of another tenant is private or gone from here on, or the grant of it has "
    "ended; such updates wake it no more.",
)
BEHIND = _verdict(
    "behind",
    "The update is another tenant's, and more records of its own tenant wait to be computed "
    "than may.",
)
OVER_QUOTA = _verdict(
    "over-quota",
    "Its tenant has used up its quota of computations or of processor time of the hour, or of "
    "stored bytes, and the update is another's.",
)

RAN = frozenset({EMITTED, FILTERED, SCRIPT_ERROR, ERROR, TIMEOUT, OOM, CRASH})
"""The verdicts of computations whose code has run."""
