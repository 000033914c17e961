"""The settings as they are declared: name, place and type of each, and its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from servioticy.errors import SettingsError
from servioticy.settings.sections import Settings

inspect = msgspec.inspect


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting."""

    name: str
    """its name where there are no sections: in the environment, in messages, in the docs"""
    section: str
    """empty where it stands at the top"""
    key: str
    """its name in its section"""
    type: Any
    default: Any
    doc: str
    secret: bool
    place: bool
    """whether it is a file, folder or socket of this machine"""

    @property
    def expected(self) -> str:
        """What values it takes, in words."""
        if get_origin(self.type) is Literal:  # in our order, not in that of the alphabet
            return "one of " + ", ".join(get_args(self.type))
        return _words(inspect.type_info(self.type))

    def converted(self, value: Any) -> Any:
        """Return the value in the setting's type, from text where it is text.

        Raises SettingsError.
        """
        try:
            is_text = isinstance(value, str) and isinstance(self.default, dict)
            given = msgspec.json.decode(value) if is_text else value
            return msgspec.convert(given, self.type, strict=False)
        except (msgspec.DecodeError, UnicodeError):
            shown = "(hidden)" if self.secret else repr(value)
            message = f"setting {self.name} = {shown}: expected {self.expected}"
        raise SettingsError(message)  # without the cause, which may tell a secret


def declared(of: type[Any], section: str = "") -> Iterator[Declared]:
    """Yield the settings of a class with sections, or of a section."""
    types, defaults = get_type_hints(of, include_extras=True), of()
    for each in fields(of):
        about = each.metadata
        if "doc" in about:
            name = about["name"] or of.PREFIX + each.name
            default, kind = getattr(defaults, each.name), types[each.name]
            told = about["doc"], about["secret"], about["place"]
            yield Declared(name, section, each.name, kind, default, *told)
        else:
            yield from declared(types[each.name], each.name)


DECLARED = {each.name: each for each in declared(Settings)}
"""Every setting by its name, in order of the sections."""


def _words(of: inspect.Type) -> str:
    if isinstance(of, inspect.Metadata):
        return str((of.extra_json_schema or {})["description"])
    if isinstance(of, inspect.BoolType):
        return "true or false"
    if isinstance(of, inspect.IntType):
        return f"a whole number from {of.ge} to {of.le}"
    if isinstance(of, inspect.FloatType):
        least = f"above {of.gt:.15g}, at most" if of.ge is None else f"from {of.ge:.15g} to"
        return f"a number {least} {of.le:.15g}"
    if isinstance(of, inspect.StrType):
        return "text that is not empty" if of.min_length else "text"
    raise TypeError(f"no words for {of}")
