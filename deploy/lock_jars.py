"""Write `jars.lock` and `storm.lock` anew, by Maven: `python -m deploy.lock_jars`.

Only needed when a version here or PySpark's changes; running the platform needs no Maven.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

BROKER = "org.apache.kafka:kafka_2.13:4.1.1"
WEAVER = "org.aspectj:aspectjweaver:1.9.27"
STORM = "org.apache.storm:storm-server:2.8.2"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
# Not on Maven Central; the classes in java/kafka_tokens stand in for it. A mirror may have it.
TOKEN_PROVIDER = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0"  # noqa: S105
# The broker logs through PySpark's newer logging jars, which stand in front of its own.
LOGGING = {"slf4j-api", "log4j-api", "log4j-core"}

HEADER = """\
# The jars we download, written by `python -m deploy.lock_jars`: path in a Maven repository,
# sha256, what it is for (kafka: the embedded broker, spark: the pipeline's Kafka source,
# aspects: what weaves into Java).
# An optional jar may be missing in the repository; `-`: its sum is not known.
"""

STORM_HEADER = """\
# Storm, an engine of applications that are not ours: path in a Maven repository, sha256.
# Written by `python -m deploy.lock_jars`;
# fetched by `servioticy bench applications --engines storm`.
"""

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lock</groupId><artifactId>lock</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>
    <exclusions><exclusion>
      <groupId>{3}</groupId><artifactId>{4}</artifactId>
    </exclusion></exclusions>
  </dependency></dependencies>
</project>
"""


def resolve(coordinates: str) -> dict[str, tuple[str, str]]:
    """The jar and all it needs at run time: path to (artifact, sha256)."""
    maven = shutil.which("mvn")
    if maven is None:
        raise SystemExit("mvn is needed to write the lock file; please install Maven 3")
    with tempfile.TemporaryDirectory() as folder:
        pom = POM.format(*coordinates.split(":"), *TOKEN_PROVIDER.split(":")[:2])
        (Path(folder) / "pom.xml").write_text(pom, encoding="utf-8")
        listing = Path(folder) / "list"
        goal = ["dependency:list", "-DincludeScope=runtime", "-DoutputAbsoluteArtifactFilename"]
        subprocess.run(
            [maven, "-q", "-B", *goal, f"-DoutputFile={listing}"], cwd=folder, check=True
        )
        lines = re.findall(r"^ +(\S+):jar:(\S+):\w+:(\S+\.jar)", listing.read_text(), re.MULTILINE)
    jars = {}
    for name, version, file in lines:
        group, artifact = name.split(":")
        path = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"
        jars[path] = (artifact, hashlib.sha256(Path(file).read_bytes()).hexdigest())
    return jars


def in_pyspark() -> set[str]:
    """The artifacts that PySpark brings along."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SystemExit("PySpark must be installed: the lock leaves out what it brings along")
    jars = (Path(found.origin).parent / "jars").glob("*.jar")
    return {re.sub(r"-\d[^-]*(-\w+)?$", "", jar.stem) for jar in jars}


def main() -> None:
    """Resolve all groups and write the lock files beside this module."""
    storm = "".join(
        f"{path} {digest} storm\n" for path, (_, digest) in sorted(resolve(STORM).items())
    )
    Path(__file__).with_name("storm.lock").write_text(STORM_HEADER + storm, encoding="utf-8")
    sums: dict[str, str] = {}
    uses: dict[str, set[str]] = {}
    for use, coordinates, have in (
        ("kafka", BROKER, LOGGING),
        ("spark", CONNECTOR, in_pyspark()),
        ("aspects", WEAVER, set[str]()),
    ):
        for path, (artifact, digest) in resolve(coordinates).items():
            if artifact not in have:
                sums[path] = digest
                uses.setdefault(path, set()).add(use)
    lines = [f"{path} {sums[path]} {' '.join(sorted(uses[path]))}" for path in sorted(sums)]
    group, artifact, version = TOKEN_PROVIDER.split(":")
    path = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"
    lines.append(f"{path} - spark optional")
    lock = Path(__file__).with_name("jars.lock")
    lock.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
