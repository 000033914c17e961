"""The jars of the broker and of Spark's Kafka source: downloaded once, pinned by a lock file.

The lock file says what each jar is for and what its bytes are. A jar is in the folder
only under its final name and only with the right sum, so finding the file is enough.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from servioticy.embedded import stubs
from servioticy.errors import SetupError
from servioticy.settings import Settings

UNKNOWN_SUM = "-"
SECONDS_PER_REQUEST = 60
AT_ONCE = 6

# Jars done, jars in all, bytes fetched so far.
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock file."""

    path: str
    sha256: str
    uses: frozenset[str]
    optional: bool = False

    @property
    def name(self) -> str:
        """The file's name; it holds the version, so two versions live side by side."""
        return self.path.rsplit("/", 1)[-1]

    def matches(self, content: bytes) -> bool:
        """Whether these are the bytes that were locked."""
        return self.sha256 in (UNKNOWN_SUM, hashlib.sha256(content).hexdigest())


def locked() -> list[Jar]:
    """Every jar of the lock file."""
    text = files("deploy").joinpath("jars.lock").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [
        Jar(path, digest, frozenset(words) - {"optional"}, "optional" in words)
        for path, digest, *words in lines
    ]


def missing(settings: Settings) -> list[Jar]:
    """The jars that must be downloaded before the platform can run."""
    return [jar for jar in _absent(settings, locked()) if not jar.optional]


def damaged(settings: Settings) -> list[Path]:
    """The downloaded jars whose bytes are no longer those of the lock file."""
    here = {settings.embedded.jars_path / jar.name: jar for jar in locked()}
    return [
        path for path, jar in here.items() if path.exists() and not jar.matches(path.read_bytes())
    ]


def classpath(settings: Settings, use: str) -> list[Path]:
    """The downloaded jars for one use, `kafka` or `spark`.

    Raises SetupError if one is missing.
    """
    absent = [jar.name for jar in missing(settings) if use in jar.uses]
    if absent:
        raise SetupError(
            f"{len(absent)} jars are missing in {settings.embedded.jars_path} ({absent[0]}, ...); "
            "run `make setup`"
        )
    paths = [settings.embedded.jars_path / jar.name for jar in locked() if use in jar.uses]
    return [path for path in paths if path.exists()]


def spark_jars(settings: Settings) -> list[Path]:
    """What Spark's Kafka source needs: the official jars, our stubs where one is not to be had."""
    paths = classpath(settings, "spark")
    if token_provider(settings) is None:
        paths.append(stubs.require(settings))
    return paths


def token_provider(settings: Settings) -> Path | None:
    """The official jar that the stubs stand in for, if the repository had it."""
    optional = (settings.embedded.jars_path / jar.name for jar in locked() if jar.optional)
    return next((path for path in optional if path.exists()), None)


def download(
    settings: Settings, progress: Progress, jars: Iterable[Jar] | None = None
) -> list[Jar]:
    """Fetch the jars that are not there, several at once; gives the optional ones not to be had.

    What has arrived stays, so a second call goes on where the first one stopped.
    Raises SetupError that says what to do.
    """
    wanted = _absent(settings, locked() if jars is None else jars)
    settings.embedded.jars_path.mkdir(parents=True, exist_ok=True)
    not_to_be_had, fetched = [], 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {pool.submit(_fetch, settings, jar): jar for jar in wanted}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                size = future.result()
                fetched += size
                if not size:
                    not_to_be_had.append(futures[future])
                progress(done, len(wanted), fetched)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return not_to_be_had


def _absent(settings: Settings, jars: Iterable[Jar]) -> list[Jar]:
    try:
        there = {entry.name for entry in os.scandir(settings.embedded.jars_path)}
    except FileNotFoundError:
        there = set()
    return [jar for jar in jars if jar.name not in there]


def _fetch(settings: Settings, jar: Jar) -> int:
    """The bytes fetched; 0 if an optional jar is not to be had."""
    url = f"{settings.embedded.maven.rstrip('/')}/{jar.path}"
    secure = url.startswith("https://")
    if not secure and not url.startswith("http://"):
        raise SetupError(
            f"SERVIOTICY_MAVEN must be an https:// address, not {settings.embedded.maven!r}"
        )
    if jar.sha256 == UNKNOWN_SUM and not secure:
        return 0  # nothing would vouch for its bytes
    try:
        with urllib.request.urlopen(url, timeout=SECONDS_PER_REQUEST) as answer:  # noqa: S310
            content: bytes = answer.read()
    except (OSError, ValueError) as error:
        if jar.optional and isinstance(error, urllib.error.HTTPError) and error.code == 404:
            return 0
        raise SetupError(
            f"cannot download {url}: {error}. Run the same again to go on where it stopped, or "
            "set SERVIOTICY_MAVEN to a mirror of Maven Central (https://...) you can reach"
        ) from error
    if not jar.matches(content):
        raise SetupError(
            f"{url} is not the file of deploy/jars.lock (wrong sha256); "
            "set SERVIOTICY_MAVEN to a mirror you trust and run the same again"
        )
    target = settings.embedded.jars_path / jar.name
    partial = target.with_name(f".{jar.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(target)
    return len(content)
