"""An application in Java that is not ours: loaded for a trial, begun with its aspects, watched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from application_builders import Here

from monitoring.applications.drivers import engines
from monitoring.configuration import NotUnderstood
from monitoring.model import RuntimePerformance
from servioticy.embedded import classes, java
from servioticy.errors import SetupError
from servioticy.settings import changed, load

PROGRAM = """
package shop;

public class Till {
    public static class Sale {
        public String getId() { return "pear"; }
    }

    static int sold(Sale sale, int count) { return count; }

    public static void main(String[] words) {
        for (int number = 0; number < Integer.parseInt(words[0]); number++) {
            System.out.println(sold(new Sale(), number));
        }
    }
}
"""
APPLICATION = """
name = "till"
engine = "{engine}"
entry = "{entry}"
arguments = ["3"]

[[aspect]]
language = "{language}"
pointcut = "shop.Till.sold"
sequence = "{sequence}"
purpose = "selling"
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    source = tmp_path_factory.mktemp("source") / "Till.java"
    source.write_text(PROGRAM)
    command = [str(java.find(load()).executable), "-cp", f"{java.pyspark_jars()}/*"]
    command += [classes.COMPILER, "-d", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path / "data")


def package(
    folder: Path,
    engine: str = "java",
    entry: str = "shop.Till",
    language: str = "java",
    sequence: str = "arg0.id",
) -> Path:
    words = {"engine": engine, "entry": entry, "language": language, "sequence": sequence}
    (folder / "application.toml").write_text(APPLICATION.format(**words))
    return folder


def test_its_steps_are_measured_and_it_ends_as_it_would(compiled: Path, here: Here) -> None:
    assert here.deploy(package(compiled)) == []
    with here.monitor("till") as monitor:
        assert monitor.wait(300) == 0
    steps = [each for each in here.measured("till") if isinstance(each, RuntimePerformance)]

    assert here.state("till").state == "ended"
    assert [(each.node.node_purpose, each.sequence) for each in steps] == [
        ("selling", "till:pear")
    ] * 3


def test_what_does_not_load_is_not_registered(compiled: Path, here: Here) -> None:
    """Nothing of it is run to find out."""
    with pytest.raises(NotUnderstood, match=r"does not load: .*shop\.Tills"):
        here.deploy(package(compiled, entry="shop.Tills"))


def test_it_has_no_python_to_weave_into(compiled: Path, here: Here) -> None:
    with pytest.raises(NotUnderstood, match="the engine java has no Python"):
        here.deploy(package(compiled, language="python", sequence=""))


def test_storm_says_how_it_is_to_be_had(compiled: Path, here: Here, tmp_path: Path) -> None:
    """It is 142 MB, and nobody's but of who asks for it."""
    here.settings = changed(here.settings, jars=str(tmp_path / "nothing"))
    assert {"java", "storm"} <= {*engines.known(here.data)}
    with pytest.raises(SetupError, match="bench applications --engines storm"):
        here.deploy(package(compiled, engine="storm"))
