"""The order in which a worker is enclosed, and which layers it could have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sandbox.guest import confinement, limits, seccomp

REQUIRED = ("user", "privileges", "seccomp")
"""Without these a worker does not serve, unless it is told to. Limits and flags always."""

T = TypeVar("T")

Layers = dict[str, str]
"""Layer to "", or to why it is missing."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What a zygote has left behind for all its workers: "" or why not, and whom they become."""

    network: str
    files: str
    becoming: int
    heap_bytes: int
    """Of scripts."""


def leave(heap_bytes: int) -> Outside:
    """Leave what can be left once for all workers, whose scripts have so much of a heap."""
    seccomp.prepare()
    return Outside(
        network=confinement.leave_network(),
        files=confinement.prepare_empty_root(),
        becoming=confinement.user_to_become(),
        heap_bytes=heap_bytes,
    )


def enclose(parent: int, outside: Outside, make: Callable[[], T]) -> tuple[T, Layers]:
    """Enclose this process; return what `make` made before the last walls, and the layers.

    Raises LimitRefused.
    """
    limits.apply(outside.heap_bytes)
    made = confinement.powerless(make, outside.becoming)
    layers = {
        "limits": "",
        "network": outside.network,
        "files": outside.files or confinement.leave_files(),
        "user": confinement.leave_user(outside.becoming),
        "privileges": confinement.leave_privileges(),
    }
    limits.tie(parent)
    try:
        seccomp.install()
        seccomp.prove()
        layers["seccomp"] = ""
    except seccomp.SeccompRefused as error:
        layers["seccomp"] = str(error)
    return made, layers


def unprotected(layers: Layers) -> str:
    """Say which required layers are missing and why; "" if none is."""
    return "; ".join(f"{name}: {layers[name]}" for name in REQUIRED if layers[name])
