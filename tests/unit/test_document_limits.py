"""What one document may hold, each limit at its border and one beyond."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from benchmarks.worst_documents import KINDS, Kind
from sandbox.text import argument_names
from servioticy.domain.documents import BadDocument, limits, parse_service_object
from servioticy.domain.documents.codes import TOO_MUCH
from servioticy.domain.documents.composites import MAX_CODE
from servioticy.domain.documents.limits import Limit, Meter
from servioticy.domain.references import parsed_paths

SIMPLE = {"channels": {"x": {"type": "number"}}}


def metered(document: Any) -> Meter:
    meter = Meter()
    parse_service_object(document, "so", argument_names, meter)
    return meter


def coded(*codes: str, each_stream: int = 1000, **more: Any) -> dict[str, Any]:
    """A simple stream `a`, and composite streams `s0`, `s1`, ... of these codes."""
    streams: dict[str, Any] = {"a": SIMPLE}
    for at in range(0, len(codes), each_stream):
        streams[f"s{at // each_stream}"] = {
            "channels": {
                f"c{n}": {"type": "number", "current-value": code}
                for n, code in enumerate(codes[at : at + each_stream])
            }
        }
    return {"streams": streams, **more}


def streams(count: int) -> dict[str, Any]:
    return {"streams": {f"s{n}": SIMPLE for n in range(count)}}


def aliases(count: int) -> dict[str, Any]:
    return {"streams": {}, "aliases": [{f"@{n}": ""} for n in range(count)]}


def members(count: int) -> dict[str, Any]:
    """An empty group counts as one member."""
    full = {"soIds": ["x"] * (count - 1), "stream": "s"}
    return {"streams": {}, "groups": {"empty": {"soIds": [], "stream": "s"}, "g": full}}


def channels(count: int) -> dict[str, Any]:
    return {
        "streams": {
            f"s{at}": {
                "channels": {f"c{n}": {"type": "number"} for n in range(at, min(at + 1000, count))}
            }
            for at in range(0, count, 1000)
        }
    }


def text(count: int) -> dict[str, Any]:
    """Letters of two bytes by an alias, and so many in all with the types."""
    full, rest = divmod(count, 16_006)
    document = coded(*["@" * 400] * full, aliases={"@": "é" * 20})
    document["streams"].pop("a")
    unit = "u" * (rest - len("number"))
    return document | {
        "streams": document["streams"]
        | {"last": {"channels": {"x": {"type": "number", "unit": unit}}}}
    }


def comparisons(count: int) -> dict[str, Any]:
    """Two hundred aliases of a hundred letters, searched for in a type and a unit."""
    each = 200 * (150 + 100 * len("number"))
    letters = -(-(count - each - 200 * 150) // (200 * 100))
    channel = {"type": "number", "unit": "u" * letters}
    found = {f"{n:0100d}": "" for n in range(200)}
    return {"streams": {"a": {"channels": {"x": channel}}}, "aliases": found}


def arguments(count: int) -> dict[str, Any]:
    full, rest = divmod(count, 1000)
    codes = [f"function({','.join('a' * each)}){{}}" for each in [1000] * full + [rest]]
    return coded(*codes, version="0.2.0")


def references(count: int) -> dict[str, Any]:
    full, rest = divmod(count, 100)
    codes = [
        "".join(f"{{$a.x{n}}}" for n in range(each)) for each in [100] * full + [rest] if each
    ]
    return coded(*codes, each_stream=1)


def steps(count: int) -> dict[str, Any]:
    """A reference counts as one step more than it has."""
    full, rest = divmod(count, 501)
    paths = [".x" * 500] * full + [".x" * (rest - 1)]
    return coded(*(f"{{$a{path}}}" for path in paths), each_stream=1)


def paths(count: int) -> dict[str, Any]:
    full, rest = divmod(count, 100)
    codes = ["".join(f"{{$a..x{n}}}" for n in range(each)) for each in [100] * full + [rest]]
    return coded(*codes, each_stream=1)


def path_characters(count: int) -> dict[str, Any]:
    full, rest = divmod(count - 10, 990)
    ends = ["x" * 987] * full + ["x" * (rest - 3), "x" * 7]
    ends = [f"..{end}x" for end in ends]
    return coded(*(f"{{$a{end}}}" for end in ends), each_stream=1)


def subscriptions(count: int) -> dict[str, Any]:
    """Those of a group without members count as one."""
    full, rest = divmod(count - 1, 1000)
    groups = {"g": {"soIds": [f"{n}" for n in range(1000)], "stream": "s"}}
    groups["rest"] = {"soIds": [f"{n}" for n in range(rest)], "stream": "s"}
    groups["none"] = {"soIds": [], "stream": "s"}
    codes = ["{$g}"] * full + ["{$none}"] + ["{$rest}"] * (rest > 0)
    return coded(*codes, each_stream=1, groups=groups)


BORDERS: list[tuple[Limit, Callable[[int], dict[str, Any]], str]] = [
    (limits.MAX_STREAMS, streams, ""),
    (limits.MAX_ALIASES, aliases, ""),
    (limits.MAX_MEMBERS, members, "group g: "),
    (limits.MAX_CHANNELS, channels, "stream s20000: "),
    (limits.MAX_TEXT, text, "stream last: channel x: unit: "),
    (limits.MAX_COMPARISONS, comparisons, "stream a: channel x: unit: "),
    (limits.MAX_ARGUMENTS, arguments, "stream s0: channel c100: "),
    (limits.MAX_REFERENCES, references, "stream s200: channel c0: "),
    (limits.MAX_STEPS, steps, "stream s199: channel c0: "),
    (limits.MAX_PATHS, paths, "stream s10: channel c0: "),
    (limits.MAX_PATH_CHARACTERS, path_characters, "stream s41: channel c0: "),
    (limits.MAX_SUBSCRIPTIONS, subscriptions, "stream s100: "),
]


def test_every_limit_has_its_border_here() -> None:
    named = {value for value in vars(limits).values() if isinstance(value, Limit)}

    assert named == {limit for limit, _, _ in BORDERS}


@pytest.mark.parametrize(
    ("limit", "document", "place"), BORDERS, ids=[each[1].__name__ for each in BORDERS]
)
def test_a_limit_holds_at_its_border(
    limit: Limit, document: Callable[[int], dict[str, Any]], place: str
) -> None:
    """As much as is allowed is accepted, one more is refused with its place."""
    assert metered(document(limit.most)).counts[limit] == limit.most
    with pytest.raises(BadDocument) as refused:
        parse_service_object(document(limit.most + 1), "so", argument_names)

    assert refused.value.code == TOO_MUCH
    assert str(refused.value).startswith(place)
    assert f"more than {limit.most} {limit.what} in one Service Object" in str(refused.value)


def test_a_stream_has_a_thousand_channels_and_references_at_most() -> None:
    assert metered(channels(1000)).counts[limits.MAX_CHANNELS] == 1000
    many = {f"c{n}": {"type": "number"} for n in range(1001)}
    with pytest.raises(BadDocument, match="stream s has more than 1000 channels"):
        metered({"streams": {"s": {"channels": many}}})

    codes = ["".join(f"{{$a.x{n}_{m}}}" for n in range(100)) for m in range(10)]
    assert metered(coded(*codes)).counts[limits.MAX_REFERENCES] == 1000
    with pytest.raises(BadDocument, match="stream s0: channel c10: more than 1000 references"):
        metered(coded(*codes, "{$a.y}"))


@pytest.mark.parametrize("key", ["current-value", "pre-filter", "post-filter"])
def test_code_has_64_kib_in_one_place(key: str) -> None:
    """Generators of topologies write more than 4 KiB; the document bounds all of it together."""

    def document(size: int) -> dict[str, Any]:
        code = f"{{$a.x}} {'>' if key != 'current-value' else '+'} ".ljust(size - 1) + "1"
        channel = {"type": "number", "current-value": code if key == "current-value" else "1"}
        stream: dict[str, Any] = {"channels": {"c": channel}}
        if key != "current-value":
            stream[key] = code
        return {"streams": {"a": {"channels": {"x": {"type": "number"}}}, "b": stream}}

    assert MAX_CODE == 64 * 1024
    parse_service_object(document(MAX_CODE), "so", argument_names)
    with pytest.raises(BadDocument, match=f"more than {MAX_CODE} bytes of code") as refused:
        parse_service_object(document(MAX_CODE + 1), "so", argument_names)

    assert refused.value.code == TOO_MUCH
    assert refused.value.pointer.startswith("/streams/b")


def test_a_text_with_its_aliases_has_a_length() -> None:
    """Of characters, and where the alias is met."""
    document = {"aliases": [{"@": "x" * 512}, {"!": "xx"}]}
    fits, not_ = (coded("@" * 127 + "x" * 510 + end, **document) for end in ("!", "x!"))

    assert metered(fits)
    with pytest.raises(BadDocument) as refused:
        metered(not_)
    assert str(refused.value) == (
        "stream s0: channel c0: the alias '!' makes a text of more than 65536 characters"
    )


def test_equal_texts_are_searched_once() -> None:
    """Types and units repeat; ten thousand of them are no reason to refuse a document."""
    document = channels(10_000) | {"aliases": {f"@{n}@": "" for n in range(200)}}

    searched = metered(document).counts[limits.MAX_COMPARISONS]
    assert (
        searched
        == metered(channels(1) | {"aliases": document["aliases"]}).counts[limits.MAX_COMPARISONS]
    )


def attempted(document: Any) -> Meter:
    """How far it is counted until it is refused, if it is."""
    meter = Meter()
    with contextlib.suppress(BadDocument):
        parse_service_object(document, "so", argument_names, meter)
    return meter


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_counts_grow_with_the_document_and_no_faster(kind: Kind) -> None:
    """Whatever a tenant thinks of: twice the document is twice the work, or refused.

    A constant part (its aliases) makes it less than twice; the margin above is for what
    the generators round.
    """
    small, large = (attempted(kind(size)) for size in (50_000, 100_000))

    for limit, count in large.counts.items():
        assert count <= 2.5 * small.counts.get(limit, 0) + 20_000 or count > limit.most


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_count_passes_its_limit_by_much(kind: Kind) -> None:
    """It is refused while it is counted; only what stands there already is counted at once."""
    parsed_paths.clear()
    text = orjson.dumps(kind(1_000_000))
    meter = attempted(orjson.loads(text))

    for limit, count in meter.counts.items():
        assert count <= max(1.1 * limit.most, 2 * len(text))
