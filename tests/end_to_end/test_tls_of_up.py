"""`servioticy up` with a certificate: programs, the command and the console find each other."""

from __future__ import annotations

import re
import shlex
import ssl
import subprocess
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from running_platform import CommandFailedError, RunningPlatform
from support.authority import Authority
from support.mqtt_client import MqttClient

from servioticy.client import Follower, Rest
from servioticy.domain.model import StreamRef
from servioticy.embedded import tcp_ports

SIMPLE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunningPlatform, int]]:
    """The platform, and its port of MQTT by TLS."""
    files, port = authority.vouch(), tcp_ports.free()
    more = {
        "SERVIOTICY_TLS_CERTIFICATE": files.certificate,
        "SERVIOTICY_TLS_KEY": files.key,
        "SERVIOTICY_MQTT_TLS_PORT": str(port),
    }
    running = RunningPlatform(tmp_path_factory.mktemp("secure") / "data", 1, more=more)
    yield running, port
    assert running.stop() == 0


def test_all_of_it_speaks_tls(secure: tuple[RunningPlatform, int], authority: Authority) -> None:
    """From a PUT and a PUBLISH to a socket; reports and requests by message ask the API by TLS."""
    platform, mqtt_port = secure
    api, ca = f"https://127.0.0.1:{platform.api_port}", str(authority.file)
    with Rest(api, platform.token, ca=ca) as client:
        device = client.create(SIMPLE)
        client.put(device, "data", {"channels": {"v": {"current-value": 1}}, "lastUpdate": 1})
        live = f"wss://127.0.0.1:{platform.live_port}"
        follower = Follower(live, StreamRef(device, "data"), platform.token, 0, ca)
        with MqttClient(mqtt_port, platform.token, tls=authority.believed()) as messages:
            update = b'{"channels":{"v":{"current-value":2}},"lastUpdate":2}'
            messages.acknowledged(messages.publish(f"updates/{device}/data", update, 1))
        came = follower.updates()
        assert ['"lastUpdate":1' in next(came), '"lastUpdate":2' in next(came)] == [True] * 2


def test_the_command_knows_the_platform_of_this_machine_and_others_by_their_authority(
    secure: tuple[RunningPlatform, int], authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `tls_ca` it believes whom the machine believes, and that is not ours."""
    platform, _ = secure
    usage = ("usage", "--token", platform.token)
    elsewhere = (*usage, "--url", f"https://localhost:{platform.api_port}")

    platform.command(*usage)
    with pytest.raises(CommandFailedError, match="CERTIFICATE_VERIFY_FAILED"):
        platform.command(*elsewhere)
    monkeypatch.setitem(platform._environment, "SERVIOTICY_TLS_CA", str(authority.file))
    platform.command(*elsewhere)


def test_the_cookie_of_the_console_goes_by_tls_alone(
    secure: tuple[RunningPlatform, int], authority: Authority
) -> None:
    platform, _ = secure
    trust: ssl.SSLContext = authority.believed()
    connection = HTTPSConnection("127.0.0.1", platform.api_port, timeout=30, context=trust)
    origin = f"https://127.0.0.1:{platform.api_port}"
    connection.request(
        "POST",
        "/console/sign-in",
        f"token={platform.token}",
        {"Content-Type": "application/x-www-form-urlencoded", "Origin": origin},
    )
    answer = connection.getresponse()

    assert answer.status == 303
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-servioticy=")
    assert "Secure" in cookie


def test_the_page_asks_as_printed(
    secure: tuple[RunningPlatform, int], authority: Authority
) -> None:
    """With the authority of the tests in the place of a certificate that vouches for itself."""
    platform, _ = secure
    page = Path(__file__).parents[2].joinpath("docs/how-to/tls.md").read_text("utf-8")
    printed = re.findall(r"(?m)^curl .*$", page)

    assert len(printed) == 2
    for each in printed:
        said = each.replace("certificate.pem", str(authority.file))
        said = said.replace("8080", str(platform.api_port)).replace(
            "8081", str(platform.live_port)
        )
        subprocess.run(
            shlex.split(said.replace("curl", "curl -sf", 1)), check=True, capture_output=True
        )


def test_the_state_of_it_is_well(secure: tuple[RunningPlatform, int]) -> None:
    platform, mqtt_port = secure
    told = platform.command("status").stdout

    assert f"https://127.0.0.1:{platform.api_port}" in told
    assert f"wss://127.0.0.1:{platform.live_port}" in told
    assert f"mqtts://127.0.0.1:{mqtt_port}" in told
