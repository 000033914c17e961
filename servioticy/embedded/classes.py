"""Java classes of ours that run inside Spark, and others' Java, compiled at set-up.

PySpark's jars hold a Java compiler (Janino), so no JDK is needed, and no network.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from enum import Enum
from importlib.metadata import version
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

from servioticy.embedded import java
from servioticy.errors import SetupError
from servioticy.settings import Settings

COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
LIBRARIES = ("scala-library-2", "spark-common-utils", "spark-core_2", "spark-unsafe_2")
"""The jars of PySpark that our classes are compiled against."""

WEAVER = "aspectjweaver-*.jar"
"""Among the downloaded jars: what aspects are compiled against."""

SECONDS_TO_COMPILE = 120


class Classes(Enum):
    """What is compiled into a jar of its own: a folder of sources in `deploy/java`."""

    BUNDLES = "bundles"
    """Put many records of the log into one row for the Python worker."""
    ASPECTS = "aspects"
    """Measure what is woven into Java (docs/monitoring.md)."""
    KAFKA_TOKENS = "kafka_tokens"
    """Stand in for Spark's Kafka token provider, which not every Maven repository has.

    The connector asks that library about Kerberos delegation tokens; these answer "none".
    """


def jar(settings: Settings, classes: Classes) -> Path:
    """Return the path of the jar; its name changes with its sources, and with PySpark."""
    digest = hashlib.sha256(version("pyspark").encode())
    with as_file(_folder(classes)) as folder:
        for source in _sources(folder):
            digest.update(f"{source.relative_to(folder)}\n".encode() + source.read_bytes())
    return settings.embedded.jars_path / f"{classes.value}-{digest.hexdigest()[:12]}.jar"


def is_ready(path: Path) -> bool:
    """Tell whether a compiled jar is there and whole, by the sums that it carries itself."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (FileNotFoundError, zipfile.BadZipFile):
        return False


def require(settings: Settings, classes: Classes) -> Path:
    """Return the jar. Raises SetupError if it was never compiled, or is damaged."""
    target = jar(settings, classes)
    if not is_ready(target):
        raise SetupError(
            f"the compiled classes in {target} are missing or damaged; run `make setup`"
        )
    return target


def build(settings: Settings, classes: Classes, runtime: java.Java) -> Path:
    """Compile the classes into their jar, and return its path."""
    target = jar(settings, classes)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        _compile(classes, Path(scratch), runtime, settings.embedded.jars_path)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        with zipfile.ZipFile(partial, "w") as archive:
            for path in sorted(Path(scratch).rglob("*.class")):
                archive.write(path, path.relative_to(scratch))
    partial.replace(target)
    return target


def _compile(classes: Classes, target: Path, runtime: java.Java, downloaded: Path) -> None:
    jars = java.pyspark_jars()
    libraries = [str(path) for name in LIBRARIES for path in jars.glob(f"{name}*.jar")]
    libraries += map(str, downloaded.glob(WEAVER))
    with as_file(_folder(classes)) as folder:
        sources = _sources(folder)
        command = [str(runtime.executable), "-cp", f"{jars}/*", COMPILER, "-d", str(target)]
        command += ["-classpath", os.pathsep.join(libraries), *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_COMPILE)
    # Janino's small command line reports errors as text, not always as an exit code.
    if done.returncode or len(list(target.rglob("*.class"))) < len(sources):
        raise SetupError(
            f"the Java classes in {folder} do not compile with {runtime.executable}: "
            f"{done.stderr or done.stdout}"
        )


def _folder(classes: Classes) -> Traversable:
    return files("deploy").joinpath("java", classes.value)


def _sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.java"))
