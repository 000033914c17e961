"""JSONPath references in expressions: parsed here, followed inside the sandbox."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

from jsonpath_ng import JSONPath
from jsonpath_ng.ext.parser import ExtendedJsonPathParser

from servioticy.domain.cache import Cache
from servioticy.domain.model import Reference
from servioticy.domain.path_spelling import BadSpelling, spelled
from servioticy.domain.pauses import Paused, finished
from servioticy.errors import ServioticyError

RESULT = "result"
"""The source that a post-filter calls `$result`: the update about to be emitted."""

_TEMPLATE = re.compile(r"\\([{}])|\{\$([^.\[\]{}\s]++)([^{}]*+)\}")
_STEP = re.compile(
    r"""\.(?P<name>(?!\$(?:[.\[]|\Z))[A-Za-z0-9_$\-]+)
      | \[[ \t\n\r]*'(?P<single>[^'\\\x00-\x1f]*)'[ \t\n\r]*\]
      | \[[ \t\n\r]*"(?P<double>[^"\\\x00-\x1f]*)"[ \t\n\r]*\]
      | \[[ \t\n\r]*(?P<index>0|[1-9][0-9]*)[ \t\n\r]*\]""",
    re.VERBOSE,
)
MAX_PATH = 1024
MAX_NESTED = 20
MAX_NUMBER = 2**53 - 1
"""JavaScript counts no further."""
COMPARISONS = {"==", "=", "!=", "<", "<=", ">", ">="}
Selector = tuple[Any, ...]
"""A step of a path that may find several places, as the sandbox knows it (PathStep there)."""


class BadReference(ServioticyError):
    """A reference is not a JSONPath that can be followed."""


def parse(source: str, path: str) -> Reference:
    """Read what stands between `{$` and `}`: a source and a JSONPath below it.

    `{$g}` and `{$g.}` are the whole update. Raises BadReference with the reason.
    """
    return plain(source, path) or selecting(source, path)


def plain(source: str, path: str) -> Reference | None:
    """Return the reference if its path names one place, by keys and indexes; else None.

    Raises BadReference where the path is too long.
    """
    if len(path) > MAX_PATH:
        raise BadReference(f"the path of {{${source}...}} is longer than {MAX_PATH} characters")
    path = path.strip()
    if path in ("", "."):
        return Reference(source, "$", ())
    steps = tuple(_plain_steps(path))
    if None in steps:
        return None
    if any(isinstance(step, int) and step > MAX_NUMBER for step in steps):
        raise BadReference(f"{{${source}...}}: a number in it is larger than {MAX_NUMBER}")
    return Reference(source, "$" + path, tuple(step for step in steps if step is not None))


def selecting(source: str, path: str) -> Reference:
    """Return the reference of a path that may find several places.

    It takes a general parser. Raises BadReference with the reason.
    """
    try:
        expression = "$" + spelled(path.strip())
    except BadSpelling as reason:
        raise BadReference(f"{{${source}...}}: ${path.strip()}: {reason}") from None
    steps = parsed_paths.get(expression)
    if steps is None:
        selectors = _selected(expression, source)
        steps = _keys(selectors) or selectors
        parsed_paths.put(expression, steps, 100 * len(expression))
    return Reference(source, expression, steps)


parsed_paths: Cache[str, tuple[str | int | Selector, ...]] = Cache(8 * 1024 * 1024)
"""Paths that were parsed before: Service Objects made from one template name the same."""


class _Parser(threading.local):
    """Each thread has one of its own: to make one takes longer than to parse a path."""

    def __init__(self) -> None:
        self.parse = ExtendedJsonPathParser().parse


_parser = _Parser()


def _selected(expression: str, source: str) -> tuple[Selector, ...]:
    try:
        parsed = _parser.parse(expression)
    except MemoryError:
        raise
    except Exception as error:
        # Besides its own errors the parser lets through those of what it calls: `re`, `int`.
        raise BadReference(f"{{${source}...}}: {expression} is not a JSONPath: {error}") from error
    try:
        return tuple(_selectors(parsed, leftmost=True)) or (("this",),)
    except _Refused as reason:
        raise BadReference(f"{{${source}...}}: {expression}: {reason}") from None


def _keys(selectors: tuple[Selector, ...]) -> tuple[str | int, ...] | None:
    """Return the keys and indexes if each selector is only one, written with an escape."""
    keys = [each[1] for each in selectors if each[0] in ("names", "items") and len(each) == 2]
    if len(keys) < len(selectors) or any(isinstance(key, int) and key < 0 for key in keys):
        return None
    return tuple(keys)


class _Refused(Exception):
    """Why the sandbox does not follow a path."""


def _computes(part: str) -> _Refused:
    return _Refused(
        f"{part} is more than looking; a path has names, indexes, slices, `*`, `..` and filters, "
        "the rest is the script's"
    )


def _selectors(path: Any, nested: int = 0, *, leftmost: bool = False) -> Iterator[Selector]:
    if nested > MAX_NESTED:
        raise _Refused(f"filters and brackets are nested more than {MAX_NESTED} times")
    kind = type(path).__name__
    if kind in ("Child", "Descendants"):
        yield from _selectors(path.left, nested, leftmost=leftmost)
        right = tuple(_selectors(path.right, nested + 1))
        yield from right if kind == "Child" else [("below", right)]
    elif kind == "Fields":
        yield ("names", *path.fields)
    elif kind == "Index":
        yield ("items", *map(_countable, path.indices))
    elif kind == "Slice":
        yield ("slice", *map(_countable, (path.start, path.end, path.step)))
    elif kind == "Wildcard":
        yield ("children",)
    elif kind == "Filter":
        yield ("where", *(_test(each, nested + 1) for each in path.expressions))
    elif kind == "Union":
        yield (
            "either",
            *(tuple(_selectors(each, nested + 1)) for each in (path.left, path.right)),
        )
    elif kind == "This":
        yield ("this",)
    elif kind != "Root":
        raise _computes(kind)
    elif not leftmost:
        yield ("root",)


def _test(expression: Any, nested: int) -> Selector:
    """Return what a filter asks of each candidate."""
    kind = type(expression).__name__
    if kind in ("And", "Or"):
        return (kind.lower(), *(_test(each, nested + 1) for each in expression.operands))
    if kind != "Expression":
        return ("found", tuple(_selectors(expression, nested)))
    if expression.op == "!":
        return ("not", _test(expression.target, nested + 1))
    target = tuple(_selectors(expression.target, nested))
    if target[0][0] not in ("this", "root"):
        raise _Refused("what a filter looks at begins with @ or $")
    if expression.op is None:
        return ("found", target)
    if expression.op not in COMPARISONS:
        raise _computes(expression.op)
    if isinstance(expression.value, JSONPath):
        return ("both", expression.op, target, tuple(_selectors(expression.value, nested)))
    return ("value", expression.op, target, _countable(expression.value))


def _countable(value: Any) -> Any:
    """Return the value, unless it is a number that JavaScript cannot count with."""
    if isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:
        raise _Refused(f"a number in it is larger than {MAX_NUMBER}")
    return value


def _plain_steps(path: str) -> Iterator[str | int | None]:
    """Yield the keys of a plain path; a None among them where it is not plain."""
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            yield None
            return
        index = match["index"]
        yield (
            int(index)
            if index
            else next(
                text
                for text in (match["name"], match["single"], match["double"])
                if text is not None
            )
        )
        position = match.end()


def substitute(text: str, number: Callable[[str, str], int]) -> str:
    """Replace each `{$source.path}` by a variable `$n`; `number` says n, given source and path.

    Values are bound to these variables, never pasted into the text. `\\{` and
    `\\}` stand for plain braces.
    """
    return finished(substituting(text, number, lambda: False))


_APART = 1 + _TEMPLATE.groups
"""What is split has so many texts for each that was found: its groups, and what follows."""

SUBSTITUTED = 1000
"""References and braces that are replaced, less than a millisecond, until there is a pause."""


def substituting(
    text: str, number: Callable[[str, str], int], pauses: Callable[[], bool]
) -> Paused[str]:
    """The same with pauses; `pauses` tells whether it is time for one: a number may take long."""
    found = _TEMPLATE.split(text)
    for count, at in enumerate(range(1, len(found), _APART), 1):
        waits = not count % SUBSTITUTED
        if found[at] is None:
            found[at] = f"${number(found[at + 1], found[at + 2])}"
            waits = pauses() or waits
        found[at + 1] = found[at + 2] = ""
        if waits:
            yield
    return "".join(found)
