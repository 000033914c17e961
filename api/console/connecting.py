"""What a device needs to send: its token, and commands that can be run as they stand."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

import segno

from api.console.asking import path_of
from api.console.documents import Stream
from servioticy.domain.console import Place

_NOW = "'$(date +%s)000'"
"""In a text in single quotes for a shell: milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class About:
    """Where devices find the platform."""

    place: Place
    mqtt_port: int
    """0: there is none"""

    @property
    def mqtt_host(self) -> str:
        """The host of the API, without a port."""
        return urlsplit(self.place.url).hostname or "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Commands:
    """What can be run to send an update."""

    curl: str
    mqtt: str
    """empty: there is no MQTT"""
    qr: str
    """SVG of what an app that sets devices up can read"""


def sending(service_object: str, stream: Stream, token: str, about: About) -> Commands:
    """Return the commands by which this device sends one update of this stream."""
    update = _update(stream)
    url = about.place.url + path_of(service_object, "streams", stream.name)
    curl = f"curl -X PUT {shlex.quote(url)} \\\n-H 'Authorization: {token}' \\\n-d '{update}'"
    topic = shlex.quote(f"updates/{service_object}/{stream.name}")
    mqtt = (
        f"mosquitto_pub -h {about.mqtt_host} -p {about.mqtt_port} -q 1 -u device -P {token} \\\n"
        f"-t {topic} \\\n-m '{update}'"
    )
    said = {"url": about.place.url, "id": service_object, "stream": stream.name, "token": token}
    return Commands(curl, mqtt if about.mqtt_port else "", qr_code(said))


def claiming(code: str, device: str, about: About) -> Commands:
    """Return the command by which a device gets a token of its own for a claim code."""
    said = {"code": code, "device": device}
    text = json.dumps(said | {"key": "KEY"}, ensure_ascii=False, separators=(",", ":"))
    quoted = text.replace("'", "'\\''").replace('"KEY"', "\"'$KEY'\"")
    curl = (
        "KEY=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \\n')\n"
        f"curl {shlex.quote(about.place.url + '/claims')} -d '{quoted}'"
    )
    return Commands(curl, "", qr_code({"url": about.place.url, "code": code}))


def qr_code(said: dict[str, str]) -> str:
    """Return a QR code of this, as SVG without a size of its own."""
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    made: str = segno.make(text, error="m", micro=False).svg_inline(
        omitsize=True, svgclass="qr", lineclass=None, dark="#000", light="#fff", border=2
    )
    return made


def _update(stream: Stream) -> str:
    """Return an update as JSON between single quotes, with the time in which it is sent."""
    channels = {name: {"current-value": stream.sample(name)} for name in stream.channels}
    text = json.dumps({"channels": channels}, ensure_ascii=False, separators=(",", ":"))
    return text[:-1].replace("'", "'\\''") + f',"lastUpdate":{_NOW}}}'
