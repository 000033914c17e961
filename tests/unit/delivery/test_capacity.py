"""How many connections fit into the file descriptors that the system gives."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from delivery.admission.capacity import RESERVED_DESCRIPTORS, capacity
from servioticy.domain.quotas import LIVE_SUBSCRIPTIONS, SOCKETS, quotas
from servioticy.settings import Settings

EACH, LIVE = (quotas(Settings())[name] for name in (SOCKETS, LIVE_SUBSCRIPTIONS))


@pytest.mark.parametrize("descriptors", [256, 1024, 4096, 20_000, 1_000_000])
def test_all_connections_fit_and_leave_some_for_the_rest(descriptors: int) -> None:
    found = capacity(10_000, EACH, LIVE, descriptors)

    assert found.connections + found.pending + found.asking + RESERVED_DESCRIPTORS <= descriptors
    assert min(found.connections, found.pending, found.asking, found.asking_each) > 0


def test_where_there_is_room_it_is_as_set() -> None:
    found = capacity(10_000, EACH, LIVE, 20_000)

    assert (found.connections, found.sockets, found.live) == (10_000, EACH, LIVE)


def test_descriptors_are_raised_to_what_the_system_allows() -> None:
    """In a process of its own: ours keeps its limit."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 512) if hard != resource.RLIM_INFINITY else 512
    code = (
        "import resource; from delivery.admission.capacity import raise_descriptors;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (64, {wanted}));"
        "print(raise_descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout

    assert shown.split() == [b"%d" % wanted] * 2
