"""Stores of files: folders and buckets that an operator lets tenants name.

A tenant never names a host, a path of this machine or a credential: it names a store, and what
that is the setting `functions_stores` says, by a URL:

    file:///srv/incoming/{tenant}
    s3+https://KEY:SECRET@HOST[:PORT]/BUCKET[/PREFIX]?region=eu-central-1&tenants=ID,ID

With `?write=yes` workflows may put objects there, too.

`{tenant}` is the public id of whose workflow it is. Without it `tenants` says for whom it is: else
tenants would read each other's files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import unquote

from servioticy.domain.workflows.named_urls import TENANT, is_of, named_url

FILE = "file"
S3 = ("s3+https", "s3+http")
SETTING = "functions_stores"


class Keys(NamedTuple):
    """By which a bucket is opened; never shown."""

    id: str
    secret: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of this machine, and all below it."""

    path: str
    """As the operator has it: whoever may change what it leads over is trusted."""
    below: tuple[str, ...] = ()
    """Further steps: tenants may own what they lead over, so none of them is a link."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of an S3-compatible store, as far as names begin with `prefix`."""

    host: str
    port: int
    is_secure: bool
    bucket: str
    prefix: str
    """Empty, or it ends with a slash."""
    region: str
    keys: Keys = field(repr=False)


@dataclass(frozen=True, slots=True)
class Store:
    """A store by its name, and whose it is."""

    name: str
    at: Folder | Bucket
    tenants: frozenset[str]
    """Public ids; none: everybody's, each with a part of its own."""
    is_writable: bool = False
    """Whether workflows may put objects there."""

    def of(self, tenant: str) -> Folder | Bucket | None:
        """Return where the files of a tenant are, by its public id; None: there are none."""
        if not is_of(self.tenants, tenant):
            return None
        if isinstance(self.at, Folder):
            return replace(
                self.at, below=tuple(each.replace(TENANT, tenant) for each in self.at.below)
            )
        return replace(self.at, prefix=self.at.prefix.replace(TENANT, tenant))


def stores(setting: Mapping[str, str]) -> dict[str, Store]:
    """Understand the setting `functions_stores`. Raises SettingsError, without the secret."""
    return {name: _store(name, url) for name, url in setting.items()}


def _store(name: str, url: str) -> Store:
    own = named_url(SETTING, name, url, ("region", "write"))
    parts, steps = own.parts, own.steps
    host, key, secret = parts.hostname, parts.username, parts.password
    at: Folder | Bucket
    if parts.scheme == FILE:
        if host or not steps:
            raise own.wrong("is written file:///path")
        theirs = next((n for n, each in enumerate(steps) if TENANT in each), len(steps) - 1)
        at = Folder("/" + "/".join(steps[:theirs]), tuple(steps[theirs:]))
    elif parts.scheme in S3:
        if not host or not steps or TENANT in steps[0] or not key or not secret:
            raise own.wrong("is written s3+https://KEY:SECRET@HOST/BUCKET")
        is_secure = parts.scheme == S3[0]
        prefix = "".join(f"{each}/" for each in steps[1:])
        keys = Keys(unquote(key), unquote(secret))
        region = own.one("region", "us-east-1")
        number = parts.port or (443 if is_secure else 80)
        at = Bucket(host, number, is_secure, steps[0], prefix, region, keys)
    else:
        raise own.wrong(f"begins with file: or {' or '.join(each + ':' for each in S3)}")
    return Store(name, at, own.tenants, own.one("write", "no", ("yes", "no")) == "yes")
