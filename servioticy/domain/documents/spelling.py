"""Keys that are almost words of the platform's: misspelt, they would be kept and mean nothing.

Asked of what is sent now and never of what is stored: what was accepted once stays understood.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from servioticy.domain.documents.codes import BAD_NAME, BAD_WINDOW
from servioticy.domain.documents.errors import WHOLE, Part
from servioticy.domain.documents.options import FIELDS

MAX_COMPARED = 30
"""Characters of a key that may resemble a word; the platform's own are half as long."""
LEAST_COMPARED = 4
"""Shorter keys resemble everything."""
LEAST_OF_PARAMETERS = 3
"""Known ones are short (`from`, `to`), and no tenant makes up others."""
MAX_PARAMETERS = 100
MAX_KEYS = 10_000
"""Keys of one document that are looked at; it may have ten times as many."""

DOCUMENT = (
    "streams",
    "groups",
    "actions",
    "aliases",
    "version",
    "public",
    "customFields",
    "dataTTL",
)
STREAM = (
    "channels",
    "pre-filter",
    "post-filter",
    "dataTTL",
    "window",
    "silent",
    "fold",
    "follow",
    "operator",
    *[each.encode_name for each in FIELDS],
)
OPERATOR_KEYS = ("name", "version", "inputs", "of")
OF_STREAMS = dict.fromkeys(
    ("window", "silent", "fold", "follow"), "stands beside a stream's channels"
)
OF_WINDOWS = dict.fromkeys(("emit", "lateness", "revisions"), "stands in a stream's window")
"""Words of windows, and where they mean something: nowhere else."""
CHANNEL = frozenset({"type", "unit", "current-value"})
GROUP = frozenset({"soIds", "stream", "where"})
UPDATE = ("channels", "lastUpdate")
VALUE = ("current-value", "unit")
SUBSCRIPTION = (
    "callback",
    "destination",
    "customFields",
    "format",
    "secret",
    "from",
    "delay",
    "expire",
)


def nearest(word: str, known: Collection[str], least: int = LEAST_COMPARED) -> str | None:
    """Return which of the known words this one resembles, if it is none of them.

    It does where both are the same but for case, hyphens and underscores, and one letter of
    each. Takes time linear in the length of the word, for any number of known ones.
    """
    if word in known or not least <= len(word) <= MAX_COMPARED:
        return None
    shorter = set(_shorter(_plain(word)))
    found = (each for each in known if not shorter.isdisjoint(_shorter_of_ours(each)))
    return min(found, key=lambda each: (abs(len(each) - len(word)), each), default=None)


def misspelt(names: Iterable[str], known: Collection[str]) -> str:
    """Return what to tell of the parameters of an address; nothing where none is misspelt.

    Like keys: one that resembles a known one which is not there itself. What stands behind a dot
    is the tenant's own word. The first hundred are looked at.
    """
    words = list(islice((name.partition(".")[0] for name in names), MAX_PARAMETERS))
    lacking = [each for each in known if each not in words]
    for word in words:
        meant = None if word in known else nearest(word, lacking, LEAST_OF_PARAMETERS)
        if meant is not None:
            return f"there is no parameter {word!r} here: did you mean {meant!r}?"
    return ""


def _plain(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")


def _shorter(word: str) -> Iterator[str]:
    """Yield the word, and it without one letter: for each."""
    yield word
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]


@lru_cache(maxsize=256)
def _shorter_of_ours(word: str) -> frozenset[str]:
    return frozenset(_shorter(_plain(word)))


def check_keys(content: Any, known: Collection[str], part: Part, most: int = MAX_KEYS) -> int:
    """Raise BadDocument for a key that resembles a known one which is not there itself.

    Returns how many keys were looked at, `most` at most.
    """
    if not isinstance(content, dict):
        return 0
    lacking = [each for each in known if each not in content]
    looked_at = 0
    for key in content if lacking else ():
        if key in known:
            continue
        looked_at += 1
        if looked_at > most:
            break
        meant = nearest(key, lacking)
        if meant is not None:
            reason = f"there is no {key!r}: did you mean {meant!r}?"
            raise part.at(key).bad(reason, BAD_NAME)
    return min(looked_at, most)


def check_document(document: dict[str, Any]) -> None:
    """Raise BadDocument for a misspelt key of a Service Object, among the first ones."""
    left = MAX_KEYS
    for content, known, elsewhere, part in _objects(document):
        _check_places(content, elsewhere, part)
        left -= check_keys(content, known, part, left)
        if left <= 0:
            return


def _check_places(content: Any, elsewhere: Mapping[str, str], part: Part) -> None:
    """Raise BadDocument for a word of windows that would mean nothing here."""
    if not isinstance(content, dict):
        return
    for key, where in elsewhere.items():
        if content.get(key) is not None:
            reason = f"{where}, and means nothing here"
            raise part.at(key, words=key).bad(reason, BAD_WINDOW)


def _objects(
    document: dict[str, Any],
) -> Iterator[tuple[Any, Collection[str], Mapping[str, str], Part]]:
    """Yield objects of a document that have words of ours, which, and which mean nothing there.

    Not those that have no other words.
    """
    of_all = OF_STREAMS | OF_WINDOWS
    yield document, DOCUMENT, of_all, WHOLE
    for name, group in _items(document.get("groups")):
        if _has_others(group, GROUP):
            yield group, GROUP, of_all, WHOLE.at("groups", name, words=f"group {name:.40}")
    for name, stream in _items(document.get("streams")):
        part = WHOLE.at("streams", name, words=f"stream {name:.40}")
        yield stream, STREAM, OF_WINDOWS, part
        for channel, content in _items(stream.get("channels") if isinstance(stream, dict) else 0):
            if _has_others(content, CHANNEL):
                place = part.at("channels", channel, words=f"channel {channel:.40}")
                yield content, CHANNEL, of_all, place


def _has_others(content: Any, known: frozenset[str]) -> bool:
    """Tell whether it has a key that is none of these: most channels have not."""
    return isinstance(content, dict) and not content.keys() <= known


def _items(content: Any) -> Iterator[tuple[str, Any]]:
    yield from content.items() if isinstance(content, dict) else ()
