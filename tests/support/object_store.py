"""An S3-compatible store on this machine, for tests; it looks at no signature."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from servioticy.embedded import tcp_ports as ports

BEGIN = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]))
server.start()
print("ready", flush=True)
sys.stdin.read()
"""


class ObjectStore(NamedTuple):
    """Where it is, and by which keys."""

    port: int
    key: str
    secret: str
    client: Any
    """Of boto3."""

    def url(self, bucket: str, prefix: str = "{tenant}") -> str:
        return f"s3+http://{self.key}:{self.secret}@127.0.0.1:{self.port}/{bucket}/{prefix}"


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    import boto3

    port = ports.free()
    server = subprocess.Popen(
        [sys.executable, "-c", BEGIN, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert server.stdout is not None
        assert any(line == b"ready\n" for line in server.stdout)
        place = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}
        keys = {"aws_access_key_id": "reader", "aws_secret_access_key": "secret"}
        yield ObjectStore(port, "reader", "secret", boto3.client("s3", **place, **keys))
    finally:
        server.kill()
        server.wait()
