"""Stand-ins for Spark's Kafka token provider, compiled at set-up.

The connector asks that library about Kerberos delegation tokens, and not every Maven
repository has it. Where it is absent, four small classes of ours answer "no tokens".
PySpark's jars hold a Java compiler (Janino), so no JDK is needed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

from servioticy.embedded import java
from servioticy.errors import SetupError
from servioticy.settings import Settings

COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
SECONDS_TO_COMPILE = 120


def jar(settings: Settings) -> Path:
    """Return the path of the compiled classes' jar; its name changes with their source."""
    digest = hashlib.sha256()
    for source in _sources():
        digest.update(source.name.encode() + source.read_bytes())
    return settings.embedded.jars_path / f"stubs-{digest.hexdigest()[:12]}.jar"


def require(settings: Settings) -> Path:
    """Return the jar of the compiled classes. Raises SetupError if they were never compiled."""
    target = jar(settings)
    if not target.exists():
        raise SetupError(f"the stub classes are missing in {target}; run `make setup`")
    return target


def compile_stubs(settings: Settings, runtime: java.Java) -> Path:
    """Compile the stub classes into their jar, unless it exists, and return its path."""
    target = jar(settings)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        _compile(Path(scratch), runtime)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        with zipfile.ZipFile(partial, "w") as archive:
            for path in sorted(Path(scratch).rglob("*.class")):
                archive.write(path, path.relative_to(scratch))
    partial.replace(target)
    return target


def _compile(classes: Path, runtime: java.Java) -> None:
    jars = java.pyspark_jars()
    libraries = [*jars.glob("scala-library-2*.jar"), *jars.glob("spark-core_2*.jar")]
    with as_file(_package()) as sources:
        command = [str(runtime.executable), "-cp", f"{jars}/*", COMPILER, "-d", str(classes)]
        command += ["-classpath", os.pathsep.join(map(str, libraries))]
        command += [str(path) for path in sorted(sources.glob("*.java"))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_COMPILE)
    # Janino's small command line reports errors as text, not always as an exit code.
    if done.returncode or len(list(classes.rglob("*.class"))) < len(_sources()):
        raise SetupError(
            f"the stub classes do not compile with {runtime.executable}: {done.stderr}"
        )


def _package() -> Traversable:
    return files("deploy").joinpath("stubs", "org", "apache", "spark", "kafka010")


def _sources() -> list[Traversable]:
    sources = (each for each in _package().iterdir() if each.name.endswith(".java"))
    return sorted(sources, key=lambda each: each.name)
