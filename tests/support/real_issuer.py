"""An OpenID Connect provider of others on the loopback, and persons who log in at it.

It is npm's `oidc-provider`, whose files are downloaded once, by the hashes of its lock file, as
the sandbox's are (docs/decisions/0017). It needs Node.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import waiting
from joserfc.jwk import ECKey

from servioticy.embedded import downloads
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.downloads import Download, Repository
from servioticy.embedded.javascript import Package
from servioticy.settings import load

HERE = Path(__file__).parent / "issuer"
AUDIENCE, ELSEWHERE = "https://iot.example.org", "https://other.example.org"
CALLBACK = "http://127.0.0.1/callback"
MODULE = "node_modules/"


def packages() -> dict[str, Package]:
    """The packages of the lock file, each by the folder that it stands in."""
    entries = json.loads((HERE / "package-lock.json").read_text("utf-8"))["packages"]
    found = {}
    for place, entry in entries.items():
        if place:
            digest = base64.b64decode(entry["integrity"].removeprefix("sha512-"), validate=True)
            name = place.rpartition(MODULE)[2]
            found[place] = Package(name, entry["version"], digest.hex())
    return found


def installed() -> Path:
    """The folder of the program and of all that it needs; made where it is not there."""
    settings, wanted = load(), packages()
    digest = hashlib.sha256("".join(each.sha512 for each in wanted.values()).encode()).hexdigest()
    target = settings.embedded.javascript_path.parent / "issuer" / digest[:12]
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            new = Path(folder) / "new"
            tarballs = Path(folder) / "tarballs"
            tarballs.mkdir()
            distinct = {each.sha512: each for each in wanted.values()}
            npm = Repository(settings.embedded.npm, "SERVIOTICY_NPM", "npm", str(HERE))
            files = [
                Download(each.path, tarballs / each.sha512, f"sha512:{each.sha512}")
                for each in distinct.values()
            ]
            downloads.fetch(npm, files, lambda *_: None)
            for place, package in wanted.items():
                unpack(tarballs / package.sha512, new / place)
            if not target.exists():
                new.rename(target)
    shutil.copy(HERE / "issuer.mjs", target)
    return target


def unpack(tarball: Path, place: Path) -> None:
    """Put into a folder what the package has in its first one, whatever that is called."""
    with tarfile.open(tarball) as archive:
        for member in archive:
            _first, _, name = member.name.partition("/")
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None and ".." not in Path(name).parts:
                file = place / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())


class RealIssuer:
    """Starts and stops it; it keeps its address and changes its keys."""

    def __init__(self) -> None:
        self.port = ports.free()
        self.url = f"http://127.0.0.1:{self.port}"
        self._program: subprocess.Popen[bytes] | None = None
        self.rotate()

    def rotate(self) -> None:
        """Sign with another key from the next start on."""
        named: Any = {"kid": secrets.token_hex(4), "use": "sig", "alg": "ES256"}
        self._key = ECKey.generate_key("P-256", named)

    def start(self, seconds: int = 600) -> None:
        """Give tokens that are good for so long from now on."""
        self.stop()
        wanted: dict[str, Any] = {"port": self.port, "keys": [self._key.as_dict(private=True)]}
        wanted |= {"audience": AUDIENCE, "seconds": seconds}
        beside = Path(sys.executable).parent / "node"  # of the wheel, where the machine has none
        node = str(beside) if beside.exists() else shutil.which("node")
        assert node is not None, "Node is missing: run `make setup`"
        command = [node, "issuer.mjs", json.dumps(wanted)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._program = subprocess.Popen(command, cwd=installed(), env=os.environ, **quiet)
        waiting.until(self._answers)

    def stop(self) -> None:
        """Be away."""
        if self._program is not None:
            self._program.kill()
            self._program.wait()

    def log_in(self, subject: str, resource: str = AUDIENCE) -> dict[str, Any]:
        """Log a person in as a browser would, with PKCE; returns the tokens."""
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
        own = {"client_id": "dashboard", "redirect_uri": CALLBACK, "resource": resource}
        asked = {**own, "response_type": "code", "scope": "openid use"}
        asked |= {"code_challenge": challenge.rstrip(b"=").decode()}
        asked |= {"code_challenge_method": "S256"}
        back = self.back(httpx.URL(f"{self.url}/auth", params=asked), subject)
        wanted = {**own, "grant_type": "authorization_code", "code": back.params["code"]}
        with httpx.Client(base_url=self.url, trust_env=False, timeout=60) as browser:
            answer = browser.post("/token", data={**wanted, "code_verifier": verifier})
        assert answer.status_code == httpx.codes.OK, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def back(self, there: httpx.URL, subject: str) -> httpx.URL:
        """Log in where an application has sent the browser; return where that is sent back to."""
        with httpx.Client(base_url=self.url, trust_env=False, timeout=60) as browser:
            place = str(browser.get(there).headers["Location"])
            while not place.startswith(there.params["redirect_uri"]):
                page = browser.get(place)
                if page.status_code == httpx.codes.OK:
                    (prompt,) = re.findall(r'name="prompt" value="(\w+)"', page.text)
                    filled = {"prompt": prompt, "login": subject, "password": "of a test"}
                    page = browser.post(place, data=filled)
                place = page.headers["Location"]
        return httpx.URL(place)

    def _answers(self) -> bool:
        assert self._program is not None and self._program.poll() is None
        try:
            place = f"{self.url}/.well-known/openid-configuration"
            return httpx.get(place, trust_env=False).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False


@contextmanager
def real_issuer() -> Iterator[RealIssuer]:
    """Run it for a while."""
    found = RealIssuer()
    found.start()
    try:
        yield found
    finally:
        found.stop()
