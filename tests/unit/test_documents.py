"""What documents mean, and what is said about wrong ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.text import argument_names
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.documents.dialects import version_warning
from servioticy.domain.model import Channel, Composite, Definition, Stream, StreamRef
from servioticy.domain.values import normal_type

SIMPLE = {"channels": {"x": {"type": "number"}}}


def parsed(document: Any) -> Definition:
    return parse_service_object(document, "so", argument_names)


def code(text: str, **more: Any) -> dict[str, Any]:
    """A composite stream with one channel."""
    return {"channels": {"x": {"type": "number", "current-value": text}}, **more}


def composite(version: str = "0.2.0", name: str = "b", **document: Any) -> Composite:
    found = parsed({"version": version, **document}).stream(name)
    assert found is not None and found.composite is not None
    return found.composite


def streams(**content: Any) -> dict[str, Any]:
    return {"streams": content}


def channel(content: Any, name: str = "c") -> dict[str, Any]:
    return streams(s={"channels": {name: content}})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "Service Object without streams"),
        ({"streams": None}, "Service Object without streams"),
        ({"streams": []}, "streams: has to be a JSON object"),
        (streams(s={}), "stream: s without channels"),
        (streams(s=5), "stream s: has to be a JSON object"),
        (channel({}), "channel c without type info"),
        (channel({"type": "numeric"}), "Channel c with incorrect type: numeric"),
        (channel({"type": 5}), "Channel c with incorrect type: 5"),
        (
            channel({"type": "string"}, "location"),
            "location channel has to be geo_point type",
        ),
        ({"streams": {}, "groups": {"g": {"soIds": []}}}, "group g without soIds or stream"),
        (
            {"streams": {}, "groups": {"g": {"stream": "s"}}},
            "group g without soIds or stream",
        ),
        ({"streams": {}, "actions": [{"name": "a"}] * 2}, "actions with the same name"),
    ],
)
def test_messages_are_those_of_the_original(document: Any, message: str) -> None:
    with pytest.raises(BadDocument) as raised:
        parsed(document)

    assert str(raised.value) == message


@pytest.mark.parametrize("name", ["", " ", "a/b", "a\nb", "a\0", "x" * 201])
def test_names_have_to_fit_urls_and_topics(name: str) -> None:
    with pytest.raises(BadDocument, match="is blank, longer than"):
        parsed({"streams": {name: SIMPLE}})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Number", "number"),
        (" GEO_POINT ", "geo_point"),
        ("Array[ String ]", "array[string]"),
        ("array[array[number]]", None),
        ("", None),
    ],
)
def test_types_are_spelt_in_any_case(text: str, name: str | None) -> None:
    assert normal_type(text) == name


@pytest.mark.parametrize(
    ("public", "is_public"),
    [(True, True), ("true", True), ("True", False), (1, False), (None, False)],
)
def test_public_is_only_what_says_exactly_so(public: Any, is_public: bool) -> None:
    assert parsed({"streams": {}, "public": public}).public is is_public


def test_streams_keep_their_order() -> None:
    found = parsed(streams(b=SIMPLE, a=SIMPLE))

    assert [each.ref.stream for each in found.streams] == ["b", "a"]
    assert found.stream("a") == Stream(StreamRef("so", "a"), (Channel("x", "number"),))
    assert found.stream("c") is None


def test_a_function_reads_its_arguments_and_its_own_last_update() -> None:
    """Arguments are trimmed; `$input` is the trigger, not a source."""
    groups = {"g": {"soIds": ["p", "q", "p"], "stream": "s"}}
    found = composite(groups=groups, **streams(a=SIMPLE, b=code("function( a , $input, g){}")))

    assert [each.name for each in found.inputs] == ["a", "g", "b"]
    assert found.inputs[1].members == (StreamRef("p", "s"), StreamRef("q", "s"))
    assert (found.dialect, found.own) == ("function", 2)


def test_a_group_named_like_a_stream_shadows_it() -> None:
    groups = {"a": {"soIds": ["p"], "stream": "s"}}
    found = composite(groups=groups, **streams(a=SIMPLE, b=code("function(a){}")))

    assert found.inputs[0].members == (StreamRef("p", "s"),)


def test_a_stream_shadowed_by_a_group_has_no_own_last_update() -> None:
    groups = {"b": {"soIds": ["p"], "stream": "s"}}
    found = composite(groups=groups, **streams(a=SIMPLE, b=code("function(a, b){}")))

    assert ([each.name for each in found.inputs], found.own) == (["a", "b"], None)


def test_an_expression_reads_what_it_and_its_filters_name() -> None:
    content = code("{$a.x} + {$g.}", **{"pre-filter": "{$c.y}", "post-filter": "{$result.x}"})
    groups = {"g": {"soIds": ["p"], "stream": "s"}}
    found = composite("0.1.0", groups=groups, **streams(a=SIMPLE, b=content, c=SIMPLE))

    assert [each.name for each in found.inputs] == ["a", "g", "c"]
    assert (found.channels[0].code, found.pre_filter, found.post_filter) == ("$0 + $1", "$2", "$3")
    assert found.references[3].source == "result"
    assert (found.dialect, found.own) == ("expression", None)


@pytest.mark.parametrize("version", [None, "0.1.0", "nonsense", 2])
def test_any_other_version_means_expressions(version: Any) -> None:
    found = composite(version, **streams(a=SIMPLE, b=code("{$a}")))

    assert found.dialect == "expression"


@pytest.mark.parametrize("version", [None, "1.0.0", 2, [], {}])
@pytest.mark.parametrize("text", ["function(a) { return 1 }", "(a) => 1", "a => 1"])
def test_functions_are_what_they_look_like(version: Any, text: str) -> None:
    """The original took them, and whoever writes 1.0.0 means the newest there is."""
    assert composite(version, **streams(a=SIMPLE, b=code(text))).dialect == "function"


def test_a_function_in_a_version_of_expressions_is_told_which_version_it_needs() -> None:
    with pytest.raises(BadDocument, match=r"stream b: channel x: .* needs \"version\": \"0.2.0\""):
        composite("0.1.0", **streams(a=SIMPLE, b=code("function(a) { return 1 }")))


@pytest.mark.parametrize(
    ("version", "number"), [(None, 0), ("0.1.0", 0), ("0.2.0", 0), ("1.0.0", 1), (2, 1), ([], 1)]
)
def test_an_unknown_version_is_warned_of(version: Any, number: int) -> None:
    assert len(version_warning({"version": version})) == number


def test_aliases_are_replaced_in_order_in_code_units_and_types() -> None:
    content = {"channels": {"x": {"type": "@t@", "unit": "@u@", "current-value": "@v@"}}}
    aliases = [{"@v@": "@w@ + 1", "@t@": "number"}, {"@w@": "{$a.x}", "@u@": "C", "": "no"}]
    found = composite("0.1.0", aliases=aliases, **streams(a=SIMPLE, b=content))

    assert found.channels == (Channel("x", "number", "C", "$0 + 1"),)


V = "{$a.channels.x.current-value}"
ALIASES: list[tuple[list[dict[str, str]], str, str]] = [
    ([{"@v@": V}, {"@f@": "(@v@*1.8+32)"}], "@f@", "($0*1.8+32)"),
    ([{"@f@": "(@v@*1.8+32)"}, {"@v@": V}], "@f@", "($0*1.8+32)"),
    ([{"@2@": "@1@@3@"}, {"@1@": "1"}, {"@4@": "@2@4"}, {"@3@": "3"}], "@4@", "134"),
    ([{"@1@": "@2@"}, {"@3@": "@1@3"}, {"@2@": "2"}, {"@4@": "@3@@1@"}], "@4@+@1@", "232+2"),
    ([{"x": "{$a.channels.x}"}, {"y": "x + x"}], "y", "$0 + $0"),
    ([{"@1@": "1"}, {"@1@": "2"}, {"@2@": "@1@"}], "@1@@2@", "11"),
    ([{"@1@": "1", "": "@1@"}, {"@2@": ""}], "@2@@1@", "1"),
]


@pytest.mark.parametrize(("aliases", "text", "code"), ALIASES, ids=range(len(ALIASES)))
def test_an_alias_may_use_others_before_and_after_it(
    aliases: list[dict[str, str]], text: str, code: str
) -> None:
    """Its own name in its text stays: channels are often called as their aliases."""
    content = {"channels": {"x": {"type": "number", "current-value": text}}}
    found = composite("0.1.0", aliases=aliases, **streams(a=SIMPLE, b=content))

    assert found.channels[0].code == code


NAMES = [f"@{letter}@" for letter in "abcdefgh"]


@given(
    order=st.permutations(range(8)),
    texts=st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=8, max_size=8),
)
def test_aliases_mean_the_same_in_any_order(order: list[int], texts: list[list[int]]) -> None:
    """What an alias stands for is what its text says, with those in it read the same way."""

    def meant(number: int) -> str:
        return f"({number}" + "".join(map(meant, used(number))) + ")"

    def used(number: int) -> list[int]:
        return [each for each in texts[number] if each < number]

    aliases = [{NAMES[n]: f"({n}" + "".join(NAMES[each] for each in used(n)) + ")"} for n in order]
    content = {"channels": {"x": {"type": "number", "unit": "C", "current-value": NAMES[7]}}}
    found = composite("0.1.0", aliases=aliases, **streams(b=content))

    assert found.channels[0].code == meant(7)


def test_an_empty_filter_is_kept_and_an_absent_one_is_none() -> None:
    """An empty one is always false."""
    found = composite("0.1.0", **streams(a=SIMPLE, b=code("{$a}", **{"pre-filter": ""})))

    assert (found.pre_filter, found.post_filter) == ("", None)


def test_its_own_last_update_is_known_as_such() -> None:
    found = composite("0.1.0", **streams(a=SIMPLE, b=code("{$a.x} + {$b.x}")))

    assert found.own == 1


@pytest.mark.parametrize(
    ("version", "content", "message"),
    [
        ("0.2.0", code("function(z){}"), "a function names 'z', which is neither"),
        ("0.2.0", code("5"), "channel x: must be a function"),
        ("0.1.0", code("{$z.x}"), "an expression names 'z', which is neither"),
        ("0.1.0", code("{$a[}"), "is not a JSONPath"),
        (
            "0.1.0",
            code("1", **{"post-filter": "{$result..`parent`}"}),
            "Parent is more than looking",
        ),
        ("0.1.0", code("1", **{"pre-filter": True}), "pre-filter has to be text"),
        ("0.1.0", code("x" * 65_537), "more than 65536 bytes of code"),
        (
            "0.1.0",
            {"channels": {"x": SIMPLE["channels"]["x"], "y": code("1")["channels"]["x"]}},
            "some channels have a current-value, some not",
        ),
    ],
)
def test_wrong_code_is_told_with_its_place(version: str, content: Any, message: str) -> None:
    with pytest.raises(BadDocument) as raised:
        parsed({"version": version, **streams(a=SIMPLE, b=content)})

    assert str(raised.value).startswith("stream b: ")
    assert message in str(raised.value)
