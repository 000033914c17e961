"""Asks an issuer for its keys: what it says of itself, and then where that says the keys are.

Beside the client the only importer of httpx.
"""

from __future__ import annotations

import asyncio
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


def fetch(issuer: str) -> list[PublicKey]:
    """Return the keys of an issuer. Raises Unavailable, with the reason."""
    return asyncio.run(_in_time(issuer))


async def _in_time(issuer: str) -> list[PublicKey]:
    # The time limits of httpx begin anew with each byte that comes.
    try:
        async with asyncio.timeout(SECONDS), httpx.AsyncClient(timeout=SECONDS) as client:
            return await _keys(client, issuer)
    except TimeoutError as error:
        raise Unavailable(f"{issuer} takes longer than {SECONDS:g} seconds") from error


async def _keys(client: httpx.AsyncClient, issuer: str) -> list[PublicKey]:
    said = await _document(client, issuer.rstrip("/") + DISCOVERY)
    if not isinstance(said, dict) or said.get("issuer") != issuer:
        raise Unavailable(f"{issuer}{DISCOVERY} is about another issuer")
    place = said.get("jwks_uri")
    if not isinstance(place, str) or not is_safe(place, elsewhere=issuer.startswith("https:")):
        raise Unavailable(f"{issuer} names no https:// address of its keys")
    try:
        return read_keys(await _document(client, place))
    except ValueError as error:
        raise Unavailable(f"{place}: {error}") from error


async def _document(client: httpx.AsyncClient, url: str) -> object:
    """Return what JSON there is. Raises Unavailable."""
    found = bytearray()
    try:
        async with client.stream("GET", url, headers=_HEADERS) as answer:
            if answer.status_code != httpx.codes.OK:
                raise Unavailable(f"{url} answers {answer.status_code}")
            async for part in answer.aiter_bytes():
                found += part
                if len(found) > MAX_BYTES:
                    raise Unavailable(f"{url} has more than {MAX_BYTES} bytes")
        document: object = orjson.loads(found)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"{url}: {str(error) or type(error).__name__}") from error
    except orjson.JSONDecodeError as error:
        raise Unavailable(f"{url} is no JSON") from error
    return document


_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
