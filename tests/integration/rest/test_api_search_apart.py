"""A search in a process of its own finds what one here finds, and counts what it takes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from api_builders import NOW, Caller, Platform, Served
from search_builders import DOCUMENT, MATCH, NUMBER, Store, box, search, times, update

from api.app import SERVICES, create_app
from api.search.apart import SearchesApart, searching_process
from sandbox.text import argument_names
from servioticy.apart.answering import NICE
from servioticy.apart.asking import OtherProcess
from servioticy.settings import Settings, changed

COUNT = 5_000
CRITERIA = (
    {},
    {"timerange": True, "rangefrom": 100, "rangeto": 4_000},
    NUMBER | {"rangefrom": 10, "rangeto": 12},
    MATCH | {"string": "pink"},
    box(10, 0, 0, 10),
)


@pytest.fixture
def process(session_dsn: str) -> Iterator[OtherProcess]:
    found = searching_process(changed(Settings(), dsn=session_dsn))
    yield found
    found.stop()


@pytest.fixture
def apart(backend: Platform, process: OtherProcess) -> Served:
    app = create_app(
        backend.ports, Settings(), lambda: NOW, argument_names, searches=SearchesApart(process)
    )
    return Served(app, backend)


def test_it_finds_the_same_and_what_it_takes_counts(
    served: Served, apart: Served, alice: Caller, process: OtherProcess
) -> None:
    so = alice.create(DOCUMENT)
    served.store()
    Store(served.platform, so).add(
        *(update(n, n=n * 7919 % 1000, text=("pink", "floyd")[n % 2]) for n in range(1, COUNT))
    )
    there = Caller(apart.app.test_client(), alice.token)
    quotas = apart.app.extensions[SERVICES].quotas
    tenant = served.platform.stream(so).tenant
    for criteria in CRITERIA:
        assert times(search(there, so, criteria)) == times(search(alice, so, criteria))

    assert quotas.reading.seconds(tenant) > 0
    assert process._process is not None
    assert os.getpriority(os.PRIO_PROCESS, process._process._process.pid) >= NICE


def test_one_whose_process_is_killed_is_told_to_search_again(
    served: Served, apart: Served, alice: Caller, process: OtherProcess
) -> None:
    so = alice.create(DOCUMENT)
    served.store()
    Store(served.platform, so).add(update(1, n=1))
    there = Caller(apart.app.test_client(), alice.token)
    assert search(there, so, {}).status_code == 200
    assert process._process is not None
    process._process._process.kill()
    process._process._process.wait()

    refused = search(there, so, {})

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert "the process that searches ended" in refused.get_data(as_text=True)
    assert times(search(there, so, {})) == [1]
