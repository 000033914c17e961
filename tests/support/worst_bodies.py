"""For each parser of what clients send: the input of about so many bytes that is worst for it."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson
from flask import Flask

from api.console.editing import NoDocument, read, write
from api.edge.framing import Body, TooMuch
from api.edge.incoming import Incoming
from api.http import bodies, cursors, queries
from api.resources import listings
from benchmarks.worst_documents import KINDS, Kind
from functions.files.records import csv_rows as file_rows
from functions.files.records import json_lines
from functions.files.source import CHUNK
from operators import manifest
from operators.errors import NotAnOperator
from sandbox.text import argument_names
from servioticy.domain import references, values
from servioticy.domain.batches import csv_rows, json_items, senml
from servioticy.domain.batches.items import Item, bounded
from servioticy.domain.documents import BadDocument, json_texts, parse_service_object, updates
from servioticy.domain.documents.asked_of_windows import asked_of_windows
from servioticy.domain.documents.callbacks import check_subscription
from servioticy.domain.documents.conditions import dynamic_groups
from servioticy.domain.documents.criteria import parse_criteria
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.documents.filters_that_pass import filters_that_pass
from servioticy.domain.documents.parameters import complete, parse_parameters
from servioticy.domain.documents.templates import parse_template
from servioticy.domain.documents.windows import parse_window
from servioticy.domain.model import Channel, Composite, Definition, Input, Stream, StreamRef
from servioticy.domain.path_spelling import BadSpelling, spelled
from servioticy.domain.references import BadReference
from servioticy.domain.search import criteria
from servioticy.domain.windows.model import Window
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.http_heads import MAX_HEAD, Malformed, parse
from servioticy.identity.errors import NotAccepted
from servioticy.identity.signatures import take_apart
from servioticy.refusals import Refused

BODY = 1_048_576
"""Bytes of the largest body that is accepted (setting `max_body_bytes`)."""
STREAM = Stream(
    StreamRef("so", "s"), (Channel("x", "number"), Channel("t", "string"), Channel("p", "any"))
)
WINDOW = Window("global")
READER = updates.UpdateReader(STREAM)
APP = Flask("worst")
REFUSED = (
    BadDocument,
    BadReference,
    BadSpelling,
    Malformed,
    NoDocument,
    NotAccepted,
    NotAnOperator,
    Refused,
    TooMuch,
)


class Worst(NamedTuple):
    """An input that is the worst for its parser, as long as it is made."""

    module: str
    """of the parser, below the root"""
    most: int
    """bytes or characters of the largest input that is accepted"""
    made: Callable[[int], Any]
    read: Callable[[Any], object]

    def run(self, given: Any) -> None:
        """Read it; that it is refused is an answer, too."""
        with contextlib.suppress(*REFUSED):
            self.read(given)


def _form(take: Callable[..., Any]) -> Callable[[bytes], object]:
    """Take a batch apart as the API does, and read each of its updates."""

    def read(body: bytes) -> None:
        for each in bounded(take(body, STREAM.ref)):
            if isinstance(each, Item):
                with contextlib.suppress(BadDocument):
                    each.read(READER)

    return read


def _pack(body: bytes, stream: StreamRef | None) -> Any:
    return senml.pack(body, stream, lambda: 1e9, milliseconds=True)


def _request(made: Callable[[], object], **options: Any) -> None:
    with APP.test_request_context(**options):
        made()


def _json(content: bytes) -> None:
    _request(bodies.json_value, method="POST", data=content, content_type="application/json")


def _query(read: Callable[[], object]) -> Callable[[str], object]:
    return lambda text: _request(read, query_string=text)


def _chunks(content: bytes, step: int) -> None:
    head = parse(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked")
    body, arrived, whole = Body(head, BODY), bytearray(), False
    for at in range(0, len(content), step):
        arrived += content[at : at + step]
        whole = body.take(arrived)
        while body.has_more:
            whole = body.take(arrived)
    assert whole


def _byte_by_byte(content: bytes) -> None:
    incoming = Incoming(BODY)
    for at in range(len(content)):
        incoming.add(memoryview(content)[at : at + 1])
        incoming.take_head()


def _repeated(piece: bytes, size: int) -> bytes:
    return piece * (size // len(piece))


def _array(piece: bytes, size: int) -> bytes:
    return b"[" + b",".join([piece] * ((size - 2) // (len(piece) + 1))) + b"]"


def _window(content: Any, code: str) -> None:
    with contextlib.suppress(BadDocument):
        parse_window(WHOLE, content, [code])


def _over_windows(code: str, pre_filter: str | None = None) -> Definition:
    """Return a document of one stream over windows with this code, which is not parsed."""
    ref = StreamRef("so", "a")
    composite = Composite(
        "function",
        (Input("a", (ref,)),),
        (Channel("v", "number", code=code),),
        pre_filter=pre_filter,
        window=WINDOW,
    )
    streams = (Stream(ref, ()), Stream(StreamRef("so", "c"), (), composite))
    return Definition("so", streams, (), public=False)


def _update(rest: bytes) -> bytes:
    return b'{"lastUpdate":1,"channels":{"t":{"current-value":' + rest + b"}}}"


def _names(size: int) -> bytes:
    return b"lastUpdate," + b",".join(b"%x" % n for n in range(size // 6)) + b"\n"


def _pack_of_channels(size: int) -> bytes:
    records = b",".join(b'{"n":"c%x","v":1}' % n for n in range(size // 19))
    return b'[{"bt":1,"bn":"so/s/"},' + records + b"]"


def _pack_of_one_base(size: int) -> bytes:
    return b'[{"bu":"%b","bn":"x"},' % (b"u" * (size // 2)) + _array(b'{"v":1}', size // 2)[1:]


def _choices(size: int) -> tuple[bytes, bytes]:
    """A template with arrays that differ at their ends as choices, and sets of such values."""
    each = [[1] * 400 + [n] for n in range(min(1_000, size // 1_700))]
    given = [[1] * 400 + [n + 5_000] for n in range(size // 1_700)]
    declared = {"a": {"type": "array", "choices": each, "default": each[0]}}
    return orjson.dumps(declared), orjson.dumps(given)


def _sets(made: tuple[bytes, bytes]) -> None:
    declared = parse_parameters(orjson.loads(made[0]))
    for each in orjson.loads(made[1]):
        with contextlib.suppress(BadDocument):
            complete(declared, {"a": each})


def _edited(text: str) -> None:
    write({"": read(text).document})


def _paths(size: int) -> list[str]:
    return [(f".a{n}b" + ".é-" * 300)[:1_000] for n in range(size // 1_000)]


def _path_by_path(made: list[str]) -> None:
    for path in made:
        with contextlib.suppress(BadReference, BadSpelling):
            references.plain("s", path) or spelled(path)


def _document(kind: Kind) -> Callable[[int], bytes]:
    return lambda size: orjson.dumps(kind(size))


def _parsed(content: bytes) -> None:
    parse_service_object(orjson.loads(content), "so", argument_names)


def _workflow(size: int) -> dict[str, Any]:
    """Blanks and comments before each argument are looked through."""
    blank = "/**/ //\n" * (size // 200)
    names = [f"p{number}" for number in range(20)]
    links = [["source", each] for each in names] + [[each, "sink"] for each in names]
    procedures = {each: {"code": f"function({blank}a) {{}}"} for each in names}
    ends = {"source": {"http": {}}, "sink": {"none": {}}}
    return {**ends, "procedures": procedures, "links": links}


def _token(size: int) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"ES256","a":' + b"[" * (size // 4)).decode()
    return f"{head}.{'A' * (size // 4)}.{'.' * (size // 4)}"


WORST: dict[str, Worst] = {
    "update: a long text of escapes": Worst(
        "servioticy/domain/documents/updates.py",
        BODY,
        lambda n: _update(b'"' + _repeated(rb"\u00e9", n - 80) + b'"'),
        READER.parse,
    ),
    "update: nested arrays": Worst(
        "servioticy/domain/documents/updates.py",
        BODY,
        lambda n: _update(_array(b"[" * 200 + b"]" * 200, n - 80)),
        READER.parse,
    ),
    "window: a duration of digits": Worst(
        "servioticy/domain/documents/durations.py",
        BODY,
        lambda n: {"type": "sliding", "size": "1" * n},
        lambda content: _window(content, ""),
    ),
    **{
        f"window: code with many {words!r}": Worst(
            "servioticy/domain/documents/windows.py",
            BODY,
            lambda n, words=words: words * (n // len(words)),
            lambda code: _window({"type": "global"}, code),
        )
        for words in (
            ".",
            ".by",
            ". by (' ",
            ".by('",
            ".by('x.by(\"",
            ".by('a')",
            f".{' ' * 1000}",
        )
    },
    **{
        f"asked of windows: code with many {words!r}": Worst(
            "servioticy/domain/documents/asked_of_windows.py",
            BODY,
            lambda n, words=words: _over_windows(words * (n // len(words))),
            lambda definition: list(asked_of_windows(definition)),
        )
        for words in ("a.", "a . b ( ' ", "a.b('x", "$input", "a.mean('x", "a ", " ", "a" * 1000)
    },
    **{
        f"filters that are functions: with many {words!r}": Worst(
            "servioticy/domain/documents/filters_that_pass.py",
            BODY,
            lambda n, words=words: _over_windows("1", words * (n // len(words))),
            lambda definition: list(filters_that_pass(definition)),
        )
        for words in (" ", "a", "(", "(a", "async ", "function ", "() ", "a = ")
    },
    "JSON: a NUL behind many texts": Worst(
        "servioticy/domain/documents/json_texts.py",
        BODY,
        lambda n: _array(b'"x"', n - 20)[:-1] + rb',"\u0000"]',
        lambda body: json_texts.refuse_nul(json_texts.read(body), body),
    ),
    "JSON: digits in texts": Worst(
        "servioticy/domain/documents/json_texts.py",
        BODY,
        lambda n: _array(b'"' + b"1" * 1_100 + rb"\"" + b'"', n),
        json_texts.read,
    ),
    "JSON: a number of digits": Worst(
        "servioticy/domain/documents/json_texts.py", BODY, lambda n: b"1" * n, json_texts.read
    ),
    "JSON: numbers hard to round": Worst(
        "servioticy/domain/documents/json_texts.py",
        BODY,
        lambda n: _array(b"0." + b"9" * 900 + b"5e-300", n),
        json_texts.read,
    ),
    "JSON: a key twice, deep": Worst(
        "api/http/bodies.py",
        BODY,
        lambda n: b"[" * 200 + _array(b"[]", n - 600)[:-1] + b',{"a":1,"a":2}]' + b"]" * 200,
        _json,
    ),
    "an edited document: nested arrays": Worst(
        "api/console/editing.py",
        BODY // 4,
        lambda n: _array(b"[" * 150 + b"]" * 150, n).decode(),
        _edited,
    ),
    "an edited document: lines that do not end a text": Worst(
        "api/console/editing.py",
        BODY // 4,
        lambda n: '{"a": ``\n' + "\n  `" * (n // 8) + "\n" + " " * (n // 2),
        _edited,
    ),
    "an edited document: code in lines": Worst(
        "api/console/editing.py",
        BODY // 4,
        lambda n: write({"a": [{"if": "`\n" * 20}] * (n // 60)}),
        _edited,
    ),
    "batch: an array of nothing": Worst(
        "servioticy/domain/batches/json_items.py",
        BODY,
        lambda n: _array(b"1", n),
        _form(json_items.array),
    ),
    "batch: empty lines": Worst(
        "servioticy/domain/batches/json_items.py",
        BODY,
        lambda n: b"\n" * n,
        _form(json_items.lines),
    ),
    "CSV: a line of names": Worst(
        "servioticy/domain/batches/csv_rows.py", BODY, _names, _form(csv_rows.rows)
    ),
    "CSV: quotes": Worst(
        "servioticy/domain/batches/csv_rows.py",
        BODY,
        lambda n: b'lastUpdate,t\n1,"' + b'""' * (n // 2 - 12) + b'"',
        _form(csv_rows.rows),
    ),
    "SenML: channels of one time": Worst(
        "servioticy/domain/batches/senml.py", BODY, _pack_of_channels, _form(_pack)
    ),
    "SenML: one base for many": Worst(
        "servioticy/domain/batches/senml.py", BODY, _pack_of_one_base, _form(_pack)
    ),
    **{
        f"document: {kind.__name__}": Worst(
            "servioticy/domain/documents/service_objects.py", BODY // 4, _document(kind), _parsed
        )
        for kind in KINDS
    },
    "a manifest of a program: digits": Worst(
        "operators/manifest.py",
        manifest.MAX_BYTES,
        lambda size: b'{"name":"a","limits":{"memory":"%b"}}' % (b"1" * (size - 50)),
        manifest.read,
    ),
    "workflow": Worst(
        "servioticy/domain/workflows/reading.py",
        120_000,
        _workflow,
        parse_workflow,
    ),
    "template: places": Worst(
        "servioticy/domain/documents/templates.py",
        BODY,
        lambda n: {"document": {"a": ["{{" * 20] * (n // 43)}},
        parse_template,
    ),
    "template: choices": Worst("servioticy/domain/documents/parameters.py", BODY, _choices, _sets),
    "paths": Worst("servioticy/domain/references.py", 40_000, _paths, _path_by_path),
    "path spelling": Worst("servioticy/domain/path_spelling.py", 40_000, _paths, _path_by_path),
    "conditions of a search": Worst(
        "servioticy/domain/documents/criteria.py",
        10_000,
        lambda n: {
            "match": True,
            "matchfield": "channels.t.current-value",
            "matchstring": "a " * (n // 2),
        },
        lambda document: parse_criteria(document, STREAM),
    ),
    "words of a value": Worst(
        "servioticy/domain/search/criteria.py",
        BODY,
        lambda n: "ab " * (n // 3),
        criteria.words,
    ),
    "conditions of groups": Worst(
        "servioticy/domain/documents/conditions.py",
        BODY,
        lambda n: {
            "groups": {
                f"g{g}": {"stream": "s", "where": {"name": [f"{g} {c}" for c in range(100)]}}
                for g in range(n // 1_000)
            }
        },
        dynamic_groups,
    ),
    "a subscription": Worst(
        "servioticy/domain/documents/callbacks.py",
        BODY,
        lambda n: {
            "callback": "http",
            "destination": "http://x/",
            "customFields": {"headers": {f"a{k}": "b" for k in range(n // 10)}},
        },
        check_subscription,
    ),
    "a place of a channel": Worst(
        "servioticy/domain/values.py",
        BODY,
        lambda n: "1" * (n // 2) + "," + " " * (n // 2),
        lambda text: values.fits(text, "geo_point"),
    ),
    "numbers behind the question mark": Worst(
        "api/http/queries.py", MAX_HEAD, lambda n: "from=" + "9" * (n - 5), _query(queries.span)
    ),
    "a cursor": Worst(
        "api/http/cursors.py",
        MAX_HEAD,
        lambda n: "cursor=" + "A" * (n - 7),
        _query(lambda: cursors.position("x")),
    ),
    "a listing's place": Worst(
        "api/resources/listings.py",
        MAX_HEAD,
        lambda n: "near=" + "," * (n - 5),
        _query(listings._near),
    ),
    "a file of quotes": Worst(
        "functions/files/records.py",
        CHUNK,
        lambda n: b"a\n" + b'"x"y\n' * (n // 5),
        lambda chunk: file_rows(chunk, 0, False, ",", None, len(chunk)),
    ),
    "a file of empty lines": Worst(
        "functions/files/records.py",
        CHUNK,
        lambda n: b"\n" * n,
        lambda chunk: json_lines(chunk, 0, False),
    ),
    "a token": Worst("servioticy/identity/signatures.py", 8_192, _token, take_apart),
    "a head: blanks in a header": Worst(
        "servioticy/http_heads.py",
        MAX_HEAD,
        lambda n: b"GET / HTTP/1.1\r\nHost: x\r\nA:" + b" " * (n - 40) + b"\0",
        parse,
    ),
    "a head: one header again": Worst(
        "servioticy/http_heads.py",
        MAX_HEAD,
        lambda n: (
            (b"GET / HTTP/1.1\r\nHost: x" + b"\r\nA: " + b"b" * (n // 99 - 5)) * 1
            + (b"\r\nA: " + b"b" * (n // 99 - 5)) * 97
        ),
        parse,
    ),
    "a head byte by byte": Worst(
        "api/edge/incoming.py",
        MAX_HEAD,
        lambda n: b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * (n - 40) + b"\r\n\r\n",
        _byte_by_byte,
    ),
    "chunks of one byte": Worst(
        "api/edge/framing.py",
        BODY,
        lambda n: b"1\r\nx\r\n" * (n - 10) + b"0\r\n\r\n",
        lambda content: _chunks(content, 16_384),
    ),
    "chunks of one byte with long lines, byte by byte": Worst(
        "api/edge/framing.py",
        128,
        lambda n: (b"1;" + b"a" * 1_000 + b"\r\nx\r\n") * n + b"0\r\n\r\n",
        lambda content: _chunks(content, 1),
    ),
}
