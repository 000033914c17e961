"""An S3-compatible store on this machine, for tests; it looks at every signature."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

from servioticy.embedded import tcp_ports as ports

BEGIN = """
import sys
from flask import request
from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.iam.access_control import S3IAMRequest
from moto.iam.models import iam_backends
from moto.server import ThreadedMotoServer

# What is signed is what was asked for. `moto` itself signs a decoded form of it, so it would
# refuse whoever, boto3 too, asks for a name or a prefix with a `/` or a `+` in its query.
asked_for = S3IAMRequest._create_aws_request
def as_it_was_asked(self):
    self._path = request.environ["REQUEST_URI"]
    return asked_for(self)
S3IAMRequest._create_aws_request = as_it_was_asked

everything = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}'
users = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
users.create_user("us-east-1", "reader")
users.put_user_policy("reader", "everything", everything)
key = users.create_access_key("reader")
settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1])).start()
print("ready", key.access_key_id, key.secret_access_key, flush=True)
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
        keys = f"{self.key}:{quote(self.secret, safe='')}"
        return f"s3+http://{keys}@127.0.0.1:{self.port}/{bucket}/{prefix}"


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
        (key, secret) = next(
            line.decode().split()[1:] for line in server.stdout if line.startswith(b"ready ")
        )
        place = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}
        keys = {"aws_access_key_id": key, "aws_secret_access_key": secret}
        yield ObjectStore(port, key, secret, boto3.client("s3", **place, **keys))
    finally:
        server.kill()
        server.wait()
