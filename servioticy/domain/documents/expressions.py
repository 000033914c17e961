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
from servioticy.domain.references import RESULT, BadReference, plain, selecting, substitute

MAX_REFERENCES_OF_A_STREAM = 1000


def parse_expressions(written: Written, context: Context) -> Parsed:
    """Understand the code of a stream. Raises BadDocument."""
    references = _References(context.meter)

    def bound(code: Code) -> str:
        text = context.aliases.expanded(code.text, code.part)
        return substitute(text, lambda source, path: references.number(source, path, code.part))

    channels = [bound(code) for code in written.channels]
    pre = None if written.pre_filter is None else bound(written.pre_filter)
    post = None if written.post_filter is None else bound(written.post_filter)
    when = None if written.when is None else _condition(written.when, bound(written.when))
    names: dict[str, Part] = {}
    for reference, part in references.parts.items():
        if reference.source != RESULT:
            names.setdefault(reference.source, part)
    inputs = inputs_of(names, "an expression", written, context)
    return Parsed(inputs, channels, pre, post, tuple(references.parts), when)


def _condition(code: Code, bound: str) -> str:
    """Return it as it is bound. Raises BadDocument where it names what there is not yet."""
    if f"{{${RESULT}" in code.text:
        raise code.part.bad("is asked before there is a result", BAD_REFERENCE)
    return bound


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
