"""What stands behind the question mark: a parameter that is almost one of ours is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from api_builders import Caller

from schemas import contracts

API = Path(__file__).parents[3] / "api"
READS = re.compile(r"""(?:args\.get(?:list)?|integer|choice|moment|_texts?)\(\s*"(\w+)\"""")


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("GET", "/{so}/streams/a/updates?form=1", "from"),
        ("HEAD", "/{so}/streams/a/updates?form=1", "from"),
        ("GET", "/{so}/streams/a/updates?Limit=1", "limit"),
        ("GET", "/{so}/streams/a/export?fromat=csv", "format"),
        ("GET", "/{so}/streams/a/aggregates?channel=x&bucket=5m&funktions=mean", "functions"),
        ("GET", "/{so}/streams/a?version=true", "versions"),
        ("GET", "/service-objects?customField.room=hall", "customFields"),
        ("GET", "/service-objects/?channeltype=number", "channelType"),
        ("GET", "/usage?form=1", "from"),
        ("POST", "/{so}/streams/a/updates?timestamp=ms", "timestamps"),
    ],
)
def test_a_misspelt_parameter_is_refused_with_the_right_one(
    alice: Caller, method: str, path: str, meant: str
) -> None:
    """It would mean nothing: `?form=` would answer everything."""
    so = alice.create()

    answer = alice.ask(method, path.format(so=so), data=b"[]")

    assert answer.status_code == 400
    assert method == "HEAD" or answer.get_json()["message"].endswith(f"did you mean {meant!r}?")


@pytest.mark.parametrize(
    "path",
    [
        "/{so}/streams/a?size=10&from=1",
        "/{so}/streams/a/lastUpdate?size=&from=",
        "/{so}/streams?size=&from=",
        "/{so}?_=1423072260000",
        "/{so}/streams/a/updates?from=1&form=2",
        "/service-objects?customFields.limt=1",
    ],
)
def test_what_means_something_else_or_nothing_passes(alice: Caller, path: str) -> None:
    """Clients of the original send such."""
    so = alice.create()

    assert alice.ask("GET", path.format(so=so)).status_code in (200, 204)


def test_a_stranger_learns_nothing_of_parameters(alice: Caller) -> None:
    so = alice.create()

    answer = alice.ask("GET", f"/{so}/streams/a/updates?form=1", headers={"Authorization": "none"})

    assert answer.status_code == 403


def test_every_parameter_that_is_read_is_described() -> None:
    """One that is not would be misspelt unnoticed."""
    files = [each for each in API.rglob("*.py") if "console" not in each.parts]  # pages of its own
    read = {name for file in files for name in READS.findall(file.read_text("utf-8"))}

    assert {"from", "limit", "timestamps", "name"} <= read
    assert read - frozenset().union(*contracts.query_parameters().values()) == set()
