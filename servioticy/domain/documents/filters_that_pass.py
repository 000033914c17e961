"""Filters that let everything pass, as they are functions and not what functions return."""

from __future__ import annotations

import re
from collections.abc import Iterator

from servioticy.domain.model import Definition

_ARROW = re.compile(r"\s*+(?:async\s++)?+(?:\([^()]*+\)|[\w$]++)\s*+=>")
_FUNCTION = re.compile(r"\s*+(?:async\s++)?+function\b")


def filters_that_pass(definition: Definition) -> Iterator[str]:
    """Yield a sentence for each filter that is a function: none is false."""
    for stream in definition.streams:
        composite = stream.composite
        if composite is None:
            continue
        for key, code in (
            ("pre-filter", composite.pre_filter),
            ("post-filter", composite.post_filter),
        ):
            if code is not None and _is_function(code):
                yield (
                    f"stream {stream.ref.stream}: {key} is a function, which is always true, as "
                    "nobody calls it: write what it returns, with the inputs by their names"
                )


def _is_function(code: str) -> bool:
    """Whether the whole is one, and not the call of one."""
    if _FUNCTION.match(code):
        return code.rstrip().endswith("}")
    return _ARROW.match(code) is not None
