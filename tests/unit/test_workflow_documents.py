"""A workflow is checked before it runs: what is wrong with it, and where."""

from __future__ import annotations

from typing import Any

import pytest
from workflow_builders import CODE, a_document, a_workflow

from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.program_code import ProgramCode
from servioticy.domain.workflows import reading
from servioticy.domain.workflows.model import COLLECT, STREAM
from servioticy.domain.workflows.picture import picture
from servioticy.domain.workflows.programs import MAX_ATOM_BYTES, fault_of
from servioticy.domain.workflows.reading import parse_workflow


def with_procedure(**more: Any) -> dict[str, Any]:
    return a_document(procedures={"clean": {"code": CODE, **more}})


def with_program(operator: Any, **more: Any) -> dict[str, Any]:
    return a_document(procedures={"clean": {"operator": operator, **more}})


def with_table(**more: Any) -> dict[str, Any]:
    return a_document(sink={"table": {"database": "dw", "table": "t", **more}})


LINKS = [["source", "a"], ["a", "b"], ["b", "sink"]]
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "/source", "source: a workflow has exactly one"),
    (a_document(sink=None), "/sink", "exactly one"),
    (a_document(source={}), "/source", "has one of http, stream"),
    (a_document(source={"http": {}, "stream": {}}), "/source", "has one of http, stream"),
    (a_document(source={"bucket": {}}), "/source/bucket", "has no 'bucket'"),
    (a_document(sink={"stream": {"stream": "s"}}), "/sink/stream/serviceObject", "names its"),
    (a_document(name=1), "/name", "is text"),
    (a_document(more=1), "/more", "has no 'more'"),
    (a_document(procedures={}), "/procedures", "there are 1 to 20"),
    (a_document(procedures=[]), "/procedures", "is a JSON object"),
    (a_document(procedures={"sink": {"code": CODE}}), "/procedures/sink", "is named by"),
    (a_document(procedures={"a b": {"code": CODE}}), "/procedures/a b", "is named by"),
    (with_procedure(workflow={}), "/procedures/clean/workflow", "they are not nested"),
    (with_procedure(code=None), "/procedures/clean/code", "a procedure has it"),
    (with_procedure(code="1 + 1"), "/procedures/clean/code", "must be a function"),
    (with_procedure(code="() => 1"), "/procedures/clean/code", "of one argument"),
    (with_procedure(code="a=>" + "1" * 32_768), "/procedures/clean/code", "has at most"),
    (with_procedure(attempts=0), "/procedures/clean/attempts", "from 1 to 20"),
    (with_procedure(attempts=True), "/procedures/clean/attempts", "from 1 to 20"),
    (with_procedure(delay=43_201), "/procedures/clean/delay", "from 0 to 43200"),
    (a_document(sink={"parquet": {}}), "/sink/parquet/store", "objects go to a store"),
    (
        a_document(sink={"parquet": {"store": "a", "prefix": "/"}}),
        "/sink/parquet/prefix",
        "beginning of names",
    ),
    (a_document(sink={"table": {}}), "/sink/table/database", "is in a database"),
    (with_table(database="a b"), "/sink/table/database", "1 to 50"),
    (with_table(table=None), "/sink/table/table", "rows go into one"),
    (with_table(table="a.b"), "/sink/table/table", "is 1 to 63"),
    (with_table(table="a" * 64), "/sink/table/table", "is 1 to 63"),
    (with_table(key="a"), "/sink/table/key", "is a list"),
    (with_table(key=["a"] * 9), "/sink/table/key", "at most 8"),
    (with_table(key=["a", "ü" * 32]), "/sink/table/key/1", "1 to 63 bytes"),
    (with_table(key=["a", "a"]), "/sink/table/key/1", "is there twice"),
    (with_table(more=1), "/sink/table/more", "has no 'more'"),
    (a_document(sink={"parquet": {"store": "a", "x": 1}}), "/sink/parquet/x", "has no 'x'"),
    (with_procedure(memory=65), "/procedures/clean/memory", "is one of 32, 64, 128, 256"),
    (with_procedure(memory=True), "/procedures/clean/memory", "is one of 32"),
    (with_procedure(operator={}), "/procedures/clean/operator", "not both"),
    (with_program(None), "/procedures/clean/operator", "is a JSON object"),
    (with_program({"version": 1}), "/procedures/clean/operator/name", "that you have pushed"),
    (with_program({"name": "a/b"}), "/procedures/clean/operator/name", "of your own"),
    (with_program({"name": "a" * 64}), "/procedures/clean/operator/name", "at most 63"),
    (with_program({"name": "a"}), "/procedures/clean/operator/version", "is the number"),
    (
        with_program({"name": "a", "version": 2**31}),
        "/procedures/clean/operator/version",
        "is the number",
    ),
    (with_program({"name": "a", "x": 1}), "/procedures/clean/operator/x", "has no 'x'"),
    (
        with_program({"name": "a", "version": 1}, memory=64),
        "/procedures/clean/memory",
        "operator.json says it",
    ),
    (with_procedure(reserved=-1), "/procedures/clean/reserved", "from 0 to 1000"),
    (with_procedure(takes=" "), "/procedures/clean/takes", "names a type"),
    (with_procedure(makes=None), "/procedures/clean/makes", "names a type"),
    (a_document(sink={"collect": {}, "takes": None}), "/sink/takes", "names a type"),
    (a_document(links={}), "/links", "is a list of pairs"),
    (a_document(links=[["source"]]), "/links/0", "is a pair of names"),
    (a_document(links=[["source", "x"]]), "/links/0/1", "there is no procedure 'x'"),
    (a_document(links=[["sink", "clean"]]), "/links/0", "nothing leads into the source"),
    (a_document(links=[["source", "sink"]]), "/links/0", "through a procedure at least"),
    (a_document(links=[["clean", "clean"]]), "/links/0", "from a procedure to itself"),
    (a_document(links=[["source", "clean"]] * 2), "/links/1", "is there twice"),
    (a_document(links=[["source", "clean"]]), "/procedures/clean", "from clean to the sink"),
    (a_document(links=[["clean", "sink"]]), "/procedures/clean", "from the source to clean"),
    (a_document("a", "b", links=[*LINKS, ["b", "a"]]), "/links", "in a circle through"),
    (a_document(links=[["source", "clean"]] * 61), "/links", "there are at most 60"),
    (
        a_document(source={"http": {}, "makes": "x"}, sink={"none": {}, "takes": "y"})
        | {"procedures": {"clean": {"code": CODE, "takes": "y"}}},
        "/links/0",
        "source makes x, and clean takes y",
    ),
]


@pytest.mark.parametrize(("document", "pointer", "reason"), WRONG)
def test_what_is_wrong_is_told_with_its_place(
    document: dict[str, Any], pointer: str, reason: str
) -> None:
    with pytest.raises(BadDocument) as found:
        parse_workflow(document)

    assert found.value.pointer == pointer
    assert reason in found.value.reason


def test_the_largest_document_is_read_and_one_byte_more_is_not() -> None:
    procedures = {f"p{n}": {"code": f"a=>a//{'x' * 6_400}"} for n in range(19)}
    procedures["last"] = {"code": "a=>a//"}
    links = [*(["source", each] for each in procedures), *([each, "sink"] for each in procedures)]
    document = a_document(procedures=procedures, links=links)
    room = reading.MAX_DOCUMENT_BYTES - len(reading.orjson.dumps(document))
    procedures["last"]["code"] += "x" * room

    assert len(parse_workflow(document).procedures) == 20
    procedures["last"]["code"] += "x"
    with pytest.raises(BadDocument, match="at most 131072 bytes"):
        parse_workflow(document)


def test_steps_are_in_an_order_in_which_every_link_leads_on() -> None:
    """A diamond whose document names its procedures the other way round."""
    links = [["source", "a"], ["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"], ["d", "sink"]]
    read = a_workflow(procedures={each: {"code": CODE} for each in "dcba"}, links=links)

    names = [each.name for each in read.procedures]
    assert names[0] == "a" and names[-1] == "d"
    assert read.first_steps == [0]
    assert read.links["d"] == [read.sink_step]
    assert [read.name_of(each) for each in read.links["a"]] == names[1:3]


def test_ends_are_streams_where_they_say_so() -> None:
    place = {"serviceObject": "so", "stream": "s"}

    read = a_workflow(source={"stream": place}, sink={"stream": place})

    assert read.source == read.sink_stream == ("so", "s")
    assert read.sink == STREAM
    assert a_workflow().source is None
    assert a_workflow().sink == COLLECT


def test_a_picture_has_a_box_for_each_step_and_a_line_for_each_link() -> None:
    drawn = picture(a_workflow("clean", "sort"), {"clean": 3})

    assert drawn.count("<rect") == 4 + 1  # and the ground
    assert drawn.count("<path") == 3
    assert "3 waiting" in drawn


def test_nothing_of_a_document_is_markup_in_its_picture() -> None:
    place = {"serviceObject": "so", "stream": "<script>&"}

    drawn = picture(a_workflow(source={"stream": place}))

    assert "<script>" not in drawn
    assert "stream &lt;script&gt;&amp;" in drawn


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ({"collect": {}}, "collected"),
        ({"none": {}}, "nowhere"),
        ({"callback": {"url": "https://a.example/"}}, "https://a.example/"),
        ({"parquet": {"store": "lake"}}, "parquet in lake"),
        ({"table": {"database": "dw", "table": "t"}}, "table t of dw"),
    ],
)
def test_a_picture_says_where_atoms_go(sink: dict[str, Any], words: str) -> None:
    assert f">{words}<" in picture(a_workflow(sink=sink))


@pytest.mark.parametrize(
    ("atom", "fault"),
    [
        (b"{}", ""),
        (b'{"a":"%b"}' % (b"x" * (MAX_ATOM_BYTES - 8)), ""),
        (b'{"a":"%b"}' % (b"x" * (MAX_ATOM_BYTES - 7)), "an atom has at most 32768 bytes"),
        (b"[]", "an atom is a JSON object"),
        (b'{"a":["\\u0000"]}', "an atom has a NUL in it"),
        (b'{"a":"\\\\u0000"}', ""),
    ],
)
def test_what_an_atom_can_be(atom: bytes, fault: str) -> None:
    assert fault_of(atom) == fault


def test_a_procedure_may_be_a_program() -> None:
    (program,) = parse_workflow(with_program({"name": "score", "version": 2})).procedures
    (code,) = parse_workflow(with_procedure(memory=128)).procedures

    assert program.program == ProgramCode("score", 2)
    assert (code.program, code.memory_mib) == (None, 128)
