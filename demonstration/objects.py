"""The demonstration's tenant and its Service Objects: made once, kept in the data folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from demonstration import templates
from demonstration.series import UNITS
from servioticy import bootstrap, trust
from servioticy.client.answers import Answered
from servioticy.client.rest import Rest
from servioticy.embedded.folder import write_private
from servioticy.settings import Settings
from servioticy.settings.places import api_url
from servioticy.storage.roles import Role
from servioticy.storage.tenants import PostgresTenants

TENANT = "demonstration"
COMPOSITES = tuple(each.document for each in (*templates.SHOWN, *templates.BANDS))


@dataclass(frozen=True, slots=True)
class Objects:
    """Who we are, and the ids of the devices and composites by their names."""

    token: str
    ids: Mapping[str, str]
    are_new: bool


def token_file(settings: Settings) -> Path:
    """Return where the tenant's token is kept, readable by this user only."""
    return settings.data_path / "demonstration" / "token"


def rest(settings: Settings, token: str) -> Rest:
    """Return a connection to the platform's API."""
    return Rest(api_url(settings), token, ca=trust.own(settings))


def prepare(settings: Settings, again: bool) -> Objects:
    """Return the tenant and the objects of last time; new ones if there are none, or if `again`.

    Raises ServioticyError where the platform does not answer.
    """
    token = _token(settings)
    api = rest(settings, token)
    file = token_file(settings).with_name("service-objects.json")
    known = _read(file)
    wanted = (*UNITS, *COMPOSITES)
    existing = set(api.ids())
    if not again and all(known.get(name) in existing for name in wanted):
        return Objects(token, known, are_new=False)
    ids = {name: api.create(templates.device(name)) for name in UNITS}
    for name in COMPOSITES:
        ids[name] = api.create(templates.composite(name, ids))
    api.close()
    write_private(file, json.dumps(ids, indent=1))
    return Objects(token, ids, are_new=True)


def _token(settings: Settings) -> str:
    """Return the token of last time, or a new one if the platform does not know it any more."""
    file = token_file(settings)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if file.exists():
        token = file.read_text(encoding="ascii").strip()
        try:
            rest(settings, token).ids()
            return token
        except Answered as error:
            if error.status not in (401, 403):
                raise
    token = PostgresTenants(bootstrap.connect(settings, Role.API)).create_tenant(TENANT)
    write_private(file, token)
    return token


def _read(file: Path) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
