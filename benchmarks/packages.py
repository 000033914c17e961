"""The salesman as packages: one for each engine, with the same aspects."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from servioticy.embedded import jars, java
from servioticy.embedded.classes import COMPILER
from servioticy.errors import SetupError
from servioticy.settings import Settings

SALESMAN = Path(__file__).parent / "salesman"
NAME = "salesman"
LOOP, CONSUMER, SPARK, STREAMS, STORM = "loop", "consumer", "pyspark", "streams", "storm"
ENTRIES = {
    LOOP: ("python", "loop:main"),
    CONSUMER: ("python", "consumer:main"),
    SPARK: ("pyspark", "job:main"),
    STREAMS: ("python", "streams:main"),
    STORM: ("storm", "salesman.Topology"),
}
"""How each is run: by whose driver, and what."""
MORE = {SPARK: '\n[[aspect]]\npointcut = "job.summed"\npurpose = "output"\n'}
"""Aspects of one engine: Spark calls an output for each batch, whether there is anything in it."""
NO_VARIABLES: Mapping[str, str] = {}
SECONDS_TO_COMPILE = 120


def package(
    folder: Path,
    engine: str,
    arguments: Sequence[str],
    more: str = "",
    environment: Mapping[str, str] = NO_VARIABLES,
    settings: Settings | None = None,
) -> Path:
    """Write the salesman as a package for one of ENTRIES; `more` are other aspects.

    Raises SetupError where it has to be compiled, and cannot be.
    """
    folder.mkdir(parents=True)
    driver, entry = ENTRIES[engine]
    if engine == STORM:
        _compile(folder, settings or Settings())
        aspects = SALESMAN / "storm" / "aspects.toml"
    else:
        for each in SALESMAN.glob("*.py"):
            shutil.copy(each, folder)
        aspects = SALESMAN / "aspects.toml"
    head = [
        f'name = "{NAME}"',
        f'engine = "{driver}"',
        f'entry = "{entry}"',
        f"arguments = {json.dumps(list(arguments))}",
        "",
        "[environment]",
        *(f"{key} = {json.dumps(value)}" for key, value in environment.items()),
    ]
    text = "\n".join([*head, "", aspects.read_text(encoding="utf-8"), MORE.get(engine, ""), more])
    (folder / "application.toml").write_text(text, encoding="utf-8")
    return folder


def _compile(folder: Path, settings: Settings) -> None:
    """By the compiler that comes with Spark, as all Java of ours."""
    sources = sorted((SALESMAN / "storm").rglob("*.java"))
    libraries = ":".join(map(str, jars.storm(settings)))
    command = [str(java.find(settings).executable), "-cp", f"{java.pyspark_jars()}/*", COMPILER]
    command += ["-d", str(folder), "-classpath", libraries, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_COMPILE)
    if done.returncode or len(list(folder.rglob("*.class"))) < len(sources):
        raise SetupError(f"the topology does not compile: {done.stderr or done.stdout}")
