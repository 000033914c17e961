"""Settings as they are on the machine that computes.

The driver hands its settings to every task. What they say of folders and files is true on its own
machine; a worker of `servioticy spark` has its own in its environment.
"""

from __future__ import annotations

import os

from servioticy.settings import Settings, changed, load
from servioticy.settings.declared import DECLARED
from servioticy.settings.loading import by_name

OWN_PLACES = "SERVIOTICY_SPARK_WORKER"
"""Environment variable: the settings beside it say where things are here."""


def here(settings: Settings) -> Settings:
    """Return the driver's settings, with the places of this machine where it has its own."""
    if not os.environ.get(OWN_PLACES):
        return settings
    own = by_name(load())
    return changed(settings, **{name: own[name] for name, each in DECLARED.items() if each.place})
