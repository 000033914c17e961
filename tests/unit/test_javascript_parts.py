"""What of JavaScript is downloaded, what is refused, and what is said when it lacks."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from file_server import FileServer

from servioticy.embedded import javascript
from servioticy.embedded.javascript import Package
from servioticy.errors import SetupError
from servioticy.settings import Settings, load

ACORN, QUICKJS = "acorn", "@jitl/quickjs-wasmfile-release-sync"
PAGE, SUITE = "swagger-ui-dist", "jsonpath-rfc9535"


def a_tarball(name: str, members: Iterable[str] = ()) -> bytes:
    """As npm packs it, with a file more than is taken; or with these members only."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for member in members or ("package/package.json", *javascript.MEMBERS[name]):
            content = f"{member} of {name}".encode()
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def tarballs(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What the packages of the lock file are, in this test."""
    made = {name: a_tarball(name) for name in (ACORN, QUICKJS, PAGE, SUITE)}
    packages = [
        Package(name, "1.0.0", hashlib.sha512(content).hexdigest())
        for name, content in made.items()
    ]
    monkeypatch.setattr(javascript, "locked", lambda: packages)
    return made


@pytest.fixture
def registry(repository: FileServer, tarballs: dict[str, bytes]) -> FileServer:
    """Has all packages."""
    for package in javascript.locked():
        repository.put(package.path, tarballs[package.name])
    return repository


@pytest.fixture
def settings(repository: FileServer, tmp_path: Path) -> Settings:
    return load({}, {"javascript": str(tmp_path / "javascript"), "npm": repository.address})


def download(settings: Settings) -> list[str]:
    return [each.name for each in javascript.download(settings, lambda *_: None)]


def test_all_are_unpacked_with_their_licences(registry: FileServer, settings: Settings) -> None:
    """And nothing else of their tarballs."""
    assert download(settings) == []

    folder = javascript.require(settings, "quickjs")
    assert folder.is_absolute()
    assert {path.name for path in folder.iterdir()} == {
        *("acorn.js", "acorn-LICENSE", "quickjs.wasm", "quickjs-LICENSE"),
        *("swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-LICENSE", "swagger-ui-NOTICE"),
        *("jsonpath-compliance.json", "jsonpath-compliance-LICENSE"),
        "acorn-1.0.0.tgz",
        "jsonpath-rfc9535-1.0.0.tgz",
        "quickjs-wasmfile-release-sync-1.0.0.tgz",
        "swagger-ui-dist-1.0.0.tgz",
    }
    assert (folder / "acorn.js").read_text() == "package/dist/acorn.js of acorn"
    assert javascript.missing(settings) == javascript.damaged(settings) == []


def test_a_second_run_downloads_nothing(registry: FileServer, settings: Settings) -> None:
    download(settings)
    assert sorted(registry.asked) == sorted(f"/{each.path}" for each in javascript.locked())
    registry.asked.clear()
    download(settings)

    assert registry.asked == []


def test_a_lost_file_is_unpacked_again_without_the_registry(
    registry: FileServer, settings: Settings
) -> None:
    download(settings)
    registry.asked.clear()
    (javascript.folder(settings) / "acorn.js").unlink()
    download(settings)

    assert javascript.missing(settings) == registry.asked == []


@pytest.mark.parametrize("name", [ACORN, QUICKJS, PAGE, SUITE])
def test_a_damaged_tarball_is_refused(
    registry: FileServer, settings: Settings, tarballs: dict[str, bytes], name: str
) -> None:
    """What is in it would judge every tenant's code, or run it."""
    package = next(each for each in javascript.locked() if each.name == name)
    content = tarballs[name]
    registry.put(package.path, content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(SetupError, match=r"package-lock\.json \(wrong sha512\).*SERVIOTICY_NPM"):
        download(settings)

    assert package in javascript.missing(settings)


def test_a_release_that_is_laid_out_otherwise_is_named(
    repository: FileServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who changes the lock file is to see what else has changed."""
    content = a_tarball(ACORN, ["package/LICENSE"])
    acorn = Package(ACORN, "9.0.0", hashlib.sha512(content).hexdigest())
    monkeypatch.setattr(javascript, "locked", lambda: [acorn])
    repository.put(acorn.path, content)

    with pytest.raises(SetupError, match=r"acorn-9\.0\.0\.tgz has no file package/dist/acorn\.js"):
        download(settings)


def test_set_up_fails_aloud_without_acorn(registry: FileServer, settings: Settings) -> None:
    """Every API and every pipeline needs it."""
    acorn, *_ = javascript.locked()
    (registry.folder / acorn.path).unlink()

    with pytest.raises(SetupError, match=r"cannot download .*acorn-1\.0\.0\.tgz.*SERVIOTICY_NPM"):
        download(settings)


def test_only_who_chose_quickjs_needs_it(
    registry: FileServer, settings: Settings, tmp_path: Path
) -> None:
    _, quickjs, *_ = javascript.locked()
    (registry.folder / quickjs.path).unlink()
    assert download(settings) == [QUICKJS]
    javascript.require(settings, "v8")

    with pytest.raises(SetupError, match=r"cannot run without quickjs\.wasm.*`make setup`"):
        javascript.require(settings, "quickjs")
    chosen = load({}, {**overrides(settings), "sandbox_engine": "quickjs"})
    with pytest.raises(SetupError, match=r"cannot download .*quickjs"):
        download(chosen)


def overrides(settings: Settings) -> dict[str, str]:
    return {"javascript": settings.embedded.javascript, "npm": settings.embedded.npm}


def test_a_program_without_acorn_says_what_to_do(settings: Settings) -> None:
    with pytest.raises(SetupError, match=r"cannot run without acorn\.js.*run `make setup`"):
        javascript.require(settings, "v8")


def test_changed_bytes_are_found(registry: FileServer, settings: Settings) -> None:
    """`servioticy doctor` asks."""
    download(settings)
    folder = javascript.folder(settings)
    (folder / "acorn.js").write_text("other")
    (folder / "quickjs-wasmfile-release-sync-1.0.0.tgz").write_text("other")

    assert javascript.damaged(settings) == [
        folder / "acorn.js",
        folder / "quickjs-wasmfile-release-sync-1.0.0.tgz",
    ]


def test_the_lock_file_is_npm_s_own() -> None:
    """Scanners and `npm audit` read it; it has what package.json asks for."""
    folder = Path(javascript.__file__).parents[2] / "deploy" / "npm"
    lock = json.loads((folder / "package-lock.json").read_text("utf-8"))
    asked = json.loads((folder / "package.json").read_text("utf-8"))

    assert lock["lockfileVersion"] == 3
    kinds = ("dependencies", "devDependencies")
    assert [lock["packages"][""][kind] for kind in kinds] == [asked[kind] for kind in kinds]
    assert {each.name: each.version for each in javascript.locked()} == {
        **asked["dependencies"],
        **asked["devDependencies"],
    }
    assert javascript.NEEDED_BY.keys() == javascript.MEMBERS.keys()
    for each in javascript.locked():
        integrity = lock["packages"][f"node_modules/{each.name}"]["integrity"]
        assert integrity == "sha512-" + base64.b64encode(bytes.fromhex(each.sha512)).decode()


def test_the_paths_are_those_of_an_npm_registry() -> None:
    assert [each.path for each in javascript.locked()] == [
        "acorn/-/acorn-8.19.0.tgz",
        "@jitl/quickjs-wasmfile-release-sync/-/quickjs-wasmfile-release-sync-0.32.0.tgz",
        "swagger-ui-dist/-/swagger-ui-dist-5.35.0.tgz",
        "uplot/-/uplot-1.6.32.tgz",
        "axe-core/-/axe-core-4.14.1.tgz",
        "jsonpath-rfc9535/-/jsonpath-rfc9535-1.3.0.tgz",
    ]
