"""What the console shows to be run is run as it stands, whatever things are called."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from api.console.connecting import About, claiming, sending
from api.console.documents import Stream, streams_of
from servioticy.domain.console import Place

ABOUT = About(Place("http://127.0.0.1:8080"), 1883)
NAMES = ["air", "it's", 'a"b', "$(touch here)", "ä ö", "a`b`", "back\\slash"]


def run(command: str, program: str) -> list[str]:
    """What a program is given by a shell that runs the command."""
    script = f'{program}() {{ for each in "$@"; do printf "%s\\0" "$each"; done; }}\n{command}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_sends_the_update(name: str) -> None:
    stream = Stream("s", {name: {"type": "number"}})

    found = run(sending("id", stream, "TOKEN", ABOUT).curl, "curl")
    assert found[:3] == ["-X", "PUT", "http://127.0.0.1:8080/id/streams/s"]
    assert "Authorization: TOKEN" in found
    update = json.loads(found[-1])
    assert update["channels"] == {name: {"current-value": 21.5}}
    assert update["lastUpdate"] > 1_700_000_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_may_be_called_anything(name: str) -> None:
    stream = Stream(name, {"x": {"type": "boolean"}})
    commands = sending("id", stream, "TOKEN", ABOUT)

    assert run(commands.curl, "curl")[2].startswith("http://127.0.0.1:8080/id/streams/")
    assert f"updates/id/{name}" in run(commands.mqtt, "mosquitto_pub")


@pytest.mark.parametrize("name", NAMES)
def test_a_device_claims_with_a_key_of_its_own(name: str) -> None:
    found = run(claiming("CODE", name, ABOUT).curl, "curl")

    said = json.loads(found[-1])
    assert (said["code"], said["device"]) == ("CODE", name)
    assert len(said["key"]) == 32


def test_without_mqtt_no_line_for_it_is_shown() -> None:
    commands = sending("id", Stream("s", {}), "TOKEN", About(Place("http://127.0.0.1:8080"), 0))
    assert commands.mqtt == ""


def test_the_code_for_a_camera_has_no_styles_that_the_policy_refuses() -> None:
    svg = sending("id", Stream("s", {}), "TOKEN", ABOUT).qr
    assert (svg.startswith("<svg"), "style=" in svg) == (True, False)


def test_what_a_device_sends_comes_before_what_is_derived() -> None:
    document = {
        "streams": {
            "b": {"channels": {"x": {"type": "number", "current-value": "1"}}},
            "a": {"channels": {"x": {"type": "number"}}},
        }
    }
    assert [(each.name, each.is_derived) for each in streams_of(document)] == [
        ("a", False),
        ("b", True),
    ]


def test_commands_are_one_for_a_shell() -> None:
    curl = sending("id", Stream("s", {"x": {"type": "number"}}), "TOKEN", ABOUT).curl
    assert shlex.split(curl.replace("\\\n", " "))[0] == "curl"
