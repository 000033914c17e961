"""JSONPath references in expressions: parsed here, followed inside the sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonpath_ng import JSONPath
from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.parser import parse as parse_jsonpath

from servioticy.errors import ServioticyError
from servioticy.model import Reference

RESULT = "result"
"""The source that a post-filter calls `$result`: the update about to be emitted."""

_TEMPLATE = re.compile(r"\\([{}])|\{\$([^.\[\]{}\s]++)([^{}]*+)\}")
_STEP = re.compile(
    r"""\.(?P<name>(?!\$(?:[.\[]|\Z))[A-Za-z0-9_$\-]+)
      | \[\s*'(?P<single>[^'\\]*)'\s*\]
      | \[\s*"(?P<double>[^"\\]*)"\s*\]
      | \[\s*(?P<index>\d+)\s*\]""",
    re.VERBOSE,
)
MAX_PATH = 1024
COMPARISONS = {"==", "=", "!=", "<", "<=", ">", ">="}
Selector = tuple[Any, ...]
"""A step of a path that may find several places, as the sandbox knows it (PathStep there)."""


class BadReference(ServioticyError):
    """A reference is not a JSONPath we can resolve."""


def parse(source: str, path: str) -> Reference:
    """Read what stands between `{$` and `}`: a source and a JSONPath below it.

    `{$g}` and `{$g.}` are the whole update. Raises BadReference with the reason.
    """
    if len(path) > MAX_PATH:
        raise BadReference(f"the path of {{${source}...}} is longer than {MAX_PATH} characters")
    path = path.strip()
    if path in ("", "."):
        return Reference(source, "$", ())
    steps = tuple(_plain_steps(path))
    if None not in steps:
        return Reference(source, "$" + path, tuple(step for step in steps if step is not None))
    expression = "$" + re.sub(r"\.([A-Za-z0-9_$]*-[A-Za-z0-9_$\-]*)", r".'\1'", path)
    return Reference(source, expression, _selected(expression, source))


@lru_cache(maxsize=10_000)
def _selected(expression: str, source: str) -> tuple[Selector, ...]:
    try:
        parsed = parse_jsonpath(expression)
    except (JSONPathError, Exception) as error:
        raise BadReference(f"{{${source}...}}: {expression} is not a JSONPath: {error}") from error
    try:
        return tuple(_selectors(parsed, leftmost=True)) or (("this",),)
    except _Computes as part:
        raise BadReference(
            f"{{${source}...}}: {expression}: {part} is more than looking; a path has names, "
            "indexes, slices, `*`, `..` and filters, the rest is the script's"
        ) from None


class _Computes(Exception):
    """A part of a path that the sandbox does not follow: arithmetic, regular expressions."""


def _selectors(path: Any, *, leftmost: bool = False) -> Iterator[Selector]:
    kind = type(path).__name__
    if kind in ("Child", "Descendants"):
        yield from _selectors(path.left, leftmost=leftmost)
        right = tuple(_selectors(path.right))
        yield from right if kind == "Child" else [("below", right)]
    elif kind == "Fields":
        yield ("names", *path.fields)
    elif kind == "Index":
        yield ("items", *path.indices)
    elif kind == "Slice":
        yield ("slice", path.start, path.end, path.step)
    elif kind == "Wildcard":
        yield ("children",)
    elif kind == "Filter":
        yield ("where", *(_test(each) for each in path.expressions))
    elif kind == "Union":
        yield ("either", tuple(_selectors(path.left)), tuple(_selectors(path.right)))
    elif kind == "This":
        yield ("this",)
    elif kind != "Root":
        raise _Computes(kind)
    elif not leftmost:
        yield ("root",)


def _test(expression: Any) -> Selector:
    """What a filter asks of each candidate."""
    kind = type(expression).__name__
    if kind in ("And", "Or"):
        return (kind.lower(), *(_test(each) for each in expression.operands))
    if kind != "Expression":
        return ("found", tuple(_selectors(expression)))
    if expression.op == "!":
        return ("not", _test(expression.target))
    target = tuple(_selectors(expression.target))
    if expression.op is None:
        return ("found", target)
    if expression.op not in COMPARISONS:
        raise _Computes(expression.op)
    if isinstance(expression.value, JSONPath):
        return ("both", expression.op, target, tuple(_selectors(expression.value)))
    return ("value", expression.op, target, expression.value)


def _plain_steps(path: str) -> Iterator[str | int | None]:
    """The keys of a plain path; a None among them where it is not plain."""
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


def substitute(text: str, references: list[Reference]) -> str:
    """Replace each `{$source.path}` by a variable `$n`, noting the n-th reference.

    Values are bound to these variables, never pasted into the text. `\\{` and
    `\\}` stand for plain braces. Equal references share one variable.
    """

    def replaced(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        reference = parse(match[2], match[3])
        if reference not in references:
            references.append(reference)
        return f"${references.index(reference)}"

    return _TEMPLATE.sub(replaced, text)
