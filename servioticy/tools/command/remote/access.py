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


def token(parsed: argparse.Namespace) -> str:
    """Return the token that was given. Raises SettingsError where none was."""
    found: str = parsed.token or os.environ.get("SERVIOTICY_TOKEN", "")
    if not found:
        raise SettingsError("no token: give --token, or set SERVIOTICY_TOKEN")
    return found


def url(parsed: argparse.Namespace, settings: Settings) -> str:
    """Return where the API is: as given, else that of the platform on the data folder."""
    from servioticy.tools.command import running
    from servioticy.tools.command.platform import reachable

    given: str = parsed.url or os.environ.get("SERVIOTICY_URL", "")
    if given:
        return given.rstrip("/")
    found = running.of(settings)
    host = reachable(found.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{found.api.port}"


def rest(parsed: argparse.Namespace, settings: Settings) -> Rest:
    """Return a client of the platform that the options mean."""
    return Rest(url(parsed, settings), token(parsed))


def all_objects(parsed: argparse.Namespace, settings: Settings) -> list[ServiceObject]:
    """Return all Service Objects of the tenant, read several at once."""
    return asyncio.run(_read_all(url(parsed, settings), token(parsed)))


def by_name(found: Iterable[ServiceObject]) -> dict[str, ServiceObject]:
    """Return them by their names; a name that several have is no name of any."""
    named: dict[str, list[ServiceObject]] = {}
    for each in found:
        name = each.document.get("name")
        if isinstance(name, str) and name:
            named.setdefault(name, []).append(each)
    return {name: each[0] for name, each in named.items() if len(each) == 1}


def service_object(wanted: str, parsed: argparse.Namespace, settings: Settings) -> str:
    """Return the id of a Service Object, of which this is the id or the name."""
    if ID.fullmatch(wanted):
        return wanted
    ids = [
        each.id for each in all_objects(parsed, settings) if each.document.get("name") == wanted
    ]
    if len(ids) == 1:
        return ids[0]
    if not ids:
        raise ServioticyError(f"no Service Object of yours has the name {wanted!r}")
    raise ServioticyError(
        f"{len(ids)} Service Objects have the name {wanted!r}; name one by its id: "
        + ", ".join(sorted(ids)[:20])
    )


async def _read_all(address: str, its_token: str) -> list[ServiceObject]:
    turns = asyncio.Semaphore(READ_AT_ONCE)
    async with AsyncRest(address, its_token) as api:

        async def read(id_: str) -> ServiceObject | None:
            async with turns:
                try:
                    return await api.read(id_)
                except NotFound:  # deleted since the list was read
                    return None

        found = await asyncio.gather(*map(read, await api.ids()))
    return [each for each in found if each is not None]


def in_words(error: Answered) -> str:
    """Return what the API said, with the place."""
    return f"{error.reason} (at {error.pointer})" if error.pointer else error.reason
