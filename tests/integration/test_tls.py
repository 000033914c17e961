"""TLS at every port, with real certificates: who is let in, who is not, and what that costs."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import waiting
from support.authority import DAY, Authority
from support.edge_builders import QUICK, Serving, Told
from support.memory import MemoryPlatform
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker, an_update
from support.running_delivery import RunningDelivery
from websockets.sync.client import connect

from servioticy.client import Rest
from servioticy.doors import vestibule
from servioticy.doors.certificate import Certificate
from servioticy.errors import SettingsError, SetupError, Unavailable
from servioticy.settings import changed

SECONDS = 20.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def shown(authority: Authority) -> Certificate:
    return authority.show()


@pytest.fixture
def api(shown: Certificate) -> Iterator[Serving]:
    serving = Serving(
        changed(QUICK, max_body_bytes=4_000_000, api_held_bytes=1 << 26),
        Told(),
        MemoryPlatform(),
        certificate=shown,
    )
    yield serving
    serving.stop()


def ask(
    api: Serving, trust: ssl.SSLContext, path: str = "/hello", body: bytes | None = None
) -> http.client.HTTPResponse:
    connection = http.client.HTTPSConnection("127.0.0.1", api.port, timeout=SECONDS, context=trust)
    connection.request("GET" if body is None else "POST", path, body, {"Authorization": "a"})
    return connection.getresponse()


def plain(port: int, said: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), SECONDS) as client:
        client.sendall(said)
        found = b""
        while some := client.recv(65_536):
            found += some
        return found


def test_who_believes_the_authority_is_answered(api: Serving, authority: Authority) -> None:
    assert ask(api, authority.believed()).read() == b"hello"


def test_what_is_large_goes_both_ways_whole(api: Serving, authority: Authority) -> None:
    """Many records, more than a turn takes, and more than Linux keeps."""
    body = bytes(range(256)) * 12_000

    assert ask(api, authority.believed(), "/echo", body).read() == body
    assert len(ask(api, authority.believed(), "/pages").read()) == 20_000_000


def test_a_connection_is_kept_between_requests(api: Serving, authority: Authority) -> None:
    connection = http.client.HTTPSConnection(
        "127.0.0.1", api.port, timeout=SECONDS, context=authority.believed()
    )
    for name in ("one", "two", "three"):
        connection.request("GET", f"/{name}", headers={"Authorization": "a"})
        assert connection.getresponse().read() == name.encode()

    assert api.door.taken_in == 1


def test_who_believes_another_authority_does_not_go_on(api: Serving, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(api, Authority(tmp_path, "another").believed())


def test_what_has_ended_is_warned_of_and_clients_turn_away(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no reason not to start: whoever renews it need not start us."""
    shown = authority.show(ends=-DAY)
    serving = Serving(QUICK, Told(), MemoryPlatform(), certificate=shown)
    try:
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            ask(serving, authority.believed())
    finally:
        serving.stop()

    assert "certificate_has_ended" in caplog.messages


def test_plain_text_is_told_that_this_port_speaks_tls(api: Serving) -> None:
    answer = plain(api.port, b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"https://" in answer


def test_an_older_version_is_not_spoken(api: Serving, authority: Authority) -> None:
    trust = authority.believed()
    trust.minimum_version = ssl.TLSVersion.TLSv1
    trust.maximum_version = ssl.TLSVersion.TLSv1_1
    trust.set_ciphers("ALL:@SECLEVEL=0")

    with pytest.raises(ssl.SSLError):
        ask(api, trust)


def test_version_1_2_is_spoken(api: Serving, authority: Authority) -> None:
    trust = authority.believed()
    trust.maximum_version = ssl.TLSVersion.TLSv1_2

    assert ask(api, trust).read() == b"hello"


def test_who_shakes_hands_slowly_is_let_go_and_others_are_served(
    api: Serving, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it says nothing, or a byte of its hello at a time."""
    monkeypatch.setattr(vestibule, "HANDSHAKE_SECONDS", 0.5)
    hello = _hello(authority.believed())
    slow = [socket.create_connection(("127.0.0.1", api.port), SECONDS) for _ in range(50)]
    for number, client in enumerate(slow):
        client.sendall(hello[: number % 40])

    assert ask(api, authority.believed()).read() == b"hello"
    for client in slow:
        with client:
            assert _is_closed(client)


def test_so_many_shake_hands_and_no_more(
    shown: Certificate, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has done so for longest makes room."""
    monkeypatch.setattr("api.server.at_the_door", lambda _files: 10)
    serving = Serving(QUICK, Told(), MemoryPlatform(), certificate=shown)
    hello = _hello(authority.believed())
    slow = []
    try:
        for _ in range(30):
            client = socket.create_connection(("127.0.0.1", serving.port), SECONDS)
            client.sendall(hello[:20])
            slow.append(client)
        assert _is_closed(slow[0])
        assert ask(serving, authority.believed()).read() == b"hello"
        waiting.until(lambda: len(serving.door.vestibule) <= 10)  # type: ignore[attr-defined]
    finally:
        for client in slow:
            client.close()
        serving.stop()


def test_steps_of_handshakes_are_turns_of_strangers(api: Serving, authority: Authority) -> None:
    """While they owe the loop some rest nobody's hands are shaken, and who is inside is served."""
    trust = authority.believed()
    connection = http.client.HTTPSConnection("127.0.0.1", api.port, timeout=SECONDS, context=trust)
    connection.request("GET", "/hello", headers={"Authorization": "a"})
    assert connection.getresponse().read() == b"hello"
    api._loop.call_soon_threadsafe(api.door._porch.charge, 0.1)
    answered = threading.Event()
    thread = threading.Thread(target=lambda: (ask(api, trust).read(), answered.set()))
    thread.start()

    connection.request("GET", "/again", headers={"Authorization": "a"})
    assert connection.getresponse().read() == b"again"
    assert not answered.is_set()
    thread.join(SECONDS)
    assert answered.is_set()


def test_new_connections_get_the_new_certificate_and_old_ones_go_on(
    api: Serving, shown: Certificate, authority: Authority
) -> None:
    trust = authority.believed()
    before = http.client.HTTPSConnection("127.0.0.1", api.port, timeout=SECONDS, context=trust)
    before.connect()
    first = _serial(before)
    failed: list[Exception] = []
    stop = threading.Event()

    def traffic() -> None:
        while not stop.is_set():
            try:
                assert ask(api, trust).read() == b"hello"
            except Exception as error:
                failed.append(error)
                return

    thread = threading.Thread(target=traffic)
    thread.start()
    shown.start()
    authority.vouch()

    def is_another() -> bool:
        after = http.client.HTTPSConnection("127.0.0.1", api.port, timeout=SECONDS, context=trust)
        after.connect()
        return _serial(after) != first

    waiting.until(is_another)
    before.request("GET", "/still", headers={"Authorization": "a"})
    assert before.getresponse().read() == b"still"
    stop.set()
    thread.join(SECONDS)
    shown.stop()
    assert failed == []


def test_half_of_a_new_certificate_leaves_the_old_one_in_use(
    api: Serving, shown: Certificate, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.vouch("other")
    own = authority.file.parent / "server.crt"
    whole = own.read_bytes()
    own.write_bytes(Path(files.certificate).read_bytes())

    assert not shown.look()
    assert "certificate_not_taken" in caplog.messages
    assert ask(api, authority.believed()).read() == b"hello"
    own.write_bytes(whole)
    assert shown.look()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"certificate": "/nowhere.pem"}, "tls_certificate = /nowhere.pem: No such file"),
        ({"key": "/nowhere.pem"}, "tls_key = /nowhere.pem: No such file"),
        ({"client_ca": "/nowhere.pem"}, "mqtt_client_ca = /nowhere.pem: No such file"),
    ],
)
def test_a_file_that_is_missing_ends_the_start(
    authority: Authority, change: dict[str, str], told: str
) -> None:
    with pytest.raises(SetupError, match=told):
        Certificate(replace(authority.vouch(), **change))


def test_what_does_not_fit_ends_the_start(authority: Authority) -> None:
    own, other = authority.vouch(), authority.vouch("other")

    with pytest.raises(SetupError, match="is not the key of"):
        Certificate(replace(own, key=other.key))
    with pytest.raises(SetupError, match="no certificate in it"):
        Certificate(replace(own, certificate=own.key))
    with pytest.raises(SetupError, match="no key in it"):
        Certificate(replace(own, key=own.certificate))
    with pytest.raises(SettingsError, match="tls_key is not set"):
        Certificate(replace(own, key=""))


def test_a_locked_key_needs_its_password(authority: Authority) -> None:
    locked = authority.vouch(password="open")

    assert Certificate(locked).context
    with pytest.raises(SetupError, match="tls_key_password"):
        Certificate(replace(locked, key_password="other"))


def test_our_client_believes_the_authority_that_it_is_given(
    api: Serving, authority: Authority
) -> None:
    url = f"https://127.0.0.1:{api.port}"
    with Rest(url, "a", ca=str(authority.file)) as client:
        assert client.run is not None
        assert client._http.get("/hello").content == b"hello"
    with Rest(url, "a") as client, pytest.raises(Unavailable):
        client.ids()
    with pytest.raises(SettingsError, match="expected a PEM file"):
        Rest(url, "a", ca="/nowhere.pem")


def test_a_socket_is_opened_by_tls(shown: Certificate, authority: Authority) -> None:
    with (
        RunningDelivery(certificate=shown) as delivery,
        connect(
            f"wss://127.0.0.1:{delivery.port}/pump/streams/flow/live",
            ssl=authority.believed(),
            additional_headers={"Authorization": "token-1"},
        ) as client,
    ):
        delivery.publish(an_update(0))
        assert client.recv(SECONDS) == an_update(0).decode()
        answer = plain(delivery.port, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("transport", ["tcp", "websockets"])
def test_mqtt_is_spoken_by_tls_and_beside_it_plainly(
    shown: Certificate, authority: Authority, transport: str
) -> None:
    with RunningBroker(certificate=shown) as broker:
        with MqttClient(
            broker.tls_port, "token-1", transport=transport, tls=authority.believed()
        ) as client:
            client.acknowledged(client.publish("updates/pump/flow", an_update(7), 1))
        with MqttClient(broker.port, "token-1") as client:
            client.acknowledged(client.publish("updates/pump/flow", an_update(8), 1))
        assert plain(broker.tls_port, b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00") == b""
        assert broker.log.updates == [an_update(7), an_update(8)]


def test_stomp_is_spoken_by_tls(shown: Certificate, authority: Authority) -> None:
    with (
        RunningBroker(certificate=shown) as broker,
        socket.create_connection(("127.0.0.1", broker.tls_port), SECONDS) as bare,
        authority.believed().wrap_socket(bare, server_hostname="127.0.0.1") as client,
    ):
        client.sendall(b"CONNECT\naccept-version:1.2\nhost:x\nlogin:a\npasscode:token-1\n\n\0")
        assert client.recv(1000).startswith(b"CONNECTED\n")


def test_a_client_has_to_show_a_certificate_where_an_authority_for_them_is_named(
    authority: Authority, tmp_path: Path
) -> None:
    clients = Authority(tmp_path, "clients")
    shown = Certificate(replace(authority.vouch(), client_ca=str(clients.file)))
    with RunningBroker(certificate=shown) as broker:
        trust = authority.believed(clients.vouch("device"))
        with MqttClient(broker.tls_port, "token-1", tls=trust) as client:
            assert client.refusal is None
        for own in (None, authority.vouch("stranger")):
            with (
                pytest.raises((ssl.SSLError, ConnectionError)),
                socket.create_connection(("127.0.0.1", broker.tls_port), SECONDS) as bare,
                authority.believed(own).wrap_socket(bare, server_hostname="127.0.0.1") as tls,
            ):
                assert tls.recv(1)  # the refusal comes behind the client's own last word
                raise AssertionError("it was let in")


def _is_closed(client: socket.socket) -> bool:
    """Wait for its end; what it has said and nobody has read makes that a reset."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def _serial(connection: http.client.HTTPSConnection) -> object:
    return connection.sock.getpeercert()["serialNumber"]


def _hello(trust: ssl.SSLContext) -> bytes:
    """The first bytes of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trust.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()
