"""Which layers around a program this machine allows."""

from __future__ import annotations

import select
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from operators.guest.launch import REQUIRED
from operators.instance import Instance, Place
from operators.manifest import Described
from servioticy.ports.programs import Manifest

_NOTHING = Described(
    "probe",
    Manifest("python", False, 1, 0.0, 10.0, 64 * 1024 * 1024, 4),
    ("python3", "-c", "pass"),
    "json",
)


def layers(within: float = 60.0) -> Mapping[str, str]:
    """Begin a program that does nothing; return of each layer "" or why it is missing.

    Raises OSError where it cannot be begun at all, and TimeoutError.
    """
    with tempfile.TemporaryDirectory(prefix="operators-") as folder:
        base, home = Path(folder) / "root", Path(folder) / "home"
        base.mkdir()
        home.mkdir()
        instance = Instance(_NOTHING, home, Place(base, strangers=False))
        try:
            until = time.monotonic() + within
            while not instance.layers:
                if instance.failed:
                    raise OSError(instance.failed)
                if time.monotonic() > until:
                    raise TimeoutError("it has not begun")
                select.select([instance.status], [], [], 0.1)
                if not instance.read_status() and not instance.layers:
                    raise OSError(instance.failed or "it has ended")
            return instance.layers
        finally:
            instance.end()
            while not instance.is_gone():
                time.sleep(0.01)


def lacking(found: Mapping[str, str]) -> str:
    """Say which layers that strangers' programs need are missing, and why; "" if none is."""
    return "; ".join(f"{name}: {found[name]}" for name in REQUIRED if found[name])
