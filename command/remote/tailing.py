"""`servioticy tail`: the updates of a stream as they come."""

from __future__ import annotations

import argparse
import ssl
import sys

from command.remote import access, naming
from servioticy.client import follower
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print the updates of a stream until Ctrl-C."""
    token = access.token(parsed)
    live, api_url = access.urls_of_live(parsed, settings)
    ca = access.believed(live, settings)
    stream = _stream(parsed.words, api_url, token, access.believed(api_url, settings))
    for frame in follower.Follower(live, stream, token, parsed.after, ca).updates():
        sys.stdout.write((frame if parsed.json else follower.line(frame)) + "\n")
        sys.stdout.flush()
    return 0


def _stream(words: list[str], api_url: str, token: str, ca: ssl.SSLContext | str) -> StreamRef:
    """Ask the API only for what delivery does not know: names."""
    if naming.is_id(words):
        return StreamRef(*words)
    from servioticy.client import Rest

    with Rest(api_url, token, ca=ca) as api:
        return StreamRef(*naming.stream_of(words, api))
