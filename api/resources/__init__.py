"""The routes, a file for each resource: whatever file has a `blueprint` is served."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from flask import Blueprint

from api.services import Services


def blueprints(services: Services) -> Iterator[Blueprint]:
    """Yield the blueprint of each resource of this folder."""
    for found in iter_modules(__path__, f"{__name__}."):
        resource = import_module(found.name)
        if hasattr(resource, "blueprint"):
            yield resource.blueprint(services)
