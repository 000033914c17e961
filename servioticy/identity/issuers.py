"""Builds what knows persons from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from servioticy.domain.persons import MAX_ISSUER, is_name
from servioticy.errors import SettingsError
from servioticy.ports.addresses import Addresses, StoredAddresses
from servioticy.settings.outward import Identity

if TYPE_CHECKING:
    from servioticy.identity.logins import Client

OURS = frozenset(
    {
        *(
            "client_id",
            "client_secret",
            "scope",
            "response_type",
            "redirect_uri",
            "state",
            "nonce",
        ),
        *("code", "code_challenge", "code_challenge_method", "code_verifier", "grant_type"),
        *("refresh_token", "response_mode"),
    }
)
"""Parameters that are not for the setting to choose."""


def with_persons(stored: StoredAddresses, chosen: Identity) -> Addresses:
    """Return the addresses, with those of persons where the settings name an issuer of tokens.

    From then on its keys are asked for. Raises SettingsError.
    """
    if not chosen.issuers.split():
        if chosen.client:
            raise SettingsError("oidc_client is set, so oidc_issuers has to be: where it is known")
        return stored
    # Slow to import, and not needed where no issuer is known.
    from servioticy.identity.addresses import AddressesOfPersons
    from servioticy.identity.fetching import fetch, is_safe
    from servioticy.identity.keys import IssuerKeys
    from servioticy.identity.logins import Login, Said
    from servioticy.identity.tokens import Rules, Tokens

    if not chosen.audience:
        raise SettingsError("oidc_issuers is set, so oidc_audience has to be: who tokens are for")
    for issuer in chosen.issuers.split():
        if not is_name(issuer, MAX_ISSUER) or not is_safe(issuer):
            raise SettingsError(f"setting oidc_issuers: {issuer!r} is no https:// address")
    first, *others = chosen.issuers.split()
    said = Said(first)
    keys = {first: IssuerKeys(first, partial(fetch, first, said.learn))}
    keys |= {each: IssuerKeys(each, partial(fetch, each)) for each in others}
    client = _client(chosen)
    for each in keys.values():
        each.start()
    types = frozenset(chosen.token_types.lower().split())
    rules = Rules(chosen.audience, chosen.tenant_claim, types, chosen.leeway_seconds)
    login = None if client is None else Login(keys[first], client, said)
    return AddressesOfPersons(stored, Tokens(keys, rules), chosen.default_tenant, login=login)


def _client(chosen: Identity) -> Client | None:
    """Return what we are at the issuer; None: nobody signs in by it. Raises SettingsError."""
    if not chosen.client:
        return None
    from servioticy.identity.logins import Client

    if "openid" not in chosen.scope.split():
        raise SettingsError("setting oidc_scope: openid is missing, which asks who somebody is")
    scope = " ".join(chosen.scope.split())
    return Client(chosen.client, chosen.client_secret, scope, _parameters(chosen.parameters))


def _parameters(text: str) -> Mapping[str, str]:
    """Return the parameters of a query. Raises SettingsError."""
    try:
        found = dict(parse_qsl(text, strict_parsing=True)) if text else {}
    except ValueError as error:
        raise SettingsError(f"setting oidc_parameters: it is no query: {error}") from error
    if taken := OURS & found.keys():
        raise SettingsError(f"setting oidc_parameters: {min(taken)} is not to be chosen")
    return found
