"""Documents that take long to understand for their size: each kind aims at one part of reading.

For `servioticy bench documents` and for tests. Each function makes a document of about so
many bytes.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Iterator
from typing import Any

Document = dict[str, Any]
Kind = Callable[[int], Document]

SIMPLE = {"channels": {"x": {"type": "number"}}}
CODE = 4096
"""Bytes that one place for code takes."""


def _names() -> Iterator[str]:
    """Short names, each once."""
    for length in itertools.count(1):
        for letters in itertools.product(string.ascii_lowercase, repeat=length):
            yield "".join(letters)


def _coded(codes: list[str], each_stream: int = 200, **more: Any) -> Document:
    """Composite streams with these codes, so many channels each, and a simple stream `a`."""
    streams: Document = {"a": SIMPLE}
    for at in range(0, len(codes), each_stream):
        streams[f"s{at}"] = {
            "channels": {
                f"c{n}": {"type": "number", "current-value": code}
                for n, code in enumerate(codes[at : at + each_stream])
            }
        }
    return {"streams": streams, **more}


def _filled(part: Callable[[int], str], size: int) -> list[str]:
    """Codes made of numbered parts, each code nearly as long as may be, together of this size."""
    codes, total, number = [], 0, 0
    while total < size:
        code: list[str] = []
        length = 0
        while length < min(CODE - 40, size - total):
            code.append(part(number))
            length += len(code[-1].encode())
            number += 1
        if length > CODE:
            code.pop()
        codes.append("".join(code))
        total += length + 45
    return codes


def aliases_that_double(size: int) -> Document:
    """One letter becomes eight thousand, in every channel."""
    aliases = [{chr(65 + n): chr(66 + n) * 2} for n in range(13)]
    return _coded(["A"] * (size // 46), aliases=aliases)


def aliases_that_are_references(size: int) -> Document:
    """A short code becomes thousands of references."""
    aliases = [{"@": "!!!!!!!!"}, {"!": "########"}, {"#": "????????"}, {"?": "{$a.x}"}]
    return _coded([f"@{n}" for n in range(size // 50)], aliases=aliases)


def aliases_that_nearly_fit(size: int) -> Document:
    """Searches that compare much at every place and find nothing."""
    aliases = {f"{'a' * 90}{chr(65 + n // 20)}{chr(65 + n % 20)}aaa": "" for n in range(200)}
    codes = [f"{n}" + "a" * (CODE - 10) for n in range(max(1, (size - 20_000) // CODE))]
    return _coded(codes, aliases=aliases)


def aliases_for_many_texts(size: int) -> Document:
    """Many short texts, each searched for each of two hundred aliases."""
    aliases = {f"@{n}@": "x" for n in range(200)}
    return _units(size - 3000, lambda n: f"{n:06d}") | {"aliases": aliases}


def aliases_that_come_and_go(size: int) -> Document:
    """Every alias finds thousands of places and makes those of the next of them."""
    names = ["".join(pair) for pair in itertools.product(string.ascii_uppercase, repeat=2)][:201]
    aliases = [{name: following} for name, following in itertools.pairwise(names)]
    codes = [f"{n}" + names[0] * (CODE // 2 - 10) for n in range(max(1, size // CODE))]
    return _coded(codes, aliases=aliases)


def aliases_of_aliases(size: int) -> Document:
    """Each of some aliases is twice the one before, and each of many others is the longest."""
    doubled = [{"A": "x"}, *({chr(65 + n): chr(64 + n) * 2} for n in range(1, 14))]
    used = [{f"@{n}@": "N"} for n in range(50)]
    codes = [f"@{n % 50}@" for n in range(size // 46)]
    return _coded(codes, aliases=[*doubled, *used])


def aliases_in_types(size: int) -> Document:
    """Types that become long."""
    streams = {
        f"s{at}": {"channels": {f"c{n}": {"type": f"@{at + n}"} for n in range(500)}}
        for at in range(0, size // 25, 500)
    }
    aliases = {f"{n}": "" for n in range(10)} | {"@": " " * 400 + "number"}
    return {"streams": streams, "aliases": aliases}


def _units(size: int, unit: Callable[[int], str]) -> Document:
    streams: Document = {}
    number = total = 0
    while total < size:
        channels: Document = {}
        while total < size and len(channels) < 1000:
            channels[f"c{number}"] = {"type": "number", "unit": unit(number)}
            total += 40 + len(channels[f"c{number}"]["unit"].encode())
            number += 1
        streams[f"s{number}"] = {"channels": channels}
    return {"streams": streams}


def channels(size: int) -> Document:
    """As many channels as fit."""
    return _units(size, lambda _: "")


def long_names(size: int) -> Document:
    """Names of two hundred characters."""
    streams: Document = {}
    for number in range(size // 22_000 + 1):
        channels = {f"{n:0200d}": {"type": "number"} for n in range(100)}
        streams[f"{number:0200d}"] = {"channels": channels}
    return {"streams": streams}


def names_of_any_script(size: int) -> Document:
    """Characters of four bytes in names, units and code."""
    return _units(size, lambda n: "\U0001f600" * 10 + f"{n}")


def templates(size: int) -> Document:
    """The shortest reference, again and again."""
    return _coded(_filled(lambda _: "{$a}", size))


def braces(size: int) -> Document:
    """Escaped braces, as many as fit."""
    return _coded(_filled(lambda _: "\\{", size // 2))


def open_templates(size: int) -> Document:
    """References that never end."""
    return _coded(_filled(lambda _: "{$a", size))


def references(size: int) -> Document:
    """Different references."""
    return _coded(_filled(lambda n: f"{{$a.c{n}}}", size), 2)


def spellings(size: int) -> Document:
    """One reference, spelled in ever more ways."""
    return _coded(_filled(lambda n: f"{{$a{' ' * (n % 30)}.x{' ' * (n // 30 % 90)}}}", size), 3)


def steps(size: int) -> Document:
    """Paths of five hundred steps."""
    return _coded(_filled(lambda n: f"{{$a{'.x' * 500}.c{n}}}", size))


def paths(size: int) -> Document:
    """Short JSONPaths for the general parser."""
    return _coded(_filled(lambda n: f"{{$a..c{n}}}", size), 2)


def long_paths(size: int) -> Document:
    """Long JSONPaths for the general parser, with what takes it longest."""
    return _coded(_filled(lambda n: f"{{$a{'.*' * 480}.c{n}}}", size))


def filters(size: int) -> Document:
    """JSONPaths with long filters."""
    return _coded(_filled(lambda n: f"{{$a[?{'@||' * 280}@.c{n}]}}", size))


def arguments(size: int) -> Document:
    """Functions that name one argument again and again."""
    codes = [f"function({'a,' * ((CODE - 20) // 2)}a){{}}"] * max(1, size // CODE)
    return _coded(codes, version="0.2.0")


def comments(size: int) -> Document:
    """Functions whose arguments are hidden by comments."""
    codes = [f"{'/**/' * ((CODE - 20) // 4)}function(a){{}}"] * max(1, size // CODE)
    return _coded(codes, version="0.2.0")


def inputs(size: int) -> Document:
    """Streams that read each other."""
    names = list(itertools.islice(_names(), min(1000, max(2, size // 330))))
    reads = ",".join(names[:100])
    code = {"type": "number", "current-value": f"function({reads}){{}}"}
    return {
        "version": "0.2.0",
        "streams": {name: {"channels": {"x": code}} for name in names},
    }


def groups(size: int) -> Document:
    """Groups without a member, as many as fit."""
    found = {f"g{n}": {"soIds": [], "stream": "s"} for n in range(size // 35)}
    return {"streams": {"a": SIMPLE}, "groups": found}


def members(size: int) -> Document:
    """One group of as many members as fit, which many streams read."""
    ids = [f"{n:045d}" for n in range(size // 48)]
    group = {"g": {"soIds": ids, "stream": "s"}}
    return _coded(["{$g.x}"] * 100, 1, groups=group)


def short_members(size: int) -> Document:
    """Members of the shortest names."""
    ids = list(itertools.islice(_names(), size // 7))
    return {"streams": {"a": SIMPLE}, "groups": {"g": {"soIds": ids, "stream": "s"}}}


def actions(size: int) -> Document:
    """Actions, which only have names."""
    return {"streams": {"a": SIMPLE}, "actions": [{"name": f"a{n}"} for n in range(size // 16)]}


def streams(size: int) -> Document:
    """As many streams as fit, each of which reads the one before it."""
    found: Document = {"s0": SIMPLE}
    for number in range(1, min(1000, size // 80)):
        code = f"{{$s{number - 1}.channels.x.current-value}}"
        found[f"s{number}"] = {"channels": {"x": {"type": "number", "current-value": code}}}
    return {"streams": found}


def sentences(size: int) -> Document:
    """Nothing strange: formulas of some length over several values."""
    text = "Math.max({$a.channels.x.current-value}, {$a.channels.y.current-value}) * %d + 1"
    return _coded([text % n for n in range(size // 130)], 25)


def everything(size: int) -> Document:
    """A share of all that may be in one document of expressions."""
    found: Document = {}
    parts = (
        (aliases_for_many_texts, 0.24),
        (steps, 0.13),
        (references, 0.1),
        (paths, 0.01),
        (long_paths, 0.038),
        (templates, 0.3),
        (groups, 0.18),
    )
    for kind, share in parts:
        part = kind(int(size * share))
        for field in ("groups", "aliases"):
            found.setdefault(field, {}).update(part.get(field, {}))
        named = {f"{kind.__name__}{n}": each for n, each in enumerate(part["streams"].values())}
        found.setdefault("streams", {"a": SIMPLE}).update(named)
    return found


def a_type_that_is_no_text(size: int) -> Document:
    """A type of another kind, as large as may be."""
    return {"streams": {"a": {"channels": {"x": {"type": [1] * (size // 2)}}}}}


def other_fields(size: int) -> Document:
    """What the platform keeps and does not read."""
    return {"streams": {"a": SIMPLE}, "customFields": {f"f{n}": n for n in range(size // 15)}}


KINDS: tuple[Kind, ...] = (
    aliases_that_double,
    aliases_that_are_references,
    aliases_that_nearly_fit,
    aliases_for_many_texts,
    aliases_that_come_and_go,
    aliases_of_aliases,
    aliases_in_types,
    channels,
    long_names,
    names_of_any_script,
    templates,
    braces,
    open_templates,
    references,
    spellings,
    steps,
    paths,
    long_paths,
    filters,
    arguments,
    comments,
    inputs,
    groups,
    members,
    short_members,
    actions,
    streams,
    sentences,
    everything,
    a_type_that_is_no_text,
    other_fields,
)
