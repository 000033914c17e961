"""What values settings may have, and how one is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from msgspec import Meta

Port = Annotated[int, Meta(ge=1, le=65_535)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Number = Annotated[int, Meta(ge=1, le=1_000_000_000)]
MetricsPort = Annotated[int, Meta(ge=0, le=65_535)]
Bytes = Annotated[int, Meta(ge=1, le=1 << 40)]
Milliseconds = Annotated[int, Meta(ge=1, le=600_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Wait = Annotated[float, Meta(ge=0, le=86_400)]
Price = Annotated[float, Meta(ge=0, le=1e9)]
Part = Annotated[float, Meta(gt=0, le=1)]
Heap = Annotated[str, Meta(pattern=r"^[1-9]\d{0,6}[kmgKMG]$", description="a size such as 512m")]
Name = Annotated[str, Meta(min_length=1, max_length=4_096)]
Prefix = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9._-]{0,100}$", description="at most 100 of A-Z a-z 0-9 . _ -"),
]
Address = Annotated[
    str, Meta(pattern=r"^(https?://\S+)?$", description="empty, or a URL that begins with http")
]
BrokerUrl = Annotated[
    str,
    Meta(
        pattern=r"^(mqtts?://[^\s/?#@]+)?$",
        description="empty, or mqtt://HOST:PORT or mqtts://HOST:PORT, nothing more",
    ),
]
StoreUrl = Annotated[
    str,
    Meta(
        pattern=r"^((redis|valkey)s?://([^\s/?#@]+@)?[^\s/?#@]+(/\d{0,5})?)?$",
        description="empty, or redis[s]://[USER:PASSWORD@]HOST[:PORT][/DATABASE]",
    ),
]
BridgeTenants = Annotated[
    Mapping[
        Annotated[str, Meta(pattern=r"^([A-Za-z0-9_-]{1,50}(/[A-Za-z0-9_-]{1,50}){0,3})?$")],
        Annotated[str, Meta(min_length=1, max_length=4_096)],
    ],
    Meta(
        max_length=100,
        description="a table of tokens by topic prefix; in the environment a JSON object",
    ),
]
Stores = Annotated[
    Mapping[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,50}$")],
        Annotated[str, Meta(min_length=1, max_length=4_096)],
    ],
    Meta(
        max_length=100,
        description="a table of URLs by name; in the environment a JSON object",
    ),
]
SparkConf = Annotated[
    Mapping[Annotated[str, Meta(pattern=r"^spark\.\S+$")], str],
    Meta(description="a table of texts named spark.*; in the environment a JSON object"),
]


def setting(
    default: Any, doc: str, *, name: str = "", secret: bool = False, place: bool = False
) -> Any:
    """Return a field that is a setting.

    A `secret` is never shown, neither in errors nor by repr. A `place` is a file, folder or socket
    of the machine whose settings these are, and means nothing on another one.
    """
    about = {"doc": doc, "name": name, "secret": secret, "place": place}
    if isinstance(default, dict):
        return field(default_factory=default.copy, hash=False, repr=not secret, metadata=about)
    return field(default=default, repr=not secret, metadata=about)
