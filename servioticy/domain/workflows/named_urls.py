"""URLs of settings, by names that tenants say: whose each is, and no secret in any error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from servioticy.domain.workflows.files import STORE
from servioticy.errors import SettingsError

TENANT = "{tenant}"
"""Stands for the public id of whose workflow it is."""


@dataclass(frozen=True, slots=True)
class NamedUrl:
    """One of a setting, by its name."""

    parts: SplitResult
    steps: Sequence[str]
    """of its path"""
    query: Mapping[str, Sequence[str]]
    tenants: frozenset[str]
    """Public ids of those that it is for; none: everybody, each with a part of its own."""
    wrong: Callable[[str], SettingsError]
    """The error that names it, and says why."""

    def one(self, key: str, usual: str, choices: Sequence[str] = ()) -> str:
        """Return what the query says, once. Raises SettingsError."""
        found = self.query.get(key, [usual])
        if len(found) != 1 or (choices and found[0] not in choices):
            raise self.wrong(f"{key} is {' or '.join(choices) or 'told once'}")
        return found[0]


def named_url(setting: str, name: str, url: str, known: Sequence[str]) -> NamedUrl:
    """Understand one; `known` may be in its query, beside `tenants`. Raises SettingsError."""

    def wrong(reason: str) -> SettingsError:
        return SettingsError(f"{setting}: {name[:50]}: {reason}")

    if not STORE.fullmatch(name):
        raise wrong("has a name of 1 to 50 of A-Z a-z 0-9 _ -")
    try:
        parts = urlsplit(url)
        _ = parts.port
        query = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise wrong("is no URL") from None
    if unknown := query.keys() - {*known, "tenants"}:
        raise wrong(f"has no {min(unknown)[:50]}; there are tenants, {', '.join(known)}")
    path = unquote(parts.path)
    steps = [each for each in path.split("/") if each]
    if "." in steps or ".." in steps or "\0" in path:
        raise wrong("has a path with . or ..")
    tenants = frozenset(",".join(query.get("tenants", [])).split(",")) - {""}
    if TENANT not in steps and not tenants:
        raise wrong("names neither {tenant} in its path nor ?tenants=ID,ID: whose is it?")
    return NamedUrl(parts, steps, query, tenants, wrong)


def is_of(tenants: frozenset[str], tenant: str) -> bool:
    """Tell whether it is for this tenant, by its public id.

    A tenant that is gone has none, which is no step of a path: what is above would be its own.
    """
    if tenant in ("", ".", "..") or "/" in tenant or "\0" in tenant:
        return False
    return not tenants or tenant in tenants
