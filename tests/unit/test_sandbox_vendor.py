"""What is not ours is what its authors published."""

from __future__ import annotations

import hashlib
from pathlib import Path

import sandbox

VENDOR = Path(sandbox.__file__).with_name("vendor")
SHA256 = {
    # npm pack acorn@8.19.0, dist/acorn.js and LICENSE
    "acorn-8.19.0.js": "b95392d79457d0357555c5ed3e56302d074b92dff119bcf3b44179500b10e9df",
    # npm pack @jitl/quickjs-wasmfile-release-sync@0.32.0, dist/emscripten-module.wasm, LICENSE
    "quickjs-0.32.0.wasm": "105c3bed22d457e43e3d1c3c1c6959fda62a8fe06f0fc8a985303c3a2be72232",
    "quickjs-LICENSE": "446a69ae534aa8612d8b16d3bfc670c5a5050597dca3ce9820441a60d5d04fbb",
    "acorn-LICENSE": "76a876cf886ff9be2a8b5e2e86514fed06223c8c9f0c1e9ee9606e93841e00b7",
}


def test_vendored_files_are_unchanged() -> None:
    """And there are no others."""
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.iterdir()}
    assert found == SHA256
