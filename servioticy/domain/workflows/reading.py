"""Reading the document of a workflow, and whether it can run: before any atom comes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from sandbox import argument_names
from servioticy.domain.documents.codes import (
    BAD_CODE,
    BAD_LINK,
    BAD_NAME,
    DUPLICATE,
    NO_CHOICE,
    REQUIRED,
    TOO_MUCH,
    WRONG_TYPE,
)
from servioticy.domain.documents.errors import WHOLE, Part
from servioticy.domain.model import StreamRef
from servioticy.domain.workflows.files import FILES_KEYS, files_of
from servioticy.domain.workflows.model import (
    CALLBACK,
    COLLECT,
    FILES,
    HTTP,
    NONE,
    PARQUET,
    SINK,
    SOURCE,
    STREAM,
    TABLE,
    Files,
    Procedure,
    SinkFiles,
    SinkTable,
    Workflow,
)
from servioticy.domain.workflows.objects import OBJECT_KEYS, sink_files_of
from servioticy.domain.workflows.running import memory_of, program_of
from servioticy.domain.workflows.tables import TABLE_KEYS, sink_table_of

MAX_DOCUMENT_BYTES = 131_072
MAX_PROCEDURES = 20
MAX_LINKS = 60
MAX_CODE = 32_768
"""Characters."""
MAX_NAME = 200
ATTEMPTS, MAX_ATTEMPTS = 5, 20
MAX_DELAY_SECONDS = 43_200
MAX_RESERVED = 1_000

_NAME = re.compile(r"[A-Za-z0-9_-]{1,50}")
_TYPE = re.compile(r"[A-Za-z0-9_.-]{1,50}")
_KEYS = ("name", "source", "procedures", "links", "sink")
_PROCEDURE_KEYS = (
    *("code", "operator", "memory", "attempts", "delay", "reserved", "takes", "makes"),
)
_SOURCES = {HTTP: (), STREAM: ("serviceObject", "stream"), FILES: FILES_KEYS}
_SINKS = {
    STREAM: ("serviceObject", "stream"),
    CALLBACK: ("url",),
    PARQUET: OBJECT_KEYS,
    TABLE: TABLE_KEYS,
    COLLECT: (),
    NONE: (),
}
MAX_URL = 2_000


def parse_workflow(document: Mapping[str, Any]) -> Workflow:
    """Understand what a tenant sends. Raises BadDocument, naming reason and place.

    Whether streams are there, and whether code compiles, is asked by who can.
    """
    if len(orjson.dumps(document)) > MAX_DOCUMENT_BYTES:
        raise WHOLE.bad(f"A workflow has at most {MAX_DOCUMENT_BYTES} bytes", TOO_MUCH)
    _known(document, _KEYS, WHOLE)
    name = document.get("name", "")
    if not isinstance(name, str) or len(name) > MAX_NAME:
        raise WHOLE.at("name", words="name").bad(f"is text of at most {MAX_NAME}", WRONG_TYPE)
    kind, source = _end(document.get(SOURCE), WHOLE.at(SOURCE, words=SOURCE), _SOURCES, "makes")
    sink, target = _end(document.get(SINK), WHOLE.at(SINK, words=SINK), _SINKS, "takes")
    procedures, types = _procedures(document.get("procedures"))
    types[SOURCE] = (None, _type(document[SOURCE], "makes", WHOLE.at(SOURCE)))
    types[SINK] = (_type(document[SINK], "takes", WHOLE.at(SINK)), None)
    links = _links(document.get("links"), types)
    order = _ordered(procedures, links)
    steps = {each: number for number, each in enumerate(order)} | {SINK: len(order)}
    return Workflow(
        [procedures[each] for each in order],
        {each: sorted(steps[to] for to in links[each]) for each in (SOURCE, *order)},
        source if kind == STREAM else None,
        sink,
        target,
        _files(document) if kind == FILES else None,
        _url(document[SINK][CALLBACK]) if sink == CALLBACK else "",
        _sink_files(document) if sink == PARQUET else None,
        _sink_table(document) if sink == TABLE else None,
    )


def _files(document: Mapping[str, Any]) -> Files:
    part = WHOLE.at(SOURCE, words=SOURCE).at(FILES, words=FILES)
    return files_of(document[SOURCE][FILES], part)


def _sink_files(document: Mapping[str, Any]) -> SinkFiles:
    part = WHOLE.at(SINK, words=SINK).at(PARQUET, words=PARQUET)
    return sink_files_of(document[SINK][PARQUET], part)


def _sink_table(document: Mapping[str, Any]) -> SinkTable:
    part = WHOLE.at(SINK, words=SINK).at(TABLE, words=TABLE)
    return sink_table_of(document[SINK][TABLE], part)


def _url(content: Mapping[str, Any]) -> str:
    """Return where atoms are sent to; which addresses may be called is told by who calls."""
    part = WHOLE.at(SINK, CALLBACK, words=SINK).at("url", words="url")
    url = content.get("url")
    if url is None:
        raise part.bad("a callback has one", REQUIRED)
    if (
        not isinstance(url, str)
        or len(url) > MAX_URL
        or not url.isascii()
        or not url.isprintable()
    ):
        raise part.bad(f"is a URL of {MAX_URL} characters at most, in ASCII", WRONG_TYPE)
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or " " in url or parts.fragment:
        raise part.bad(
            "begins with http:// or https:// and a host, without a fragment", WRONG_TYPE
        )
    if parts.username is not None or parts.password is not None:
        raise part.bad(
            "names no user and password: documents are shown to whoever reads them", TOO_MUCH
        )
    return url


def _known(content: Mapping[str, Any], keys: Sequence[str], part: Part) -> None:
    for key in content:
        if key in keys:
            continue
        reason = f"has no {key[:100]!r}; there are {', '.join(keys)}"
        if key in ("workflow", "procedures"):
            reason = "a procedure is no workflow: they are not nested"
        raise part.at(key).bad(reason, BAD_NAME)


def _end(
    content: Any, part: Part, kinds: Mapping[str, Sequence[str]], typed: str
) -> tuple[str, StreamRef | None]:
    """Return the kind of a source or sink, and the stream where it is one."""
    if content is None:
        raise part.bad("a workflow has exactly one", REQUIRED)
    if not isinstance(content, dict):
        raise part.bad("is a JSON object", WRONG_TYPE)
    _known(content, (*kinds, typed), part)
    chosen = [each for each in kinds if each in content]
    if len(chosen) != 1:
        raise part.bad(f"has one of {', '.join(kinds)}", NO_CHOICE)
    (kind,) = chosen
    inner = part.at(kind, words=kind)
    if not isinstance(content[kind], dict):
        raise inner.bad("is a JSON object", WRONG_TYPE)
    _known(content[kind], kinds[kind], inner)
    if kind != STREAM:
        return kind, None
    for key in kinds[kind]:
        if not isinstance(content[kind].get(key), str) or not content[kind][key]:
            raise inner.at(key).bad(f"names its {key}", REQUIRED)
    return kind, StreamRef(content[kind]["serviceObject"], content[kind]["stream"])


_Types = dict[str, tuple[str | None, str | None]]
"""Of what stands at a link: which type of atoms it takes, and which it makes; None: any."""


def _procedures(content: Any) -> tuple[dict[str, Procedure], _Types]:
    part = WHOLE.at("procedures", words="procedures")
    if content is None:
        raise part.bad("a workflow has one at least", REQUIRED)
    if not isinstance(content, dict):
        raise part.bad("is a JSON object: each by its name", WRONG_TYPE)
    if not 0 < len(content) <= MAX_PROCEDURES:
        raise part.bad(f"there are 1 to {MAX_PROCEDURES}", TOO_MUCH if content else REQUIRED)
    found, types = {}, _Types()
    for name, each in content.items():
        own = WHOLE.at("procedures", name, words=f"procedure {name[:100]}")
        if not _NAME.fullmatch(name) or name in (SOURCE, SINK):
            reason = f"is named by 1 to 50 of A-Z a-z 0-9 _ -, and not {SOURCE} or {SINK}"
            raise own.bad(reason, BAD_NAME)
        if not isinstance(each, dict):
            raise own.bad("is a JSON object", WRONG_TYPE)
        _known(each, _PROCEDURE_KEYS, own)
        program = program_of(each, own)
        found[name] = Procedure(
            name,
            "" if program else _code(each.get("code"), own.at("code", words="code")),
            _number(each, "attempts", ATTEMPTS, 1, MAX_ATTEMPTS, own),
            1000 * _number(each, "delay", 0, 0, MAX_DELAY_SECONDS, own),
            _number(each, "reserved", 0, 0, MAX_RESERVED, own),
            memory_of(each, own),
            program,
        )
        types[name] = _type(each, "takes", own), _type(each, "makes", own)
    return found, types


def _code(code: Any, part: Part) -> str:
    if code is None:
        raise part.bad("a procedure has it: `function(atom) {...}`, or an operator", REQUIRED)
    if not isinstance(code, str):
        raise part.bad("is text", WRONG_TYPE)
    if len(code) > MAX_CODE:
        raise part.bad(f"has at most {MAX_CODE} characters", TOO_MUCH)
    try:
        arguments = argument_names(code)
    except ValueError as error:
        raise part.bad(str(error), BAD_CODE) from error
    if len(arguments) != 1:
        raise part.bad("is a function of one argument, the atom", BAD_CODE)
    return code


def _number(
    content: Mapping[str, Any], key: str, usual: int, least: int, most: int, part: Part
) -> int:
    value = content.get(key, usual)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise part.at(key).bad(f"{key} is a whole number from {least} to {most}", WRONG_TYPE)
    return value


def _type(content: Mapping[str, Any], key: str, part: Part) -> str | None:
    if key not in content:
        return None
    value = content[key]
    if not isinstance(value, str) or not _TYPE.fullmatch(value):
        raise part.at(key).bad(f"{key} names a type by 1 to 50 of A-Z a-z 0-9 _ . -", WRONG_TYPE)
    return value


def _links(content: Any, types: _Types) -> dict[str, list[str]]:
    """Return where the atoms of the source and of each procedure go to."""
    part = WHOLE.at("links", words="links")
    if content is None:
        raise part.bad("a workflow needs them, from its source to its sink", REQUIRED)
    if not isinstance(content, list):
        raise part.bad('is a list of pairs, as ["source", "clean"]', WRONG_TYPE)
    if len(content) > MAX_LINKS:
        raise part.bad(f"there are at most {MAX_LINKS}", TOO_MUCH)
    found: dict[str, list[str]] = {name: [] for name in types}
    for number, link in enumerate(content):
        own = WHOLE.at("links", number, words=f"link {number + 1}")
        if not (
            isinstance(link, list) and len(link) == 2 and all(isinstance(e, str) for e in link)
        ):
            raise own.bad('is a pair of names, as ["source", "clean"]', WRONG_TYPE)
        left, right = link
        for place, name in enumerate(link):
            if name not in types:
                raise own.at(place).bad(f"there is no procedure {name[:100]!r}", BAD_LINK)
        if left == SINK or right == SOURCE:
            raise own.bad("nothing leads into the source, or out of the sink", BAD_LINK)
        if left == right:
            raise own.bad("leads from a procedure to itself", BAD_LINK)
        if (left, right) == (SOURCE, SINK):
            raise own.bad("atoms go through a procedure at least", BAD_LINK)
        if right in found[left]:
            raise own.bad("is there twice", DUPLICATE)
        makes, takes = types[left][1], types[right][0]
        if makes is not None and takes is not None and makes != takes:
            raise own.bad(f"{left} makes {makes}, and {right} takes {takes}", BAD_LINK)
        found[left].append(right)
    return found


def _ordered(procedures: Mapping[str, Procedure], links: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the procedures so that every link leads on. Raises BadDocument where none can, or
    where an atom never comes to a procedure, or never leaves it for the sink."""
    part = WHOLE.at("links", words="links")
    before = dict.fromkeys((*procedures, SINK), 0)
    for reached in links.values():
        for each in reached:
            before[each] += 1
    ready, order = [SOURCE], list[str]()
    while ready:
        name = ready.pop(0)
        for each in links.get(name, ()):
            before[each] -= 1
            if before[each] == 0:
                ready.append(each)
        if name not in (SOURCE, SINK):
            order.append(name)
    left = [each for each in procedures if each not in order]
    for each in left:
        if each not in _reached(SOURCE, links):
            raise WHOLE.at("procedures", each).bad(
                f"no way leads from the source to {each}", BAD_LINK
            )
    if left:
        circle = next(each for each in left if each in _reached(each, links))
        raise part.bad(f"lead in a circle through {circle}", BAD_LINK)
    for each in order:
        if SINK not in _reached(each, links):
            raise WHOLE.at("procedures", each).bad(
                f"no way leads from {each} to the sink", BAD_LINK
            )
    return order


def _reached(begin: str, links: Mapping[str, Sequence[str]]) -> set[str]:
    found, waiting = set[str](), list(links[begin])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += links.get(name, ())
    return found
