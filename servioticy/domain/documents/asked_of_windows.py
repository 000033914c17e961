"""What the code of a document asks of windows that windows do not have: told, not refused.

Code is only looked through for it, not understood, so a comment may be taken for a question. A
real one is answered by nothing, which a computation may take for a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from servioticy.domain.documents.functions import TRIGGER
from servioticy.domain.model import Composite, Definition, Input, StreamRef
from servioticy.domain.windows.model import Silence, Window

SHOWN = 40
"""Characters of a word that are told."""

OF_CHANNELS = ("sum", "mean", "min", "max", "stdev", "first", "last", "counts")
"""What windows have under the names of channels, in both dialects."""
OF_ALL = ("count", "start", "end", "early", "updates")
OF_FUNCTIONS = ("quantile", "by")
OF_SILENCE = ("silent", "stream", "count", "start", "end")

_ASKED = re.compile(
    r"(?<![\w$.])([A-Za-z_$][\w$]*+)\s*+(?:\?\.|\.)\s*+([A-Za-z_$][\w$]*+)"
    r"(?:\s*+\(\s*+(?:'([^'\\\n]*+)'|\"([^\"\\\n]*+)\"))?+"
)
"""An input, what is asked of it, and the text that this is given."""
_TRIGGER = re.compile(r"(?<![\w$.])" + re.escape(TRIGGER) + r"(?![\w$])")


class _Asked(NamedTuple):
    """As code has it."""

    text: str
    source: str
    word: str
    channel: str | None


def asked_of_windows(definition: Definition) -> Iterator[str]:
    """Yield a sentence for each thing that a stream asks of its windows in vain."""
    channels = {
        each.ref: {channel.name for channel in each.channels} for each in definition.streams
    }
    for stream in definition.streams:
        if stream.composite is not None and stream.composite.window is not None:
            for said in _of_stream(stream.composite, channels):
                yield f"stream {stream.ref.stream}: {said}"


def _of_stream(composite: Composite, channels: Mapping[StreamRef, set[str]]) -> Iterator[str]:
    is_silence = isinstance(composite.window, Silence)
    has = OF_SILENCE if is_silence else (*OF_ALL, *OF_CHANNELS, *_more(composite))
    what = "what is told of silence" if is_silence else "a window"
    inputs = {each.name: each for each in composite.inputs}
    for asked in dict.fromkeys(_asked(composite)):
        source = inputs.get(asked.source)
        if source is None:
            continue
        if asked.word not in has:
            words = ", ".join(has)
            yield f"{_short(asked.text)}: {what} has {words}, and no {_short(asked.word)!r}"
        elif asked.channel is not None and _lacks(source, asked.channel, channels):
            yield f"{_short(asked.text)}: {source.name} has no channel {_short(asked.channel)!r}"
    if any(_TRIGGER.search(each) for each in _codes(composite)):
        yield f"there is no {TRIGGER} beside {'silent' if is_silence else 'window'}: name an input"


def _more(composite: Composite) -> tuple[str, ...]:
    return OF_FUNCTIONS if composite.dialect == "function" else ()


def _asked(composite: Composite) -> Iterator[_Asked]:
    for each in composite.references:
        match each.path:
            case (str(word), str(channel), *_) if word in OF_CHANNELS:
                yield _Asked(f"{{${each.source}.{word}.{channel}}}", each.source, word, channel)
            case (str(word), *_):
                yield _Asked(f"{{${each.source}.{word}}}", each.source, word, None)
    if composite.dialect == "function":
        for code in _codes(composite):
            for source, word, single, double in _ASKED.findall(code):
                yield _Asked(f"{source}.{word}", source, word, single or double or None)


def _codes(composite: Composite) -> Iterator[str]:
    window = composite.window
    when = window.when if isinstance(window, Window) else None
    codes = (*(each.code for each in composite.channels), composite.pre_filter, when)
    yield from (each for each in (*codes, composite.post_filter) if each is not None)


def _lacks(source: Input, channel: str, channels: Mapping[StreamRef, set[str]]) -> bool:
    """Whether all that it reads is of this document, and nothing there has the channel."""
    return all(member in channels and channel not in channels[member] for member in source.members)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
