"""Which platform is asked, and with whose token."""

from __future__ import annotations

import argparse
import os
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from command import found
from servioticy import trust
from servioticy.client import urls
from servioticy.errors import ServioticyError, SettingsError
from servioticy.settings import Settings
from servioticy.settings.places import api_url, live_url

if TYPE_CHECKING:
    from servioticy.client import Answered, Rest

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
    from servioticy.client import Rest

    address = url(parsed, settings)
    return Rest(address, token(parsed), ca=believed(address, settings))


def believed(address: str, settings: Settings) -> ssl.SSLContext | str:
    """Return whose certificate is believed: of a platform that runs here its own.

    Raises SettingsError.
    """
    here = found.of(settings)
    if here.tls.certificate and address in (api_url(here), live_url(here)):
        return trust.own(here)
    return settings.tls.ca


def names(api: Rest) -> dict[str, list[str]]:
    """Return the ids of the tenant's Service Objects by their names."""
    ids: dict[str, list[str]] = {}
    for each in api.find(page_size=PAGE):
        if each["name"]:
            ids.setdefault(each["name"], []).append(each["id"])
    return ids


def in_words(error: Answered) -> str:
    """Return what the API said, with the place."""
    return f"{error.reason} (at {error.pointer})" if error.pointer else error.reason
