"""Whatever is wrong with a document, it is told by a place that was sent."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import orjson
from bad_documents import SIMPLE, refusal, resolved, streams
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.documents.codes import CODES

WHOLE_DOCUMENT = {
    "public": "true",
    "actions": [{"name": "reboot"}],
    "aliases": [{"@t@": "{$a.channels.x.current-value}"}, {"@u@": "C"}],
    "groups": {"g": {"soIds": ["p", "q"], "stream": "s"}},
    "streams": {
        "a": SIMPLE,
        "b": {
            "channels": {"x": {"type": "Array[number]", "unit": "@u@", "current-value": "@t@"}},
            "pre-filter": "{$g..x[0]} > 0",
            "post-filter": "{$result.channels.x} > 0",
            "missing": "skip",
        },
    },
}


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    if isinstance(value, dict | list):
        for key, each in inner:
            yield from paths(each, (*path, key))


@given(
    order=st.permutations(range(6)),
    ring=st.permutations(range(6)).flatmap(
        lambda names: st.integers(2, 6).map(lambda size: names[:size])
    ),
    more=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4),
)
def test_aliases_in_a_circle_are_refused_with_one_of_them(
    order: list[int], ring: list[int], more: list[tuple[int, int]]
) -> None:
    """However long the circle is, and in whatever order they are declared."""
    texts = dict.fromkeys(range(6), "")
    for each, following in [*zip(ring, [*ring[1:], ring[0]], strict=True), *more]:
        texts[each] += f"@{following}@"

    error = refusal(streams() | {"aliases": {f"@{each}@": texts[each] for each in order}})

    assert error is not None
    assert error.code == "alias-cycle"
    assert error.pointer.startswith("/aliases/@")


ODD = st.sampled_from(
    [None, True, 0, 5, "", " ", "a/b", "{$z}", "{$a[}", "@t@@t@", "x" * 5000, [], {}, [5], {"": 1}]
)


@given(
    changed=st.lists(
        st.tuples(st.sampled_from(list(paths(WHOLE_DOCUMENT))[1:]), ODD, st.booleans()),
        min_size=1,
        max_size=3,
    ),
    version=st.sampled_from([None, "0.2.0"]),
)
def test_every_pointer_leads_to_something_that_was_sent(
    changed: list[tuple[tuple[Any, ...], Any, bool]], version: str | None
) -> None:
    """Whatever is put in the place of whatever, or taken away."""
    document: Any = copy.deepcopy(WHOLE_DOCUMENT) | {"version": version}
    for (*path, last), value, is_kept in changed:
        parent = document
        try:
            for key in path:
                parent = parent[key]
            if isinstance(parent, dict) != isinstance(last, str):
                continue
            if is_kept:
                parent[last] = copy.deepcopy(value)
            else:
                del parent[last]
        except (KeyError, IndexError, TypeError):
            continue
    document = orjson.loads(orjson.dumps(document))

    error = refusal(document)

    if error is not None:
        resolved(error.pointer, document)
        assert error.code in CODES
