"""Finding the platform that runs on a data folder, without opening anything of it."""

from __future__ import annotations

from command import listening
from servioticy.embedded.folder import read_run
from servioticy.settings import Settings, changed


def of(settings: Settings) -> Settings:
    """Return the settings, completed by what runs on their data folder, if anything does.

    What a setting names explicitly is left as it is: it may mean another platform.
    """
    facts = read_run(settings.data_path) or {}
    names = list(listening.FACTS)
    if not settings.store.dsn:
        names.append("dsn")
    if not settings.log.bootstrap_servers:
        names.append("bootstrap_servers")
    return changed(settings, **{name: facts[name] for name in names if name in facts})
