"""Workflows at the console over the real API: made, watched, sent to, redriven, taken back."""

from __future__ import annotations

import html
import re

import pytest
from api_builders import NOW, Caller, Platform, Served
from console_visits import client, csrf, signed_in, tenant
from flask.testing import FlaskClient
from fleet_builders import get, post
from workflow_builders import a_document, a_queue

from api.app import create_app
from api.console.workflow_editor import FIRST
from sandbox.text import argument_names
from servioticy.ports.atoms import Product, Work
from servioticy.settings import Settings
from servioticy.storage.atoms import PostgresAtoms

__all__ = ["client", "tenant"]

NOW_MS = int(NOW * 1000)


@pytest.fixture
def served(backend: Platform) -> Served:
    return Served(create_app(backend.ports, Settings(), lambda: NOW, argument_names), backend)


def made(tenant: Caller, *names: str, **more: object) -> str:
    id_: str = post(tenant, "/workflows", a_document(*names, **more), 201)["id"]
    return id_


def text_of(client: FlaskClient, path: str) -> str:
    """What stands in the field of the document."""
    found = re.search(r'<textarea id="text".*?>(.*?)</textarea>', client.get(path).text, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


def test_the_first_one_is_made_as_it_is_offered(client: FlaskClient, tenant: Caller) -> None:
    assert "There is no workflow yet" in client.get("/console/workflows").text
    path = "/console/workflows/new"
    form = {"csrf": csrf(client), "text": text_of(client, path)}
    answer = client.post(path, data=form)

    assert (answer.status_code, answer.headers["Location"][-10:]) == (303, "?done=made")
    ((id_,),) = [[each["id"]] for each in get(tenant, "/workflows")["data"]]
    assert get(tenant, f"/workflows/{id_}")["document"] == FIRST
    page = client.get(f"/console/workflows/{id_}?done=made").text
    assert "The workflow is made" in page
    assert "Readings" in client.get("/console/workflows").text


def test_what_is_wrong_with_a_document_is_told_in_its_place(
    client: FlaskClient, tenant: Caller
) -> None:
    path = "/console/workflows/new"
    text = text_of(client, path)
    for wrong, line in (("function(atom) {", "atom"), ('"sink"]', '"sinc"]')):
        form = {"csrf": csrf(client), "text": text.replace(wrong, line)}
        answer = client.post(path, data=form)
        assert (answer.status_code, "to mend" in answer.text) == (400, True)
        assert "Line " in answer.text
        assert html.escape(line, quote=False) in html.unescape(answer.text)
    answer = client.post(path, data={"csrf": csrf(client), "text": "{"})
    assert (answer.status_code, "Line 1, column 2" in answer.text) == (400, True)
    assert get(tenant, "/workflows")["data"] == []


def test_a_version_is_saved_and_taken_back(client: FlaskClient, tenant: Caller) -> None:
    id_ = made(tenant, name="<b>Hall")
    path = f"/console/workflows/{id_}/document"
    page = client.get(path).text
    etag = re.search('name="etag" value="([^"]*)"', page)
    assert etag is not None
    form = {"csrf": csrf(client), "etag": html.unescape(etag[1])}
    text = text_of(client, path)
    answer = client.post(path, data=form | {"text": text.replace("return atom", "return null")})
    assert answer.status_code == 303, answer.text

    answer = client.post(path, data=form | {"text": text})
    assert (answer.status_code, "changed since" in answer.text) == (412, True)
    page = client.get(f"/console/workflows/{id_}").text
    assert "&lt;b&gt;Hall" in page
    assert "version 2" in page
    again = f"/console/workflows/{id_}/versions/1"
    assert client.post(again, data={"csrf": csrf(client)}).status_code == 303
    told = get(tenant, f"/workflows/{id_}")
    assert (told["version"], "null" in str(told["document"])) == (3, False)
    assert client.post(f"/console/workflows/{id_}/delete", data=form).status_code == 303
    assert client.get(f"/console/workflows/{id_}").status_code == 404


def test_how_it_stands_is_seen_and_what_died_waits_once_more(
    client: FlaskClient, tenant: Caller, served: Served
) -> None:
    id_ = made(tenant, "clean", "sort")
    path = f"/console/workflows/{id_}"
    carried = {"csrf": csrf(client)}
    sent = client.post(f"{path}/atoms", data=carried | {"atoms": '[{"n":1},{"n":2},{"n":3}]'})
    assert (sent.status_code, sent.headers["Location"]) == (303, f"{path}?done=sent")
    address = served.platform.ports.addresses.address(tenant.token, None, None)
    assert address is not None
    atoms = PostgresAtoms(served.platform.database.delivery)
    queue = a_queue(address.caller, id_)
    begun = atoms.begin(queue, lambda _: True, NOW_MS, NOW_MS + 5, NOW_MS + 9)
    assert begun is not None
    instance, (one,) = begun
    two, _ = atoms.take(queue, instance, 2, NOW_MS, NOW_MS + 9)
    atoms.finish(queue, instance, [one.id], [Product(one.id, 1, 0, b'{"m":1}')], NOW_MS)
    atoms.bury(queue, instance, {two.id: "error: <x>"}, NOW_MS)
    atoms.note([Work(queue.tenant, id_, "clean", 1, 1, 2, 1, 3_600_000)])

    page = client.get(path).text
    assert re.search(r'data-box="clean"[^<]*>', page)
    assert 'class="node derived wrong"' in page
    assert "error: &lt;x&gt;" in page
    assert "{&#34;n&#34;:2}" in page
    assert f'data-workflow="{id_}"' in page
    listed = client.get("/console/workflows").text
    assert '<span class="badge bad">1</span>' in listed
    assert client.post(f"{path}/redrive", data=carried).status_code == 303
    assert get(tenant, f"/workflows/{id_}/dead-letters")["data"] == []


@pytest.mark.parametrize("atoms", ["{", "[]", "7", '[{"n":1},2]', ""])
def test_what_is_no_atom_is_refused_and_nothing_is_lost(
    client: FlaskClient, tenant: Caller, atoms: str
) -> None:
    id_ = made(tenant)
    path = f"/console/workflows/{id_}/atoms"
    answer = client.post(path, data={"csrf": csrf(client), "atoms": atoms})

    assert (answer.status_code, 'role="alert"' in answer.text) == (400, True)
    assert f">{atoms}</textarea>" in html.unescape(answer.text)
    assert get(tenant, f"/workflows/{id_}/status")["waiting"] == 0


def test_more_than_a_page_has_are_leafed_through(client: FlaskClient, tenant: Caller) -> None:
    ids = [made(tenant) for _ in range(21)]
    first = client.get("/console/workflows").text
    following = re.search(r'href="(/console/workflows\?[^"]*cursor=[^"]*)"', first)
    assert following is not None
    second = client.get(html.unescape(following[1])).text
    assert [each in first for each in ids].count(True) == 20
    assert [each in second for each in ids].count(True) == 1


def test_nobody_elses_is_there(client: FlaskClient, served: Served) -> None:
    other = served.tenant("b")
    id_ = made(other)
    carried = {"csrf": csrf(client)}
    for path in ("", "/document"):
        assert client.get(f"/console/workflows/{id_}{path}").status_code == 404
    for path in ("/redrive", "/delete", "/versions/1"):
        assert client.post(f"/console/workflows/{id_}{path}", data=carried).status_code == 404
        assert client.post(f"/console/workflows/{id_}{path}").status_code == 403
    assert get(other, f"/workflows/{id_}")["version"] == 1


def test_who_may_not_read_atoms_sees_how_the_workflow_stands(
    served: Served, tenant: Caller
) -> None:
    id_ = made(tenant)
    wanted = {"name": "lister", "rights": ["list"]}
    token = tenant.ask("POST", "/tokens", json=wanted).get_json()["token"]
    page = signed_in(served, token).get(f"/console/workflows/{id_}")
    assert page.status_code == 200
    assert "What came out" not in page.text
