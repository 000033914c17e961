"""In which form a body is, and in which form an answer is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from flask import request

from servioticy.refusals import Refused

Kind = TypeVar("Kind")
UTF_8 = ("utf-8", "utf8", "us-ascii")
NOT_CLAIMED = "application/x-www-form-urlencoded"
"""What curl says of every body for which nobody named a type. No route takes forms.

A form that a browser posts across sites says so, too. It does no harm: there are no cookies, so
what a browser sends by itself carries no token, and where a route takes no token it takes a code
that whoever made the form would have to know.
"""


class UnsupportedMedia(Refused):
    """The body is in a form that the route does not take."""

    status = 415


class NotAcceptable(Refused):
    """The route has no answer in a form that the client takes."""

    status = 406


def sent(kinds: Mapping[str, Kind], default: str) -> Kind:
    """Return what belongs to the Content-Type of the body, that of `default` where none is.

    Raises UnsupportedMedia for another one, another encoding, or a compressed body.
    """
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("The body may not be compressed")
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    claimed = "" if request.mimetype == NOT_CLAIMED else request.mimetype
    found = kinds.get(claimed or default)
    if found is None or charset not in UTF_8:
        raise UnsupportedMedia(
            f"The Content-Type has to be one of {', '.join(kinds)}, in UTF-8, and is "
            f"{request.content_type or 'none':.100}: {_with_curl(default)}"
        )
    return found


def _with_curl(default: str) -> str:
    """Return how to say the right one, in the words of whoever tries the platform first."""
    named = f"-H 'Content-Type: {default}'"
    return f"curl {named}, or curl --json" if default == "application/json" else f"curl {named}"


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
