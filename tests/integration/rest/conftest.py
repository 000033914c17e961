"""A fresh API on an empty Postgres for every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from api_builders import NOW, Caller, Platform, Served, SwitchedDatabase, trials
from token_issuer import OIDC, TokenIssuer
from werkzeug.routing import Rule

from api.app import create_app
from api.http.read_after_write import ReadAfterWrite
from sandbox.text import argument_names
from servioticy.identity.addresses import AddressesOfPersons
from servioticy.ports.history import History
from servioticy.ports.log import Log
from servioticy.settings import Settings, changed

READ_SECONDS = 0.02


@pytest.fixture(autouse=True, scope="session")
def _routes_are_compiled_once() -> Iterator[None]:
    """Werkzeug compiles two functions a route: three quarters of the making of an application."""
    compile_, known = Rule._compile_builder, {}

    def compiled(rule: Rule, append_unknown: bool = True) -> Callable[..., Any]:
        key = (rule.rule, repr(rule.defaults), append_unknown)
        if key not in known:
            known[key] = compile_(rule, append_unknown)
        return known[key]

    with mock.patch.object(Rule, "_compile_builder", compiled):
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_read_waits_long_for_a_pipeline() -> Iterator[None]:
    """None stores here by itself: a read of what was sent would wait for its whole second."""
    begin = ReadAfterWrite.__init__

    def quickly(reads: ReadAfterWrite, history: History, log: Log, seconds: float) -> None:
        begin(reads, history, log, min(seconds, READ_SECONDS))

    with mock.patch.object(ReadAfterWrite, "__init__", quickly):
        yield


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
def served(backend: Platform, tmp_path: Path) -> Served:
    settings = changed(
        Settings(),
        data=str(tmp_path / "data"),
        max_body_bytes=20_000,
        operator_tenant="examples",
        operators_protection="any",
        **OIDC,
    )
    app = create_app(backend.ports, settings, lambda: NOW, argument_names, trials=trials(backend))
    return Served(app, backend)


@pytest.fixture
def alice(served: Served) -> Caller:
    return served.tenant("alice")


@pytest.fixture
def bob(served: Served) -> Caller:
    return served.tenant("bob")
