"""A fresh API on an empty Postgres for every test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from api_builders import NOW, Caller, Platform, Served, SwitchedDatabase
from token_issuer import OIDC, TokenIssuer

from api.app import create_app
from sandbox.text import argument_names
from servioticy.identity.addresses import AddressesOfPersons
from servioticy.settings import Settings, changed


@pytest.fixture(scope="session")
def database(session_dsn: str) -> Iterator[SwitchedDatabase]:
    found = SwitchedDatabase(session_dsn)
    yield found
    found.close()


@pytest.fixture
def issuer() -> TokenIssuer:
    return TokenIssuer()


@pytest.fixture
def backend(database: SwitchedDatabase, issuer: TokenIssuer) -> Platform:
    platform = Platform(database)
    addresses = AddressesOfPersons(platform.ports.addresses, issuer.tokens(), clock=issuer.clock)
    platform.ports = replace(platform.ports, addresses=addresses)
    return platform


@pytest.fixture
def served(backend: Platform) -> Served:
    settings = changed(Settings(), read_wait_seconds=0.02, max_body_bytes=20_000, **OIDC)
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


@pytest.fixture
def alice(served: Served) -> Caller:
    return served.tenant("alice")


@pytest.fixture
def bob(served: Served) -> Caller:
    return served.tenant("bob")
