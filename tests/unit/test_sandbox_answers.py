"""What the pool believes of a worker that a script may have taken over."""

from __future__ import annotations

import pytest

from sandbox import Assignment, Call, ChannelCode, Computation, Fault, Outcome, Program, Value
from sandbox.host.answers import (
    MAX_MESSAGE,
    MAX_OUTPUT_BYTES,
    MAX_TICKS,
    MalformedAnswer,
    decode_answer,
    decode_layers,
    decode_problems,
    decode_ticks,
    shape_of,
)

STEP = Computation(0, 5, 5, (0,))
CHANNELS = (ChannelCode("t", "1", "number"), ChannelCode("s", "1", "String", "m"))
PROGRAM = Program("p", "function", ("a",), CHANNELS)
GOOD = (
    b'V5 {"channels":{"t":{"current-value":1},"s":{"current-value":"","unit":"m"}},"lastUpdate":5}'
)


def decoded(
    answer: bytes, *steps: Computation | Assignment, last: int | None = None
) -> list[Outcome]:
    call = Call(PROGRAM, None, last, (b"0",), steps or (STEP,))
    return decode_answer(answer, [call], [shape_of(PROGRAM)])[0]


def of_type(kind: str, value: bytes) -> list[Outcome]:
    program = Program("q", "expression", ("a",), (ChannelCode("t", "1", kind),))
    line = b'V5 {"channels":{"t":{"current-value":%b}},"lastUpdate":5}' % value
    return decode_answer(line, [Call(program, None, None, (), (STEP,))], [shape_of(program)])[0]


def test_what_fits_is_an_update() -> None:
    """The document is kept as it is."""
    assert decoded(GOOD) == [Value(5, GOOD[3:])]


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", GOOD + b"\n" + GOOD, b"?", b"\xff", b"N", b"V5", b"V5 ", b"V5 {x", b"\n" * 1000),
        *(GOOD.replace(b"V5", each) for each in (b"V6", b"V4", b"V", b"V+5", b"V05", b"V5.0")),
        *(GOOD.replace(b"V5", b"V" + each * 5000) for each in (b"5", b"-", b"0")),
        *(
            GOOD.replace(b":5}", each)
            for each in (b":6}", b":5.0}", b':"5"}', b":true}", b":null}")
        ),
        GOOD.replace(b'"lastUpdate":5', b'"lastUpdate":5,"more":1'),
        GOOD.replace(b',"lastUpdate":5', b""),
        *(b"V5 " + each for each in (b"[]", b"null", b"5", b'"x"', b"[" * 100_000, b"{}")),
        *(b"V5 " + each for each in (b'{"v":NaN}', b'"\xff"', b'"\\ud800"')),
        b'V5 {"channels":[],"lastUpdate":5}',
        b'V5 {"channels":{},"lastUpdate":5}',
        GOOD.replace(b'"t"', b'"other"'),
        GOOD.replace(b'"t":', b'"other":{"current-value":1},"t":'),
        GOOD.replace(b'{"current-value":1}', b"1"),
        GOOD.replace(b'{"current-value":1}', b"{}"),
        GOOD.replace(b'{"current-value":1}', b'{"current-value":1,"unit":"m"}'),
        GOOD.replace(b'{"current-value":1}', b'{"current-value":1,"unit":null,"x":1}'),
        *(
            GOOD.replace(b'e":1', b'e":' + each)
            for each in (b"null", b"true", b'"1"', b"{}", b"1e999")
        ),
        *(GOOD.replace(b'e":""', b'e":' + each) for each in (b"null", b"1", b"[]", b'"\\ud800"')),
        GOOD.replace(b'"m"', b'"km"'),
        *(
            b"F" + each
            for each in (b"", b"error", b"error ", b"error 1", b"nonsense 1", b"stale 1")
        ),
        *(b'F%b "x"' % each for each in (b"stale", b"timeout", b"oom", b"crash", b"suspended")),
        *(b'F%b "x"' % each for each in (b"policy", b"ERROR", b"\xff", b"error error")),
        b'Ferror "\\ud800"',
        b'Ferror ["x"]',
    ],
)
def test_what_does_not_fit_is_garbage(answer: bytes) -> None:
    """Nothing of it is stored, and the worker is ended."""
    with pytest.raises(MalformedAnswer):
        decoded(answer)


@pytest.mark.parametrize(
    ("last", "floor", "timestamp"), [(None, 7, 7), (3, 7, 7), (3, 4, 4), (4, 4, 4), (4, 2, 4)]
)
def test_a_timestamp_is_the_later_of_floor_and_last_output(
    last: int | None, floor: int, timestamp: int
) -> None:
    """A moment more or less is another update."""
    step = Computation(0, 5, floor, (0,))

    def line(at: int) -> bytes:
        return GOOD.replace(b"V5", b"V%d" % at).replace(b":5}", b":%d}" % at)

    assert [
        each.timestamp
        for each in decoded(line(timestamp), step, last=last)
        if isinstance(each, Value)
    ] == [timestamp]
    for wrong in (timestamp - 1, timestamp + 1):
        with pytest.raises(MalformedAnswer):
            decoded(line(wrong), step, last=last)


def test_a_step_that_is_not_newer_can_only_be_stale() -> None:
    """And one that is newer cannot be."""
    assert decoded(b'Fstale "x"', last=5) == [Fault("stale", "x")]
    assert decoded(GOOD, last=4) == [Value(5, GOOD[3:])]
    for answer, last in ((GOOD, 5), (b'Ferror "x"', 5), (b'Fstale "x"', 4)):
        with pytest.raises(MalformedAnswer):
            decoded(answer, last=last)


def test_what_was_put_from_outside_has_no_outcome_and_moves_the_last_output() -> None:
    """As in the runner, if it is not older."""
    put = Assignment(0, 5)

    assert decoded(b'N\nFstale "x"', put, STEP) == [None, Fault("stale", "x")]
    assert decoded(b'N\nFstale "x"', put._replace(timestamp=6), STEP, last=6)[0] is None
    assert decoded(b"N\n" + GOOD, put._replace(timestamp=3), STEP, last=4) == [
        None,
        Value(5, GOOD[3:]),
    ]
    for answer in (b"N\n" + GOOD, GOOD + b"\n" + GOOD, b'Fstale "x"\nFstale "x"'):
        with pytest.raises(MalformedAnswer):
            decoded(answer, put, STEP)


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
    assert isinstance(of_type(kind, value)[0], Value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("number", each) for each in (b"true", b'"1"', b"[1]")),
        *(("boolean", each) for each in (b"1", b'"true"', b"null")),
        *(
            ("geo_point", each)
            for each in (b'"1"', b'"1,2,3"', b'"1, 2"', b'"x,y"', b"[1,2]", b'"1,2\\n"')
        ),
        *(("array[number]", each) for each in (b"1", b'["1"]', b"[[1]]", b"[null]", b"{}")),
        *(("array[array[string]]", each) for each in (b'["a"]', b"[[1]]")),
        ("nonsense", b"1"),
    ],
)
def test_a_value_of_another_type_is_garbage(kind: str, value: bytes) -> None:
    """What reads a stream relies on the types of its channels."""
    with pytest.raises(MalformedAnswer):
        of_type(kind, value)


def test_an_output_as_long_as_allowed_is_believed_and_a_byte_more_is_not() -> None:
    """Bytes, not characters: the euro sign has three."""
    room = MAX_OUTPUT_BYTES - len(GOOD[3:])
    text = "\u20ac" * (room // 3) + "x" * (room % 3)
    longest = GOOD.replace(b'e":""', b'e":"%b"' % text.encode())

    assert len(longest) - 3 == MAX_OUTPUT_BYTES
    assert decoded(longest) == [Value(5, longest[3:])]
    with pytest.raises(MalformedAnswer):
        decoded(longest.replace(b'"unit"', b' "unit"'))


def test_a_long_message_is_clipped() -> None:
    """It is stored with the verdict."""
    (whole,) = decoded(b'Ferror "%b"' % (b"x" * MAX_MESSAGE))
    (clipped,) = decoded(b'Ferror "%b"' % (b"x" * (MAX_MESSAGE + 1)))

    assert whole == Fault("error", "x" * MAX_MESSAGE)
    assert clipped == Fault("error", "x" * MAX_MESSAGE + "...")


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        (b"0", 0),
        (b"60000", MAX_TICKS),
        (b"60001", MAX_TICKS),
        (b"-5", 0),
        (b"9" * 20, MAX_TICKS),
    ],
)
def test_milliseconds_are_kept_within_reason(text: bytes, ticks: int) -> None:
    """The clock of the machine may be set while a script runs."""
    assert decode_ticks(text, [Call(PROGRAM, None, None, (), (STEP,))]) == [ticks]


@pytest.mark.parametrize("text", [b"", b"x", b"1,2", b"9" * 21, b"1_0", b"--1", b"1.5", b"\xb2"])
def test_other_milliseconds_are_garbage(text: bytes) -> None:
    """Four hundred digits are no float, and five thousand no int."""
    with pytest.raises(MalformedAnswer):
        decode_ticks(text, [Call(PROGRAM, None, None, (), (STEP,))])


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}",
        b"[]",
        b"[[],[]]",
        b"[1]",
        b"[[1]]",
        b'[[["syntax"]]]',
        b'[[["other","x"]]]',
        b'[[["policy",1]]]',
        b'[[[["syntax"],"x"]]]',
    ],
)
def test_what_is_no_list_of_problems_is_garbage(answer: bytes) -> None:
    """Only two kinds of problems exist, and each has a text."""
    with pytest.raises(MalformedAnswer):
        decode_problems(answer, 1)


def test_problems_are_clipped() -> None:
    """A tenant is shown them."""
    answer = b'[[["policy","%b"]],[]]' % (b"x" * (MAX_MESSAGE + 1))

    assert decode_problems(answer, 2) == [[("policy", "x" * MAX_MESSAGE + "...")], []]


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"user":1}', b"5"])
def test_what_is_no_table_of_layers_is_garbage(answer: bytes) -> None:
    """Said before any script runs, and looked at all the same."""
    with pytest.raises(MalformedAnswer):
        decode_layers(answer)


def test_names_and_units_are_expected_as_they_are_sent() -> None:
    """Half a surrogate pair is replaced on both ways."""
    program = Program("p", "function", (), (ChannelCode("\ud800", "1", "number", "\udc00"),))
    line = 'V5 {"channels":{"\ufffd":{"current-value":1,"unit":"\ufffd"}},"lastUpdate":5}'.encode()

    found = decode_answer(line, [Call(program, None, None, (), (STEP,))], [shape_of(program)])

    assert found == [[Value(5, line[3:])]]
