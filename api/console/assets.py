"""What pages load beside themselves: our modules and styles, and what `make setup` downloads.

All of it stands below an address that changes with it, so a browser asks once for each release.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from flask import Flask, Response, abort, request

from servioticy.domain.console import ROOT
from servioticy.embedded import javascript

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
FOR_EVER = "public, max-age=31536000, immutable"


@cache
def assets_of(downloaded: Path) -> Assets:
    """Return the files of an installation, read and packed once in a process."""
    return Assets(downloaded)


class Assets:
    """The files of one installation."""

    def __init__(self, downloaded: Path) -> None:
        """`downloaded` is the folder of those that are not ours."""
        self._downloaded = downloaded
        self._ours = {
            each.name: each.read_bytes()
            for each in files("api").joinpath("console/assets").iterdir()
        }
        self.version = hashlib.sha256(
            b"".join(self._ours[name] for name in sorted(self._ours)) + downloaded.name.encode()
        ).hexdigest()[:12]

    def address(self, name: str) -> str:
        """Return where a page finds a file, below the path of the installation."""
        return f"{ROOT}/assets/{self.version}/{name}"

    def content(self, name: str) -> tuple[bytes, bytes] | None:
        """Return a file, and the same packed; None: there is none."""
        found = self._ours.get(name)
        if found is None and name in javascript.CONSOLE_FILES:
            try:
                found = (self._downloaded / name).read_bytes()
            except FileNotFoundError:
                return None
        return None if found is None else (found, _packed(found))


@cache
def _packed(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def serve_assets(app: Flask, assets: Assets) -> None:
    """`/console/assets/{version}/{name}`; to everybody, as it is the same for all."""

    @app.get(f"{ROOT}/assets/<version>/<name>")
    def asset(version: str, name: str) -> Response:
        found = assets.content(name) if version == assets.version else None
        if found is None:
            abort(404)
        plain, packed = found
        is_packed = request.accept_encodings["gzip"] > 0
        response = Response(packed if is_packed else plain)
        response.content_type = TYPES[Path(name).suffix]
        response.headers["Cache-Control"] = FOR_EVER
        response.headers["Vary"] = "Accept-Encoding"
        if is_packed:
            response.headers["Content-Encoding"] = "gzip"
        return response
