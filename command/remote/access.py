"""Which platform is asked, and with whose token."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Iterable

from command import found
from servioticy.client import Answered, AsyncRest, NotFound, Rest, ServiceObject, urls
from servioticy.errors import ServioticyError, SettingsError
from servioticy.settings import Settings
from servioticy.settings.places import api_url, live_url

READ_AT_ONCE = 16
PAGE = 1_000


def token(parsed: argparse.Namespace) -> str:
    """Return the token that was given. Raises SettingsError where none was."""
    given: str = parsed.token or os.environ.get("SERVIOTICY_TOKEN", "")
    if not given:
        raise SettingsError("no token: give --token, or set SERVIOTICY_TOKEN")
    return given


def url(parsed: argparse.Namespace, settings: Settings) -> str:
    """Return where the API is: as given, else that of the platform on the data folder.

    Raises SettingsError where what was given is no address.
    """
    return _given(parsed.url, "--url", "SERVIOTICY_URL", urls.api) or api_url(found.of(settings))


def urls_of_live(parsed: argparse.Namespace, settings: Settings) -> tuple[str, str]:
    """Return where delivery is, which is `--url` here, and the API. Raises SettingsError."""
    live = _given(parsed.url, "--url", "SERVIOTICY_LIVE_URL", urls.live)
    api = _given(None, "", "SERVIOTICY_URL", urls.api)
    here = found.of(settings)
    return live or live_url(here), api or api_url(here)


def _given(option: str | None, name: str, variable: str, checked: Callable[[str], str]) -> str:
    """Return the address in the option, else in the environment, else nothing."""
    named, text = (variable, os.environ.get(variable, "")) if option is None else (name, option)
    if not text and option is None:
        return ""
    try:
        return checked(text)
    except ServioticyError as error:
        raise SettingsError(f"{named}: {error}") from None


def rest(parsed: argparse.Namespace, settings: Settings) -> Rest:
    """Return a client of the platform that the options mean."""
    return Rest(url(parsed, settings), token(parsed))


def names(api: Rest) -> dict[str, list[str]]:
    """Return the ids of the tenant's Service Objects by their names."""
    ids: dict[str, list[str]] = {}
    for each in api.find(page_size=PAGE):
        if each["name"]:
            ids.setdefault(each["name"], []).append(each["id"])
    return ids


def read_all(
    ids: Iterable[str], parsed: argparse.Namespace, settings: Settings
) -> list[ServiceObject]:
    """Return these Service Objects, read several at once; none that are gone meanwhile."""
    return asyncio.run(_read_all(ids, url(parsed, settings), token(parsed)))


async def _read_all(ids: Iterable[str], address: str, its_token: str) -> list[ServiceObject]:
    turns = asyncio.Semaphore(READ_AT_ONCE)
    async with AsyncRest(address, its_token) as api:

        async def read(id_: str) -> ServiceObject | None:
            async with turns:
                try:
                    return await api.read(id_)
                except NotFound:  # deleted since the list was read
                    return None

        every = await asyncio.gather(*map(read, ids))
    return [each for each in every if each is not None]


def in_words(error: Answered) -> str:
    """Return what the API said, with the place."""
    return f"{error.reason} (at {error.pointer})" if error.pointer else error.reason
