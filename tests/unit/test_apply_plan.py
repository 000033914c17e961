"""What `servioticy apply` would do: names, references, differences, and the order of steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command.remote.documents import Step, plan, read_folder, resolved
from servioticy.client import ServiceObject
from servioticy.errors import ServioticyError

ID = "1401819725000a8098c1a57f24b3b9f8a5f4f8ad3c1e2"
SIMPLE: dict[str, Any] = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}


def over(*members: str) -> dict[str, Any]:
    """A document that reads streams of others."""
    return {**SIMPLE, "groups": {"g": {"soIds": list(members), "stream": "a"}}}


def stored(name: str, document: dict[str, Any] = SIMPLE, id_: str = ID) -> ServiceObject:
    """A Service Object as the platform tells it."""
    its = {"id": id_, "public": "false", "createdAt": 1, "updatedAt": 2, **document, "name": name}
    return ServiceObject(id_, its, '"1-1"')


def planned(folder: Path, documents: dict[str, Any], *found: ServiceObject) -> list[Step]:
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    by_name = {each.document["name"]: each for each in found}
    return plan(read_folder(folder), by_name, {name: each.id for name, each in by_name.items()})


def test_a_document_is_called_by_its_name_else_by_its_file(tmp_path: Path) -> None:
    steps = planned(tmp_path, {"file": SIMPLE, "other": {**SIMPLE, "name": "inside"}})

    assert {each.local.name for each in steps} == {"file", "inside"}
    assert all(each.local.document["name"] == each.local.name for each in steps)


def test_what_is_as_it_should_be_has_no_difference(tmp_path: Path) -> None:
    """Whatever the platform adds, and however the fields of the document are ordered."""
    document = {"streams": SIMPLE["streams"], "description": "d", "public": False}
    [step] = planned(tmp_path, {"a": document}, stored("a", {"description": "d", **SIMPLE}))

    assert not step.needed()


def test_the_order_of_streams_is_a_difference(tmp_path: Path) -> None:
    """It is the order of computing."""
    one, two = ({"channels": {"x": {"type": kind}}} for kind in ("number", "string"))
    [step] = planned(
        tmp_path,
        {"a": {"streams": {"b": two, "a": one}}},
        stored("a", {"streams": {"a": one, "b": two}}),
    )

    assert step.needed()


def test_the_difference_reads_as_a_diff_with_names(tmp_path: Path) -> None:
    before = {**over(ID), "streams": {}}
    found = [stored("raw"), stored("sum", before, ID[:-1] + "0")]
    steps = planned(tmp_path, {"sum": {**over("raw"), "streams": {"b": {}}}}, *found)

    lines = steps[0].difference.splitlines()
    assert lines[0] == f"--- sum ({ID[:-1]}0)"
    changed = [line for line in lines[2:] if line.startswith(("+", "-"))]
    assert changed == ['-  "streams": {}', '+  "streams": {', '+    "b": {}', "+  }"]
    assert ID not in steps[0].difference


def test_others_are_made_before_those_that_refer_to_them(tmp_path: Path) -> None:
    steps = planned(tmp_path, {"a": over("b", "c"), "b": over("c"), "c": SIMPLE})

    assert [each.local.name for each in steps] == ["c", "b", "a"]


def test_names_of_groups_become_ids_and_ids_stay(tmp_path: Path) -> None:
    [step] = planned(tmp_path, {"a": over("there", ID)}, stored("there", id_=ID[:-1] + "3"))

    ids = {"there": ID[:-1] + "3"}
    assert resolved(step.local.document, ids)["groups"]["g"]["soIds"] == [ID[:-1] + "3", ID]


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ({"a": over("nowhere")}, r"a\.json: .*the name 'nowhere'"),
        ({"a": over("b"), "b": over("a")}, "in a circle: "),
        ({"a": over("a")}, "in a circle: a -> a"),
        ({"a": {**SIMPLE, "name": "x"}, "b": {**SIMPLE, "name": "x"}}, "have one name"),
        ({"a": [1]}, "is no JSON object"),
        ({"a": {"name": 5}}, "its name is no text"),
        ({}, r"has no file \*\.json"),
    ],
)
def test_a_folder_that_makes_no_sense_is_refused(
    tmp_path: Path, documents: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ServioticyError, match=reason):
        planned(tmp_path, documents)


@pytest.mark.parametrize("text", ["{", "\xff", "[" * 100_000, '{"a":1}}'])
def test_a_file_that_is_no_document_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_bytes(text.encode("latin-1"))

    with pytest.raises(ServioticyError, match=r"a\.json cannot be read"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    "groups", [None, [], {"g": None}, {"g": {"soIds": "x"}}, {"g": {"soIds": [1]}}]
)
def test_groups_that_are_none_are_left_to_the_platform(tmp_path: Path, groups: Any) -> None:
    """It says what is wrong with them, with the place."""
    [step] = planned(tmp_path, {"a": {**SIMPLE, "groups": groups}})

    assert resolved(step.local.document, {"x": ID})["groups"] == groups


def a_workflow(source: str, sink: str, **more: Any) -> dict[str, Any]:
    ends = {
        end: {"stream": {"serviceObject": each, "stream": "a"}}
        for end, each in (("source", source), ("sink", sink))
    }
    return {**ends, "procedures": {"p": {"code": "x => x"}}, "links": [], **more}


def test_a_workflow_comes_after_the_service_objects_whose_streams_it_names(
    tmp_path: Path,
) -> None:
    documents = {"a-flow": a_workflow("z", "other"), "z": SIMPLE}
    other = stored("other")
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))

    steps = plan(read_folder(tmp_path), {}, {"other": other.id})

    assert [(each.local.name, each.local.is_workflow) for each in steps] == [
        ("z", False),
        ("a-flow", True),
    ]
    sent = resolved(steps[1].local.document, {"z": ID, "other": other.id})
    assert sent["source"]["stream"] == {"serviceObject": ID, "stream": "a"}
    assert sent["name"] == "a-flow"


def test_a_workflow_that_is_as_it_should_be_has_no_difference(tmp_path: Path) -> None:
    """Though the platform tells its streams by ids; one that is not is shown by names."""
    document = a_workflow("z", "z")
    (tmp_path / "flow.json").write_text(json.dumps(document))
    there = a_workflow(ID, ID, name="flow")
    ids = {"z": ID}

    [same] = plan(read_folder(tmp_path), {"flow": ServiceObject("w", there, '"1"')}, ids)
    other = {**there, "procedures": {"p": {"code": "y => y"}}}
    [changed] = plan(read_folder(tmp_path), {"flow": ServiceObject("w", other, '"1"')}, ids)

    assert not same.needed()
    assert '-      "code": "y => y"' in changed.difference
    assert ID not in changed.difference


def test_a_workflow_is_no_service_object_that_streams_could_be_of(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(a_workflow("two", "two")))
    (tmp_path / "two.json").write_text(json.dumps(a_workflow("z", "z")))

    with pytest.raises(ServioticyError, match="'two' is no Service Object"):
        plan(read_folder(tmp_path), {}, {"z": ID})
