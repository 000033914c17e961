"""What an output of a program has to look like, whatever its process says."""

from __future__ import annotations

import weakref

import msgspec
import pytest

from sandbox import ChannelCode, Program
from sandbox.host.answers import MalformedAnswer
from sandbox.host.outputs import MAX_OUTPUT_BYTES, shape_of

CHANNELS = (ChannelCode("t", "1", "number"), ChannelCode("s", "1", "String", "m"))
PROGRAM = Program("p", "function", ("a",), CHANNELS)
GOOD = b'{"channels":{"t":{"current-value":1},"s":{"current-value":"","unit":"m"}},"lastUpdate":5}'


def check(document: bytes, program: Program = PROGRAM, timestamp: int = 5) -> None:
    shape_of(program).check([msgspec.Raw(document)], [timestamp])


def check_value(kind: str, value: bytes) -> None:
    program = Program("q", "expression", ("a",), (ChannelCode("t", "1", kind),))
    check(b'{"channels":{"t":{"current-value":%b}},"lastUpdate":5}' % value, program)


def test_what_fits_is_an_output() -> None:
    """Otherwise the tests below could not fail."""
    check(GOOD)


@pytest.mark.parametrize(
    "document",
    [
        *(b"", b"[]", b"null", b"5", b'"x"', b"{}", b"[" * 100_000, b"{x", b"\xff", GOOD + GOOD),
        *(GOOD + b"," + GOOD, GOOD + b"]", GOOD + b",", b"]" + GOOD),
        *(
            GOOD.replace(b":5}", each)
            for each in (b":6}", b":5.0}", b':"5"}', b":true}", b":null}", b":%b}" % (b"9" * 5000))
        ),
        *(b'{"v":NaN}', b'"\xff"', b'"\\ud800"'),
        GOOD.replace(b'"lastUpdate":5', b'"lastUpdate":5,"more":1'),
        GOOD.replace(b',"lastUpdate":5', b""),
        b'{"channels":[],"lastUpdate":5}',
        b'{"channels":{},"lastUpdate":5}',
        GOOD.replace(b'"t"', b'"other"'),
        GOOD.replace(b'"t":', b'"other":{"current-value":1},"t":'),
        GOOD.replace(b'{"current-value":1}', b"1"),
        GOOD.replace(b'{"current-value":1}', b"{}"),
        GOOD.replace(b'{"current-value":1}', b'{"current-value":1,"unit":"m"}'),
        GOOD.replace(b'{"current-value":1}', b'{"current-value":1,"unit":null}'),
        *(
            GOOD.replace(b'e":1', b'e":' + each)
            for each in (b"null", b"true", b'"1"', b"{}", b"1e999", b"NaN", b"01", b"1_0")
        ),
        *(GOOD.replace(b'e":""', b'e":' + each) for each in (b"null", b"1", b"[]", b'"\\ud800"')),
        GOOD.replace(b'"m"', b'"km"'),
        GOOD.replace(b',"unit":"m"', b""),
        *(GOOD.replace(b",", blank + b",") for blank in (b"\n", b"\r", b"\t")),
    ],
)
def test_what_does_not_fit_is_garbage(document: bytes) -> None:
    """Nothing of it is stored, and the worker is ended. What is stored is written line by line."""
    with pytest.raises(MalformedAnswer):
        check(document)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("number", each) for each in (b"1", b"-1.5e+300", b"0", b"18446744073709551616")),
        *(("boolean", each) for each in (b"true", b"false")),
        *(("GEO_POINT", each) for each in (b'"1,2"', b'"-1.5,1e-7"', b'"1e+21,0.25"')),
        *(("Array [ number ]", each) for each in (b"[]", b"[1,2.5]")),
        *(("array[array[string]]", each) for each in (b"[]", b"[[]]", b'[["a"],[]]')),
    ],
)
def test_a_value_of_its_type_is_believed(kind: str, value: bytes) -> None:
    """These the runner writes."""
    check_value(kind, value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("number", each) for each in (b"true", b'"1"', b"[1]")),
        *(("boolean", each) for each in (b"1", b'"true"', b"null")),
        *(
            ("geo_point", each)
            for each in (
                b'"1"',
                b'"1,2,3"',
                b'"1, 2"',
                b'"x,y"',
                b"[1,2]",
                b'"1,2\\n"',
                b'"1x5,2"',
            )
        ),
        *(("array[number]", each) for each in (b"1", b'["1"]', b"[[1]]", b"[null]", b"{}")),
        *(("array[array[string]]", each) for each in (b'["a"]', b"[[1]]")),
        ("nonsense", b"1"),
    ],
)
def test_a_value_of_another_type_is_garbage(kind: str, value: bytes) -> None:
    """What reads a stream relies on the types of its channels."""
    with pytest.raises(MalformedAnswer):
        check_value(kind, value)


def test_an_output_as_long_as_allowed_is_believed_and_a_byte_more_is_not() -> None:
    """Bytes, not characters: the euro sign has three."""
    room = MAX_OUTPUT_BYTES - len(GOOD)
    text = "\u20ac" * (room // 3) + "x" * (room % 3)
    longest = GOOD.replace(b'e":""', b'e":"%b"' % text.encode())
    assert len(longest) == MAX_OUTPUT_BYTES

    check(longest)
    with pytest.raises(MalformedAnswer):
        check(longest.replace(b'"unit"', b' "unit"'))


@pytest.mark.parametrize(
    ("name", "told"), [("\ud800", "\ufffd"), ('q"', 'q"'), ("a\\b", "a\\b"), ("\u2028", "\u2028")]
)
@pytest.mark.parametrize(("unit", "shown"), [("\udc00", "\ufffd"), ("", ""), ("m", "m")])
def test_names_and_units_are_expected_as_they_are_sent(
    name: str, told: str, unit: str, shown: str
) -> None:
    """Half a surrogate pair is replaced on both ways; a unit may be empty."""
    program = Program("p", "function", (), (ChannelCode(name, "1", "number", unit),))
    channel = {"current-value": 1, "unit": shown}
    whole = {"channels": {told: channel}, "lastUpdate": 5}

    check(msgspec.json.encode(whole), program)
    for wrong in ({}, {told: channel, "x": channel}, {"x": channel}, {told: {"current-value": 1}}):
        with pytest.raises(MalformedAnswer):
            check(msgspec.json.encode({**whole, "channels": wrong}), program)


def test_an_expression_has_no_unit() -> None:
    """Version 0.1.0 of the documents knew none."""
    program = Program("p", "expression", (), (ChannelCode("t", "1", "number", "m"),))

    check(b'{"channels":{"t":{"current-value":1}},"lastUpdate":5}', program)


def test_one_wrong_output_among_many_is_found() -> None:
    """They are looked at together."""
    shape = shape_of(PROGRAM)
    documents = [msgspec.Raw(GOOD.replace(b":5}", b":%d}" % at)) for at in (5, 6, 7)]
    shape.check(documents, [5, 6, 7])

    for wrong in ([5, 7, 6], [5, 6, 8], [5, 6], [5, 6, 7, 8]):
        with pytest.raises(MalformedAnswer):
            shape.check(documents, wrong)


def test_programs_that_tell_the_same_channels_have_one_shape_while_somebody_has_it() -> None:
    shape = shape_of(PROGRAM)
    alike = Program("another", "function", ("b",), (ChannelCode("t", "2", "number"), CHANNELS[1]))
    assert shape_of(alike) is shape
    for told in (
        (ChannelCode("t", "1", "number"), ChannelCode("s", "1", "String", "km")),
        (ChannelCode("t", "1", "string"), CHANNELS[1]),
        (ChannelCode("u", "1", "number"), CHANNELS[1]),
        CHANNELS[:1],
    ):
        assert shape_of(Program("p", "function", ("a",), told)) is not shape

    gone = weakref.ref(shape)
    del shape
    assert gone() is None, "a tenant may think of any number"
