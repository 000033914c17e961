"""In which form a body is, and in which form an answer is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from flask import request

from api.http.errors import Refused

Kind = TypeVar("Kind")
UTF_8 = ("utf-8", "utf8", "us-ascii")


class UnsupportedMedia(Refused):
    """The body is in a form that the route does not take."""

    status = 415


class NotAcceptable(Refused):
    """The route has no answer in a form that the client takes."""

    status = 406


def sent(kinds: Mapping[str, Kind], default: str) -> Kind:
    """Return what belongs to the Content-Type of the body, that of `default` where there is none.

    Raises UnsupportedMedia for another one, another encoding, or a compressed body.
    """
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("The body may not be compressed")
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    found = kinds.get(request.mimetype or default)
    if found is None or charset not in UTF_8:
        raise UnsupportedMedia(f"The Content-Type has to be one of {', '.join(kinds)}, in UTF-8")
    return found


def wanted(formats: Mapping[str, Kind], types: Sequence[str]) -> Kind:
    """Return what `?format=` names, else what `Accept` likes best; the first where it is open.

    `types` are the content types of the formats, in their order. Raises NotAcceptable.
    """
    named = request.args.get("format")
    if named is not None:
        if named not in formats:
            raise NotAcceptable(f"The format has to be one of {', '.join(formats)}")
        return formats[named]
    if not request.accept_mimetypes:
        return next(iter(formats.values()))
    best = request.accept_mimetypes.best_match(types)
    if best is None:
        raise NotAcceptable(f"Accept has to allow one of {', '.join(types)}")
    return dict(zip(types, formats.values(), strict=True))[best]
