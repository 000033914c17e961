"""Builds what knows persons from the settings."""

from __future__ import annotations

from functools import partial

from servioticy.domain.persons import MAX_ISSUER, is_name
from servioticy.errors import SettingsError
from servioticy.ports.addresses import Addresses, StoredAddresses
from servioticy.settings.outward import Identity


def with_persons(stored: StoredAddresses, chosen: Identity) -> Addresses:
    """Return the addresses, with those of persons where the settings name an issuer of tokens.

    From then on its keys are asked for. Raises SettingsError.
    """
    if not chosen.issuers.split():
        return stored
    # Slow to import, and not needed where no issuer is known.
    from servioticy.identity.addresses import AddressesOfPersons
    from servioticy.identity.fetching import fetch, is_safe
    from servioticy.identity.keys import IssuerKeys
    from servioticy.identity.tokens import Rules, Tokens

    if not chosen.audience:
        raise SettingsError("oidc_issuers is set, so oidc_audience has to be: who tokens are for")
    for issuer in chosen.issuers.split():
        if not is_name(issuer, MAX_ISSUER) or not is_safe(issuer):
            raise SettingsError(f"setting oidc_issuers: {issuer!r} is no https:// address")
    keys = {each: IssuerKeys(each, partial(fetch, each)) for each in chosen.issuers.split()}
    for each in keys.values():
        each.start()
    types = frozenset(chosen.token_types.lower().split())
    rules = Rules(chosen.audience, chosen.tenant_claim, types, chosen.leeway_seconds)
    return AddressesOfPersons(stored, Tokens(keys, rules), chosen.default_tenant)
