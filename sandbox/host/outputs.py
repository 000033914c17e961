"""What the outputs of a program have to look like, whatever its process says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal
from weakref import WeakValueDictionary

import msgspec

from sandbox.host.answers import MalformedAnswer
from sandbox.program import ATOMS, HOLDS, JSON, Program
from sandbox.text import normal_type, well_formed

MAX_OUTPUT_BYTES = 1_000_000
"""Of an output's JSON. Less than an update from outside may have, and with what it travels in
less than the broker takes. The runner decides it; here it is only looked at again."""

MAX_CHANNELS = 1000
"""Kinds of channels, each with its unit, that are kept: a tenant may think of any number."""

_NUMBER = r"-?[0-9]{1,25}(?:\.[0-9]{1,25})?(?:e[+-]?[0-9]{1,3})?"

_SCALARS: dict[str, Any] = {
    HOLDS: bool,
    JSON: Any,
    ATOMS: Any,
    "number": float,
    "string": str,
    "boolean": bool,
    "geo_point": Annotated[str, msgspec.Meta(pattern=rf"^{_NUMBER},{_NUMBER}\Z")],
}


_Told = tuple[tuple[str, str, str | None], ...]
"""Name, type and unit of each channel."""


class Shape:
    """A shape reads the outputs of programs that tell the same channels, many at a time."""

    def __init__(self, told: _Told) -> None:
        self._channels = {name: _channel(kind, unit) for name, kind, unit in told}
        plain = all(_is_plain(name) for name in self._channels)
        output: Any = _output(self._channels if plain else None)
        self._decoder = msgspec.json.Decoder(list[output])
        self._is_plain = plain

    def check(self, documents: Sequence[msgspec.Raw], timestamps: Sequence[int]) -> None:
        """Raise MalformedAnswer unless these are outputs of this shape and these times."""
        if max([len(memoryview(each)) for each in documents], default=0) > MAX_OUTPUT_BYTES:
            raise MalformedAnswer("an output that is too large")
        text = b",".join(documents)
        if not is_one_line(text):
            raise MalformedAnswer("an output of several lines")
        try:
            outputs = self._decoder.decode(b"[%b]" % text)
            if not self._is_plain:
                self._check_channels(outputs)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedAnswer(f"an output of another shape: {error}"[:300]) from error
        if [each.lastUpdate for each in outputs] != list(timestamps):
            raise MalformedAnswer("an output of another time")

    def _check_channels(self, outputs: Sequence[Any]) -> None:
        """The same for names that a struct cannot have."""
        for each in outputs:
            if each.channels.keys() != self._channels.keys():
                raise MalformedAnswer("not the program's channels")
            for name, kind in self._channels.items():
                msgspec.json.decode(each.channels[name], type=kind)


_shapes: WeakValueDictionary[_Told, Shape] = WeakValueDictionary()
"""Those that somebody has. Each is two classes: some kilobytes, and thousands of tenants have the
same."""


def shape_of(program: Program) -> Shape:
    """Return what the outputs of a program look like; the same one for all that are alike."""
    function = program.dialect == "function"
    told = tuple(
        (
            well_formed(each.name),
            normal_type(each.type),
            well_formed(each.unit) if function and each.unit is not None else None,
        )
        for each in program.channels
    )
    found = _shapes.get(told)
    if found is None:
        found = _shapes[told] = Shape(told)
    return found


def is_one_line(text: bytes) -> bool:
    """Tell whether JSON is on one line and without tabs, as all that is stored has to be."""
    return not (b"\n" in text or b"\r" in text or b"\t" in text)


def _output(channels: dict[str, Any] | None) -> Any:
    content: Any = dict[str, msgspec.Raw]
    if channels is not None:
        fields = [(f"c{n}", kind) for n, kind in enumerate(channels.values())]
        names = {f"c{n}": name for n, name in enumerate(channels)}
        content = msgspec.defstruct(
            "Channels", fields, rename=names, forbid_unknown_fields=True, gc=False
        )
    return msgspec.defstruct(
        "Output",
        [("channels", content), ("lastUpdate", int)],
        forbid_unknown_fields=True,
        gc=False,
    )


@lru_cache(MAX_CHANNELS)
def _channel(kind: str, unit: str | None) -> Any:
    """What a channel of this type and unit is read as; nothing is of an unknown type."""
    fields: list[Any] = [("value", _kind(kind))]
    if unit is not None:
        fields.append(("unit", Literal[unit]))
    return msgspec.defstruct(
        "Channel", fields, rename={"value": "current-value"}, forbid_unknown_fields=True, gc=False
    )


def _kind(name: str) -> Any:
    if name.startswith("array[") and name.endswith("]"):
        return list[_kind(name[6:-1])]  # type: ignore[misc]
    return _SCALARS.get(name, Literal["of no type"])


def _is_plain(name: str) -> bool:
    """Whether a struct can have a field of this name."""
    return name.isprintable() and not {'"', "\\"} & set(name)
