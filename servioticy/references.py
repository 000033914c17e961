"""JSONPath references in expressions: parsed when defined, resolved when fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.parser import parse as parse_jsonpath

from servioticy.errors import ServioticyError
from servioticy.model import Reference

RESULT = "result"
"""The source that a post-filter calls `$result`: the update about to be emitted."""

_TEMPLATE = re.compile(r"\\([{}])|\{\$([^.\[\]{}\s]++)([^{}]*+)\}")
_STEP = re.compile(
    r"""\.(?P<name>[A-Za-z0-9_$\-]+)
      | \[\s*'(?P<single>[^'\\]*)'\s*\]
      | \[\s*"(?P<double>[^"\\]*)"\s*\]
      | \[\s*(?P<index>\d+)\s*\]""",
    re.VERBOSE,
)
MAX_PATH = 1024
MAX_DESCENTS = 2
LOOKING = {
    *("Root", "This", "Parent", "Child", "Descendants", "Fields", "Wildcard", "Index", "Slice"),
    *("Union", "Intersect", "Where", "WhereNot", "Filter", "Expression", "Len", "Keys"),
}
"""What a path may consist of. It is followed outside the sandbox, without a limit of time:
arithmetic, `sub`, `split`, sorting and regular expressions belong into the script."""


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
    _compiled(expression, source)
    return Reference(source, expression, None)


def selectors(reference: Reference) -> tuple[Selector, ...]:
    """A path that is not plain, as the sandbox follows it below `$result`.

    Raises BadReference for what has to be known where the path leads: filters, parents.
    """
    return tuple(_selectors(_compiled(reference.expression, reference.source), reference))


def _selectors(path: Any, reference: Reference) -> Iterator[Selector]:
    kind = type(path).__name__
    if kind in ("Child", "Descendants"):
        yield from _selectors(path.left, reference)
        right = tuple(_selectors(path.right, reference))
        yield from right if kind == "Child" else [("below", right)]
    elif kind == "Fields":
        yield ("names", *path.fields)
    elif kind == "Index":
        yield ("items", *path.indices)
    elif kind == "Slice":
        yield ("slice", path.start, path.end, path.step)
    elif kind == "Wildcard":
        yield ("children",)
    elif kind == "This":
        yield ("this",)
    elif kind != "Root":
        raise BadReference(
            f"{{${reference.source}{reference.expression[1:]}}}: {kind} is not possible below "
            f"${RESULT}, only names, indexes, slices, `*` and `..`: the rest is the script's"
        )


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


def resolve(reference: Reference, document: Any) -> Any:
    """What the reference finds in a parsed update: a value, or None where there is none.

    A path that can match several places gives the list of what it matched.
    """
    if document is None:
        return None
    if reference.steps is not None:
        for step in reference.steps:
            if isinstance(document, str):
                return None  # JSONPath does not look into texts
            try:
                document = document[step]
            except (KeyError, IndexError, TypeError):
                return None
        return document
    matches = [each.value for each in _compiled(reference.expression, "").find(document)]
    return matches or None


@lru_cache(maxsize=10_000)
def _compiled(expression: str, source: str) -> Any:
    try:
        path = parse_jsonpath(expression)
    except (JSONPathError, Exception) as error:
        raise BadReference(f"{{${source}...}}: {expression} is not a JSONPath: {error}") from error
    parts = list(_parts(path))
    for part in parts:
        kind = type(part).__name__
        if kind not in LOOKING or getattr(part, "op", None) == "=~":
            raise BadReference(
                f"{{${source}...}}: {expression}: {kind} computes; a path may only look"
            )
    if sum(type(each).__name__ == "Descendants" for each in parts) > MAX_DESCENTS:
        raise BadReference(
            f"{{${source}...}}: {expression}: `..` is possible {MAX_DESCENTS} times"
        )
    return path


def _parts(path: Any) -> Iterator[Any]:
    """Everything that a parsed path consists of."""
    waiting = [path]
    while waiting:
        part = waiting.pop()
        yield part
        for value in vars(part).values():
            inside = value if isinstance(value, list | tuple) else [value]
            waiting += [each for each in inside if type(each).__module__.startswith("jsonpath_ng")]
