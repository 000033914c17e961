"""The dialect of functions, version 0.2.0: arguments name the inputs."""

from __future__ import annotations

from servioticy.domain.documents.aliases import size
from servioticy.domain.documents.code import (
    Code,
    Context,
    Parsed,
    Written,
    inputs_of,
    own_input,
)
from servioticy.domain.documents.codes import BAD_CODE
from servioticy.domain.documents.errors import Part
from servioticy.domain.documents.limits import MAX_ARGUMENTS, MAX_TEXT, Meter
from servioticy.domain.model import Input
from servioticy.domain.pauses import Paused

TRIGGER = "$input"
"""The argument name under which a function gets the update that triggered it."""


def parse_functions(written: Written, context: Context) -> Paused[Parsed]:
    """Understand the code of a stream. Raises BadDocument."""
    names: dict[str, Part] = {}
    channels = []
    for each in written.channels:
        if context.meter.pauses():
            yield
        channels.append(_function(each, names, context))
    if written.fold is not None:
        _function(written.fold, names, context)
    inputs = inputs_of(names, "a function", written, context)
    own = written.ref.stream
    if own not in names and own_input(written.ref, inputs) is None:
        # Always available under its own name, an argument or not.
        inputs += (Input(own, context.members[own]),)
    pre = _counted(written.pre_filter, context.meter)
    post = _counted(written.post_filter, context.meter)
    when = _counted(written.when, context.meter)
    return Parsed(inputs, channels, pre, post, when=when)


def _function(code: Code, names: dict[str, Part], context: Context) -> str:
    """Return its text; the arguments are added to `names`."""
    text, part = code
    context.meter.count(MAX_TEXT, size(text), part)
    try:
        arguments = context.argument_names(text)
    except ValueError as error:
        raise part.bad(str(error), BAD_CODE) from error
    context.meter.count(MAX_ARGUMENTS, len(arguments), part)
    for name in arguments:
        if name != TRIGGER:
            names.setdefault(name, part)
    return text


def _counted(code: Code | None, meter: Meter) -> str | None:
    if code is None:
        return None
    meter.count(MAX_TEXT, size(code.text), code.part)
    return code.text
