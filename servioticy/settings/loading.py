"""Where settings come from: the command line, else the environment, else a file, else defaults.

In the environment a setting is `SERVIOTICY_` and its name in capitals. The TOML file named by
`SERVIOTICY_CONFIG` has a table for each section, and the settings of no section before them.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from servioticy.errors import SettingsError
from servioticy.settings.declared import DECLARED
from servioticy.settings.sections import Settings

PREFIX = "SERVIOTICY_"


def load(
    environment: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Read the settings; `overrides`, by name (the command line), win over everything.

    Raises SettingsError naming the setting, its value and what was expected.
    """
    environment = os.environ if environment is None else environment
    values = {**_file(environment), **_environment(environment), **dict(overrides or {})}
    return changed(Settings(), **values)


def changed(settings: Settings, **values: Any) -> Settings:
    """Return the settings with other values for these, by name. Raises SettingsError."""
    sections: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, value in values.items():
        known = DECLARED.get(name)
        if known is None:
            raise SettingsError(f"unknown setting {name!r}; known: {_listed(DECLARED)}")
        sections[known.section][known.key] = known.converted(value)
    top = sections.pop("", {})
    for section, some in sections.items():
        top[section] = replace(getattr(settings, section), **some)
    return replace(settings, **top)


def to_environment(settings: Settings) -> dict[str, str]:
    """Return the settings as environment variables, to hand to a child program."""
    return {PREFIX + name.upper(): _text(value) for name, value in by_name(settings).items()}


def by_name(settings: Settings) -> dict[str, Any]:
    """Return the value of every setting."""
    return {
        name: getattr(getattr(settings, each.section) if each.section else settings, each.key)
        for name, each in DECLARED.items()
    }


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Others that begin like ours may be meant for something else."""
    return {
        name: value
        for key, value in environment.items()
        if key.startswith(PREFIX) and (name := key[len(PREFIX) :].lower()) in DECLARED
    }


def _file(environment: Mapping[str, str]) -> dict[str, Any]:
    file = environment.get(PREFIX + "CONFIG")
    if not file:
        return {}
    import tomllib  # most commands have no file, and it is slow to import

    try:
        tables = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"cannot read the settings file {file}: {error}") from error
    try:
        return _names(tables)
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}") from None


def _names(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file's values, by the settings' names. Raises SettingsError."""
    names = {(each.section, each.key): name for name, each in DECLARED.items()}
    sections = {section for section, _key in names}
    values: dict[str, Any] = {}
    for key, value in tables.items():
        section, some = (key, value) if key in sections else ("", {key: value})
        if not isinstance(some, dict):
            raise SettingsError(f"{key} is a table: its settings stand below [{key}]")
        for own, each in some.items():
            if (section, own) not in names:
                raise SettingsError(_unknown(section, own, names))
            values[names[section, own]] = each
    return values


def _unknown(section: str, key: str, names: Iterable[tuple[str, str]]) -> str:
    place = DECLARED.get(key)
    if place is not None:
        there = f"in the table [{place.section}]" if place.section else "before all tables"
        return f"setting {key} stands {there}, as {place.key}"
    kind = f"setting {key!r} in [{section}]" if section else f"setting or table {key!r}"
    return f"unknown {kind}; known: {_listed(own for table, own in names if table == section)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
