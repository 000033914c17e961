"""Asks an issuer: what it says of itself, where that says its keys are, and tokens for a code.

Beside the client the only importer of httpx.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import orjson

from servioticy.errors import Unavailable
from servioticy.identity.signatures import PublicKey, read_keys

DISCOVERY = "/.well-known/openid-configuration"
MAX_BYTES = 262_144
SECONDS = 10.0
"""For all that is asked, however slowly it comes."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
Tell = Callable[[Mapping[str, Any]], None]
"""Is told what an issuer says of itself."""
_Found = TypeVar("_Found")


def is_safe(url: object, *, elsewhere: bool = False) -> bool:
    """Tell whether nobody on the way can put keys of his own in: HTTPS, or this machine.

    What an issuer `elsewhere` names is not on this machine.
    """
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    is_here = parts.scheme == "http" and host in LOOPBACK
    return bool(host) and (parts.scheme == "https" or (is_here and not elsewhere))


def fetch(issuer: str, tell: Tell | None = None) -> list[PublicKey]:
    """Return the keys of an issuer. Raises Unavailable, with the reason."""
    return asyncio.run(_in_time(issuer, lambda client: _keys(client, issuer, tell)))


def post(
    url: str, form: Mapping[str, str], account: tuple[str, str] | None = None
) -> tuple[int, object]:
    """Send a form, as an account with its password; return the status and the JSON of the answer.

    None where that is none. Raises Unavailable.
    """
    sent: dict[str, Any] = {"data": dict(form)}
    if account is not None:
        sent["auth"] = httpx.BasicAuth(*account)
    status, body = asyncio.run(_in_time(url, lambda client: _answer(client, "POST", url, **sent)))
    try:
        return status, orjson.loads(body)
    except orjson.JSONDecodeError:
        return status, None


async def _in_time(whom: str, ask: Callable[[httpx.AsyncClient], Awaitable[_Found]]) -> _Found:
    # The time limits of httpx begin anew with each byte that comes.
    try:
        async with asyncio.timeout(SECONDS), httpx.AsyncClient(timeout=SECONDS) as client:
            return await ask(client)
    except TimeoutError as error:
        raise Unavailable(f"{whom} takes longer than {SECONDS:g} seconds") from error


async def _keys(client: httpx.AsyncClient, issuer: str, tell: Tell | None) -> list[PublicKey]:
    said = await _document(client, issuer.rstrip("/") + DISCOVERY)
    if not isinstance(said, dict) or said.get("issuer") != issuer:
        raise Unavailable(f"{issuer}{DISCOVERY} is about another issuer")
    place = said.get("jwks_uri")
    if not isinstance(place, str) or not is_safe(place, elsewhere=issuer.startswith("https:")):
        raise Unavailable(f"{issuer} names no https:// address of its keys")
    try:
        keys = read_keys(await _document(client, place))
    except ValueError as error:
        raise Unavailable(f"{place}: {error}") from error
    if tell is not None:
        tell(said)
    return keys


async def _document(client: httpx.AsyncClient, url: str) -> object:
    """Return what JSON there is. Raises Unavailable."""
    status, body = await _answer(client, "GET", url)
    if status != httpx.codes.OK:
        raise Unavailable(f"{url} answers {status}")
    try:
        document: object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unavailable(f"{url} is no JSON") from error
    return document


async def _answer(
    client: httpx.AsyncClient, method: str, url: str, **sent: Any
) -> tuple[int, bytes]:
    """Return what is answered: the status and all of the body. Raises Unavailable."""
    found = bytearray()
    try:
        async with client.stream(method, url, headers=_HEADERS, **sent) as answer:
            async for part in answer.aiter_bytes():
                found += part
                if len(found) > MAX_BYTES:
                    raise Unavailable(f"{url} has more than {MAX_BYTES} bytes")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"{url}: {str(error) or type(error).__name__}") from error
    return answer.status_code, bytes(found)


_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
