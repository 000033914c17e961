"""What sending with and without asyncio has in common; with both of them the user of httpx."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from servioticy.client import urls
from servioticy.client.answers import Answer
from servioticy.client.authorities import Authorities, believed
from servioticy.errors import ServioticyError, Unavailable

log = logging.getLogger("servioticy.client")
"""Where nobody has set it up, warnings go to standard error."""
TIMEOUT_SECONDS = 15.0


def options(url: str, token: str, timeout_seconds: float, ca: Authorities = "") -> dict[str, Any]:
    """Return how httpx reaches the API.

    A proxy for the internet has no business between us and this platform. Certificates are
    read only where somebody has to be trusted: that takes longer than a request. Raises
    ServioticyError where the address or the token cannot be one.
    """
    url = urls.api(url)
    return {
        "base_url": url,
        "headers": {"Authorization": urls.token(token), "Accept-Encoding": "identity"},
        "timeout": timeout_seconds,
        "trust_env": False,
        "verify": (believed(ca) or True) if url.startswith("https:") else False,
    }


def typed(body: bytes | None, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers, and with a body that is not called anything else that it is JSON."""
    return {"Content-Type": "application/json", **headers} if body is not None else {**headers}


def answer(found: httpx.Response) -> Answer:
    """Return what has come as a whole, and log what the platform warns of."""
    came = Answer(found.status_code, dict(found.headers), found.content)
    if found.request.method != "GET":
        for each in came.warnings():
            log.warning("warning: %s", each)
    return came


@contextmanager
def explained(method: str, path: str) -> Iterator[None]:
    """Tell what httpx raises in our words.

    Raises Unavailable where no whole answer comes, ServioticyError where the request itself
    cannot be sent.
    """
    try:
        yield
    except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
        raise ServioticyError(f"{method} {path} cannot be sent: {error}") from error
    except httpx.ConnectError as error:
        at = error.request.url
        raise Unavailable(
            f"nothing answers at {at.scheme}://{at.netloc.decode()}: is the platform running "
            f"(`servioticy up`)? {error}"
        ) from error
    except httpx.TransportError as error:
        raise Unavailable(str(error) or type(error).__name__) from error
