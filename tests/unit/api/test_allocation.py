"""What is asked of the C library, and that another one is left alone."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from api import allocation


def test_glibc_is_told_what_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[int, int] = {}
    library = SimpleNamespace(mallopt=told.__setitem__)
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _name: library)
    monkeypatch.setattr(sys, "platform", "linux")

    allocation.keep_some_memory()

    assert told == {-1: 8_388_608, -2: 1_048_576, -3: 1_048_576}


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_another_library_is_left_alone(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _name: SimpleNamespace())
    monkeypatch.setattr(sys, "platform", platform)

    allocation.keep_some_memory()
