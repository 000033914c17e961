"""The codes: what can be wrong with a document, each with a sentence (docs/rest/errors.md).

A code is a short word that stays the same while messages may change, for programs that
handle one error other than another.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_meanings: dict[str, str] = {}

CODES: Mapping[str, str] = MappingProxyType(_meanings)
"""All codes: the word, and the sentence that says what it means."""


def _code(word: str, meaning: str) -> str:
    _meanings[word] = meaning
    return word


NOT_JSON = _code("not-json", "What was sent is not valid JSON.")
NOT_CSV = _code(
    "not-csv", "What was sent is not valid CSV, or a row of it has too few or many cells."
)
HAS_NUL = _code("has-nul", "A text has a NUL in it, which no text of a tenant may have.")
TOO_NESTED = _code("too-nested", "Arrays and objects are nested in more than 254 levels.")
REQUIRED = _code("required", "Something that has to be there is not.")
WRONG_TYPE = _code("wrong-type", "The value is of another type than it has to be.")
BAD_NAME = _code(
    "bad-name", "The name is blank, too long, or has a slash or control character in it."
)
DUPLICATE = _code("duplicate", "The name is used twice.")
TOO_MUCH = _code("too-much", "There is more of something than a document may hold.")
TOO_SLOW = _code("too-slow", "It takes too long to understand the document or to check its code.")
CHANNEL_TYPE = _code(
    "channel-type", "Channels have no such type, or this channel has to have another one."
)
MIXED_CHANNELS = _code("mixed-channels", "Some channels of a stream have code, others do not.")
NO_CHOICE = _code("no-choice", "The option does not offer this value.")
BAD_WINDOW = _code(
    "bad-window",
    "The window has a key that its type has not, or one that does not fit the others.",
)
BAD_OPERATOR = _code(
    "bad-operator",
    "A stream that a program computes has a key that means nothing beside it, or code.",
)
UNKNOWN_OPERATOR = _code(
    "unknown-operator", "There is no such version of the program, or it may not be used."
)
BAD_DURATION = _code(
    "bad-duration", "The duration is not written like `30s`, or is too short or too long."
)
BAD_CODE = _code("bad-code", "The code is not of the form it has to be, or not allowed.")
BAD_REFERENCE = _code("bad-reference", "The reference is not a JSONPath that can be followed.")
ALIAS_CYCLE = _code("alias-cycle", "Aliases stand for each other in a circle.")
UNKNOWN_SOURCE = _code(
    "unknown-source", "Code names what is neither a stream nor a group of the document."
)
INCOMPLETE_GROUP = _code("incomplete-group", "A group lacks `soIds` or `stream`.")
UNKNOWN_SERVICE_OBJECT = _code(
    "unknown-service-object", "A group names a Service Object that does not exist."
)
UNKNOWN_STREAM = _code(
    "unknown-stream",
    "A group names a stream that one of its members lacks, or a batch one that is not yours.",
)
UNKNOWN_ACTION = _code("unknown-action", "A composite asks for an action that there is not.")
UNKNOWN_CHANNEL = _code("unknown-channel", "The stream does not declare the channel.")
TOO_FAR_AHEAD = _code("too-far-ahead", "The timestamp is too far ahead of the platform's clock.")
BAD_PARAMETER = _code(
    "bad-parameter", "A parameter of a template is declared, used or given as it may not be."
)
BAD_CONDITION = _code("bad-condition", "A condition of a group is not one that can be asked for.")
BAD_LINK = _code(
    "bad-link",
    "A link of a workflow leads nowhere, in a circle, or between atoms of other types.",
)
NOT_UNDERSTOOD = _code(
    "not-understood", "This release does not understand the stored version any more."
)
