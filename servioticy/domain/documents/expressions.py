"""The dialect of expressions: references `{$source.path}`, and aliases."""

from __future__ import annotations

from servioticy.domain.documents.code import Code, Context, Parsed, Written, inputs_of
from servioticy.domain.documents.codes import BAD_REFERENCE, TOO_MUCH
from servioticy.domain.documents.errors import Part
from servioticy.domain.documents.limits import (
    MAX_PATH_CHARACTERS,
    MAX_PATHS,
    MAX_REFERENCES,
    MAX_STEPS,
    Meter,
)
from servioticy.domain.model import Reference
from servioticy.domain.pauses import Paused
from servioticy.domain.references import RESULT, BadReference, plain, selecting, substituting

MAX_REFERENCES_OF_A_STREAM = 1000


def parse_expressions(written: Written, context: Context) -> Paused[Parsed]:
    """Understand the code of a stream. Raises BadDocument."""
    meter = context.meter
    references = _References(meter)

    def bound(code: Code | None) -> Paused[str | None]:
        return None if code is None else (yield from of_code(code))

    def of_code(code: Code) -> Paused[str]:
        if meter.pauses():
            yield
        text = yield from context.aliases.expanded(code.text, code.part)
        if "{" not in text and "\\" not in text:
            return text
        return (
            yield from substituting(
                text,
                lambda source, path: references.number(source, path, code.part),
                meter.pauses,
            )
        )

    channels = []
    for each in written.channels:
        channels.append((yield from of_code(each)))
    pre = yield from bound(written.pre_filter)
    post = yield from bound(written.post_filter)
    when = yield from bound(written.when)
    if written.when is not None:
        _check_condition(written.when)
    names: dict[str, Part] = {}
    for reference, part in references.parts.items():
        if reference.source != RESULT:
            names.setdefault(reference.source, part)
    inputs = inputs_of(names, "an expression", written, context)
    return Parsed(inputs, channels, pre, post, tuple(references.parts), when)


def _check_condition(code: Code) -> None:
    """Raise BadDocument where it names what there is not yet."""
    if f"{{${RESULT}" in code.text:
        raise code.part.bad("is asked before there is a result", BAD_REFERENCE)


class _References:
    """The references of one stream, each once, numbered in the order of the text."""

    def __init__(self, meter: Meter) -> None:
        self.parts: dict[Reference, Part] = {}
        """of each reference, where it stands first"""
        self._numbers: dict[Reference, int] = {}
        self._spelled: dict[tuple[str, str], int] = {}
        self._meter = meter

    def number(self, source: str, path: str, part: Part) -> int:
        """Return the number of what is written `{$source.path}` in this part of the document."""
        spelled = (source, path)
        number = self._spelled.get(spelled)
        if number is None:
            reference = self._parse(source, path, part)
            number = self._spelled[spelled] = self._numbered(reference, part)
        return number

    def _numbered(self, reference: Reference, part: Part) -> int:
        number = self._numbers.get(reference)
        if number is None:
            number = self._numbers[reference] = len(self._numbers)
            self.parts[reference] = part
            if number >= MAX_REFERENCES_OF_A_STREAM:
                reason = f"more than {MAX_REFERENCES_OF_A_STREAM} references in one stream"
                raise part.bad(reason, TOO_MUCH)
            self._meter.count(MAX_REFERENCES, 1, part)
        return number

    def _parse(self, source: str, path: str, part: Part) -> Reference:
        try:
            reference = plain(source, path)
            if reference is None:
                self._meter.count(MAX_PATHS, 1, part)
                self._meter.count(MAX_PATH_CHARACTERS, len(path), part)
                reference = selecting(source, path)
        except BadReference as error:
            raise part.bad(str(error), BAD_REFERENCE) from error
        self._meter.count(MAX_STEPS, 1 + len(reference.path), part)
        return reference
