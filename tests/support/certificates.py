"""Certificates for servers on this machine, where it can make them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def certified(folder: Path) -> Path | None:
    """The folder with a certificate that vouches for itself, and its key; None: no openssl."""
    program = shutil.which("openssl")
    if program is None:
        return None
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=tests -keyout key.pem"
    more = "-out certificate.pem -addext subjectAltName=IP:127.0.0.1"
    command = [program, *words.split(), *more.split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    parts = [(folder / name).read_text() for name in ("key.pem", "certificate.pem")]
    (folder / "both.pem").write_text("".join(parts))
    return folder
