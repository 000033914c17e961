"""The platform by part: each program loads with what its extra brings, and nothing else."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from command import extras
from servioticy.errors import SetupError

ROOT = Path(__file__).parents[2]
PARTS = {
    "platform": ["command.running", "command.doctor"],
    "": ["servioticy.client", "servioticy.client.rest", "servioticy.client.follower"],
    "api": ["api.__main__", "api.app"],
    "delivery": ["delivery.__main__"],
    "broker": ["broker.__main__"],
    "functions": ["functions.__main__", "functions.working"],
    "pipeline": ["pipeline.__main__", "pipeline.spark.job", "pipeline.spark.worker"],
}
PROGRAMS = ("api", "broker", "delivery", "functions", "pipeline")
COMMAND = ["command.cli", "command.remote.transfer", "command.remote.tailing"]
BLOCKS = """
import importlib, sys
class Blocks:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in blocked:
            raise ModuleNotFoundError(name, name=name)
blocked = set(sys.argv[1].split(','))
sys.meta_path.insert(0, Blocks())
for name in sys.argv[2:]:
    importlib.import_module(name)
"""


def declared() -> dict[str, list[str]]:
    """Lines of setup.cfg by extra; those of every installation by the empty name."""
    file = configparser.ConfigParser(interpolation=None)
    file.read(ROOT / "setup.cfg")
    lines = dict(file["options.extras_require"])
    lines[""] = file["options"]["install_requires"]
    return {
        extra: [each for each in text.split("\n") if each and not each.startswith("#")]
        for extra, text in lines.items()
    }


def brought(extra: str, lines: dict[str, list[str]]) -> Iterator[str]:
    """The packages that an extra brings."""
    for each in lines[extra]:
        if ours := re.match(r"servioticy\[(.*)\]", each):
            for other in ours[1].split(","):
                yield from brought(other, lines)
        else:
            yield re.split(r"[ =<>]", each)[0]


def with_theirs(packages: set[str]) -> set[str]:
    """The packages, and all that they need themselves."""
    found: set[str] = set()
    left = {each.lower() for each in packages}
    while left:
        found |= left
        lines = [line for each in left for line in metadata.requires(each) or ()]
        names = {re.split(r"[ =<>!~;\[(]", each)[0] for each in lines if "extra ==" not in each}
        left = {each.lower().replace("_", "-") for each in names if _here(each)} - found
    return found


def _here(name: str) -> bool:
    try:
        return metadata.distribution(name) is not None
    except metadata.PackageNotFoundError:
        return False


def blocked_beside(extra: str) -> set[str]:
    """The modules of all packages that this part does not bring."""
    lines = declared()
    own = with_theirs({*brought("", lines), *(brought(extra, lines) if extra else ())})
    others = {each.lower() for each in brought("local", lines)} - own
    return {
        module
        for module, packages in metadata.packages_distributions().items()
        if {each.lower() for each in packages} <= others
    }


@pytest.mark.parametrize("part", PARTS)
def test_a_part_loads_with_what_it_brings(part: str) -> None:
    modules = PARTS[part] or []
    blocked = blocked_beside(part) | set(PROGRAMS) - {part}
    if part == "broker":  # it stands on what delivery offers
        blocked -= {"delivery"}
    command = [sys.executable, "-c", BLOCKS, ",".join(sorted(blocked)), *modules]
    done = subprocess.run(
        [*command, *([] if part else COMMAND)], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def test_the_client_needs_neither_spark_nor_kafka_nor_postgres() -> None:
    assert blocked_beside("") >= {"pyspark", "pandas", "kafka", "confluent_kafka", "psycopg2"}


def test_what_is_missing_is_told_with_what_brings_it(monkeypatch) -> None:
    lines = ["httpx==1", 'pyspark==4; extra == "pipeline"', 'no-such; extra == "platform"']
    lines.append('servioticy[platform]; extra == "pipeline"')
    monkeypatch.setattr(metadata, "requires", lambda _name: lines)

    with pytest.raises(SetupError, match=r"no-such: pip install 'servioticy\[pipeline\]'"):
        extras.require("pipeline")
    extras.require("client")
