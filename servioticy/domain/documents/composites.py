"""The composite streams of a document, in either dialect."""

from __future__ import annotations

from typing import Any

from servioticy.domain.documents.aliases import size
from servioticy.domain.documents.code import (
    POST_FILTER,
    PRE_FILTER,
    Code,
    Context,
    Written,
    code_of,
    own_input,
)
from servioticy.domain.documents.codes import (
    BAD_CODE,
    BAD_WINDOW,
    MIXED_CHANNELS,
    TOO_MUCH,
    WRONG_TYPE,
)
from servioticy.domain.documents.dialects import NEWEST, is_function
from servioticy.domain.documents.emitting import when_of
from servioticy.domain.documents.errors import BadDocument, Part
from servioticy.domain.documents.expressions import parse_expressions
from servioticy.domain.documents.folds import fold_of, with_state
from servioticy.domain.documents.following import following, says_follow
from servioticy.domain.documents.functions import parse_functions
from servioticy.domain.documents.operators import parse_operator
from servioticy.domain.documents.options import parse_options
from servioticy.domain.documents.over_windows import given, named_by, over_windows
from servioticy.domain.model import Channel, Composite, StreamRef
from servioticy.domain.pauses import PAUSE, Paused
from servioticy.domain.program_code import OPERATOR
from servioticy.domain.windowed import FOLD, FOLLOW

MAX_CODE = 65_536
"""Bytes of code in one place, as written; all code of a document has a limit of its own."""

PARSERS = {"function": parse_functions, "expression": parse_expressions}


def parse_composite(
    ref: StreamRef,
    content: dict[str, Any],
    channels: tuple[Channel, ...],
    stream: Part,
    context: Context,
) -> Paused[Composite | None]:
    """Return how the stream is computed, or None for a simple stream.

    Raises BadDocument where channels with and without code are mixed, where code names a
    source that the document does not have, or where it is too long.
    """
    if content.get(OPERATOR) is not None:
        return parse_operator(ref, content, channels, stream, context)
    if all(channel.code is None for channel in channels):
        others = [FOLD] if content.get(FOLD) is not None else []
        others += [FOLLOW] if says_follow(stream, content) else []
        for key in [*given(content), *others]:
            reason = "is for a stream whose channels have a current-value"
            raise stream.at(key, words=key).bad(reason, BAD_WINDOW)
        return None
    if any(channel.code is None for channel in channels):
        reason = f"{stream.words}: some channels have a current-value, some not"
        raise BadDocument(reason, stream.at("channels").pointer, MIXED_CHANNELS)
    codes = [Code(each.code or "", code_of(stream, each.name)) for each in channels]
    pre, post = (_filter(content, name, stream) for name in (PRE_FILTER, POST_FILTER))
    written = Written(ref, stream, codes, pre, post, when=when_of(stream, content))
    fold = fold_of(written, content, context)
    if fold is not None:
        written, context = written._replace(fold=fold), with_state(context)
    more = [each for each in (written.fold, written.when) if each is not None]
    for code in [*written.codes, *more]:
        if size(code.text) > MAX_CODE:
            reason = f"{stream.words}: more than {MAX_CODE} bytes of code in one place"
            raise BadDocument(reason, code.part.pointer, TOO_MUCH)
    if context.dialect == "expression":
        for number, code in enumerate(codes):
            if not number % PAUSE:
                yield
            if is_function(code.text, context.argument_names):
                reason = f'this is a function, which needs "version": "{NEWEST}"'
                raise code.part.bad(reason, BAD_CODE)
    options = parse_options(stream, content)
    parsed = yield from PARSERS[context.dialect](written, context)
    composite = Composite(
        context.dialect,
        parsed.inputs,
        tuple(
            Channel(each.name, each.type, each.unit, code)
            for each, code in zip(channels, parsed.channels, strict=True)
        ),
        own_input(ref, parsed.inputs),
        parsed.pre_filter,
        parsed.post_filter,
        parsed.references,
        options,
    )
    is_over_windows = bool(given(content))
    if says_follow(stream, content):
        named = named_by(composite, written, context)
        composite = following(stream, composite, named, is_over_windows=is_over_windows)
    if not is_over_windows:
        return composite
    return over_windows(composite, content, written, context, parsed.when)


def _filter(content: dict[str, Any], name: str, stream: Part) -> Code | None:
    value = content.get(name)
    if value is None:
        return None
    part = stream.at(name, words=name)
    if not isinstance(value, str):
        raise BadDocument(f"{part.words} has to be text", part.pointer, WRONG_TYPE)
    return Code(value, part)
