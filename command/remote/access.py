"""Which platform is asked, with whose token, and which Service Object a name means."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from collections.abc import Iterable

from servioticy.client import Answered, AsyncRest, NotFound, Rest, ServiceObject
from servioticy.errors import ServioticyError, SettingsError
from servioticy.settings import Settings

ID = re.compile(r"[0-9]{13}[0-9a-f]{32}")
"""What the platform makes ids of; whatever looks otherwise is a name."""
READ_AT_ONCE = 16
PAGE = 1_000


def token(parsed: argparse.Namespace) -> str:
    """Return the token that was given. Raises SettingsError where none was."""
    found: str = parsed.token or os.environ.get("SERVIOTICY_TOKEN", "")
    if not found:
        raise SettingsError("no token: give --token, or set SERVIOTICY_TOKEN")
    return found


def url(parsed: argparse.Namespace, settings: Settings) -> str:
    """Return where the API is: as given, else that of the platform on the data folder."""
    from command import running
    from servioticy.settings.places import reachable

    given: str = parsed.url or os.environ.get("SERVIOTICY_URL", "")
    if given:
        return given.rstrip("/")
    found = running.of(settings)
    host = reachable(found.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{found.api.port}"


def rest(parsed: argparse.Namespace, settings: Settings) -> Rest:
    """Return a client of the platform that the options mean."""
    return Rest(url(parsed, settings), token(parsed))


def names(api: Rest) -> dict[str, list[str]]:
    """Return the ids of the tenant's Service Objects by their names."""
    found: dict[str, list[str]] = {}
    for each in api.find(page_size=PAGE):
        if each["name"]:
            found.setdefault(each["name"], []).append(each["id"])
    return found


def read_all(
    ids: Iterable[str], parsed: argparse.Namespace, settings: Settings
) -> list[ServiceObject]:
    """Return these Service Objects, read several at once; none that are gone meanwhile."""
    return asyncio.run(_read_all(ids, url(parsed, settings), token(parsed)))


def service_object(wanted: str, api: Rest) -> str:
    """Return the id of a Service Object, of which this is the id or the name."""
    if ID.fullmatch(wanted):
        return wanted
    # The API looks for names with this text in them.
    ids = [each["id"] for each in api.find({"name": wanted}) if each["name"] == wanted]
    if len(ids) == 1:
        return str(ids[0])
    if not ids:
        raise ServioticyError(f"no Service Object of yours has the name {wanted!r}")
    raise ServioticyError(
        f"{len(ids)} Service Objects have the name {wanted!r}; name one by its id: "
        + ", ".join(sorted(ids)[:20])
    )


async def _read_all(ids: Iterable[str], address: str, its_token: str) -> list[ServiceObject]:
    turns = asyncio.Semaphore(READ_AT_ONCE)
    async with AsyncRest(address, its_token) as api:

        async def read(id_: str) -> ServiceObject | None:
            async with turns:
                try:
                    return await api.read(id_)
                except NotFound:  # deleted since the list was read
                    return None

        found = await asyncio.gather(*map(read, ids))
    return [each for each in found if each is not None]


def in_words(error: Answered) -> str:
    """Return what the API said, with the place."""
    return f"{error.reason} (at {error.pointer})" if error.pointer else error.reason
