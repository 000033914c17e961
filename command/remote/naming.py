"""What the words of a command mean: a Service Object, or a stream, by ids or by names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from servioticy.errors import ServioticyError

if TYPE_CHECKING:
    from servioticy.client import Rest

ID = re.compile(r"[0-9]{13}[0-9a-f]{32}")
"""What the platform makes ids of; whatever looks otherwise is a name."""
MAX_TOLD = 20
PAGE = 1_000


def stream_of(names: Sequence[str], api: Rest) -> tuple[str, str]:
    """Return Service Object and stream that one or two words name.

    One is the name of a stream that only one Service Object has, or a Service Object that has
    only one stream. Raises ServioticyError where it cannot be said which is meant.
    """
    if len(names) == 2:
        return service_object(names[0], api), names[1]
    word = names[0]
    having = [] if ID.fullmatch(word) else list(api.find({"stream": word}, PAGE))
    if len(having) == 1:
        return str(having[0]["id"]), word
    if having:
        raise ServioticyError(
            f"{len(having)} Service Objects have a stream {word!r}; name one before it: "
            + _listed(_told(each) for each in having)
        )
    ids = _called(word, api)
    if not ids:
        raise ServioticyError(f"none of your streams and Service Objects has the name {word!r}")
    id_ = _only(word, ids)
    streams = list(api.read(id_).document.get("streams", {}))
    if len(streams) != 1:
        raise ServioticyError(
            f"{word!r} has these streams, name one behind it: {_listed(streams)}"
        )
    return id_, streams[0]


def object_or_stream(names: Sequence[str], api: Rest) -> tuple[str, str | None]:
    """Return a Service Object, and the stream of it where one is meant.

    One word is a Service Object before it is a stream. Raises ServioticyError.
    """
    if len(names) == 2:
        return stream_of(names, api)
    ids = _called(names[0], api)
    return (_only(names[0], ids), None) if ids else stream_of(names, api)


def service_object(wanted: str, api: Rest) -> str:
    """Return the id of a Service Object, of which this is the id or the name."""
    ids = _called(wanted, api)
    if not ids:
        raise ServioticyError(f"no Service Object of yours has the name {wanted!r}")
    return _only(wanted, ids)


def is_id(names: Sequence[str]) -> bool:
    """Tell whether nobody has to be asked what they mean."""
    return len(names) == 2 and ID.fullmatch(names[0]) is not None


def _called(wanted: str, api: Rest) -> list[str]:
    if ID.fullmatch(wanted):
        return [wanted]
    # The API looks for names with this text in them.
    found: Iterable[Mapping[str, Any]] = api.find({"name": wanted}, PAGE) if wanted else ()
    return sorted(str(each["id"]) for each in found if each["name"] == wanted)


def _only(wanted: str, ids: Sequence[str]) -> str:
    if len(ids) > 1:
        raise ServioticyError(
            f"{len(ids)} Service Objects have the name {wanted!r}; name one by its id: "
            + _listed(ids)
        )
    return ids[0]


def _told(found: Mapping[str, Any]) -> str:
    """Return the name, if it has one, and the id."""
    return f"{found['name']} ({found['id']})" if found["name"] else str(found["id"])


def _listed(found: Iterable[str]) -> str:
    every = list(found)
    more = f" and {len(every) - MAX_TOLD} more" if len(every) > MAX_TOLD else ""
    return ", ".join(every[:MAX_TOLD]) + more
