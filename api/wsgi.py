"""The application of one worker process, as its environment describes it."""

from __future__ import annotations

from flask import Flask

from api.app import create_app
from api.snippets import Snippets
from sandbox import SandboxPool
from servioticy import bootstrap
from servioticy.settings import load


def build() -> Flask:
    """Read the settings, connect, wire. Called once in each worker process."""
    settings = load()
    pool = SandboxPool(
        unprotected=settings.sandbox_protection == "any", engine=settings.sandbox_engine
    )
    snippets = Snippets(pool)
    return create_app(bootstrap.ports(settings), settings, check=snippets.problems)
