"""The broker's and Spark's jars, downloaded from a repository of our own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from file_server import FileServer

from servioticy.embedded import jars
from servioticy.embedded.jars import Jar
from servioticy.errors import SetupError
from servioticy.settings import Settings, load


@pytest.fixture
def settings(repository: FileServer, tmp_path: Path) -> Settings:
    return load({}, {"jars": str(tmp_path / "jars"), "maven": repository.address})


def a_jar(
    repository: FileServer, name: str, content: bytes = b"x", *, digest_of: bytes = b"x"
) -> Jar:
    repository.put(name, content)
    return Jar(name, hashlib.sha256(digest_of).hexdigest(), frozenset({"kafka"}))


def test_download_goes_on_where_it_stopped(repository: FileServer, settings: Settings) -> None:
    first, second = a_jar(repository, "first.jar"), a_jar(repository, "second.jar")
    seen: list[tuple[int, int, int]] = []
    jars.download(settings, lambda *numbers: seen.append(numbers), [first])
    jars.download(settings, lambda *numbers: seen.append(numbers), [first, second])

    assert seen == [(1, 1, 1), (1, 1, 1)]
    assert sorted(path.name for path in settings.embedded.jars_path.iterdir()) == [
        "first.jar",
        "second.jar",
    ]


def test_a_jar_with_other_bytes_is_refused(repository: FileServer, settings: Settings) -> None:
    """It would run with all our rights."""
    forged = a_jar(repository, "forged.jar", b"evil")
    with pytest.raises(SetupError, match=r"jars\.lock \(wrong sha256\)"):
        jars.download(settings, lambda *_: None, [forged])

    assert list(settings.embedded.jars_path.iterdir()) == []


def test_others_may_read_a_jar(repository: FileServer, settings: Settings) -> None:
    """Root may set up what another user runs."""
    jars.download(settings, lambda *_: None, [a_jar(repository, "a.jar")])

    assert (settings.embedded.jars_path / "a.jar").stat().st_mode & 0o444 == 0o444


def test_only_an_optional_jar_may_be_absent(settings: Settings) -> None:
    optional = Jar("a.jar", "0" * 64, frozenset({"spark"}), optional=True)
    assert jars.download(settings, lambda *_: None, [optional]) == [optional]

    with pytest.raises(SetupError, match="SERVIOTICY_MAVEN"):
        jars.download(settings, lambda *_: None, [Jar("b.jar", "0" * 64, frozenset({"spark"}))])


def test_nothing_without_a_digest_comes_over_an_open_line(
    repository: FileServer, settings: Settings
) -> None:
    """Nobody would vouch for its bytes."""
    repository.put("a.jar", b"x")
    unknown = Jar("a.jar", jars.UNKNOWN_SUM, frozenset({"spark"}), optional=True)

    assert jars.download(settings, lambda *_: None, [unknown]) == [unknown]
    assert repository.asked == []


def test_a_repository_that_is_no_address_is_named(tmp_path: Path) -> None:
    settings = load({}, {"jars": str(tmp_path), "maven": "/srv/maven"})

    with pytest.raises(SetupError, match=r"SERVIOTICY_MAVEN .*not '/srv/maven'"):
        jars.download(settings, lambda *_: None, [Jar("a.jar", "0" * 64, frozenset())])
