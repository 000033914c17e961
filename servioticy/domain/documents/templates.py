"""Templates: documents of Service Objects with places for the values of parameters.

`{"$parameter": "name"}` stands for a value, `{{name}}` in a text for its text. A value is data
wherever it stands: it holds no object, it is never looked into for further places, and in code
it is written as a constant of letters, digits, dots, commas and parentheses, which ends no
string, comment or template literal of the code around it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from servioticy.domain.documents.code import POST_FILTER, PRE_FILTER
from servioticy.domain.documents.codes import BAD_PARAMETER, REQUIRED, TOO_MUCH, WRONG_TYPE
from servioticy.domain.documents.errors import WHOLE, Part
from servioticy.domain.documents.parameters import NAME, Parameter, Values, parse_parameters
from servioticy.domain.windowed import FOLD, WHEN

PLACE = "$parameter"
TEMPLATE = "template"
"""In a document: the template that its Service Object follows. The platform writes it."""
MAX_CODE_TEXT = 200
"""Characters of a text that code gets as a constant; each takes up to six there."""
MAX_PLACES = 10_000
MAX_VALUES_BYTES = 1_048_576
"""Of all values in all their places, as JSON."""
_IN_TEXT = re.compile(rf"\{{\{{({NAME})\}}\}}")


@dataclass(frozen=True, slots=True)
class Template:
    """A document with places, and the parameters whose values these take."""

    document: dict[str, Any]
    parameters: dict[str, Parameter]
    places: Mapping[str, int]
    """How many each parameter has."""

    def filled(self, values: Values) -> dict[str, Any]:
        """Return the document with a value in each place. Raises BadDocument.

        `values` has one for each parameter (`parameters.complete`).
        """
        size = sum(count * len(orjson.dumps(values[name])) for name, count in self.places.items())
        if size > MAX_VALUES_BYTES:
            reason = f"the values have more than {MAX_VALUES_BYTES} bytes in all their places"
            raise WHOLE.bad(reason, TOO_MUCH)
        document: dict[str, Any] = _filled(self.document, values, ())
        return document


def parse_template(content: dict[str, Any]) -> Template:
    """Understand what a tenant sends: `parameters` and `document`. Raises BadDocument."""
    parameters = parse_parameters(content.get("parameters"))
    part = WHOLE.at("document", words="document")
    document = content.get("document")
    if document is None:
        raise part.bad("a template needs one", REQUIRED)
    if not isinstance(document, dict):
        raise part.bad("has to be a JSON object", WRONG_TYPE)
    if TEMPLATE in document:
        raise part.at(TEMPLATE).bad(f"the platform writes {TEMPLATE!r}", BAD_PARAMETER)
    if document.keys() >= {PLACE}:
        raise part.bad("is itself a place for a parameter", BAD_PARAMETER)
    return Template(document, parameters, _places(document, parameters, part))


def _places(document: Any, parameters: dict[str, Parameter], whole: Part) -> Counter[str]:
    """Count the places of each parameter.

    Raises BadDocument where one names no parameter, or stands where none can.
    """
    waiting: list[tuple[Any, tuple[str | int, ...]]] = [(document, ())]
    places: Counter[str] = Counter()
    while waiting:
        value, steps = waiting.pop()
        part = whole.at(*steps)
        named = _IN_TEXT.findall(value) if isinstance(value, str) else []
        if isinstance(value, dict) and PLACE in value:
            if len(value) > 1 or not isinstance(value[PLACE], str):
                raise part.bad(f'a place is {{"{PLACE}": "name"}} and no more', BAD_PARAMETER)
            named = [value[PLACE]]
        elif isinstance(value, dict):
            if any(_IN_TEXT.search(key) for key in value):
                raise part.bad("a key cannot be a parameter's", BAD_PARAMETER)
            waiting += [(each, (*steps, key)) for key, each in value.items()]
        elif isinstance(value, list):
            waiting += [(each, (*steps, number)) for number, each in enumerate(value)]
        places.update(named)
        if places.total() > MAX_PLACES:
            raise part.bad(f"more than {MAX_PLACES} places for parameters", TOO_MUCH)
        unknown = next((name for name in named if name not in parameters), None)
        if unknown is not None:
            raise part.bad(f"there is no parameter {unknown[:100]!r}", BAD_PARAMETER)
    return places


def _filled(value: Any, values: Values, steps: tuple[str | int, ...]) -> Any:
    code = _is_code(steps)
    if isinstance(value, dict):
        if PLACE in value:
            found = values[value[PLACE]]
            return _constant(found, steps) if code else found
        return {key: _filled(each, values, (*steps, key)) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, values, (*steps, number)) for number, each in enumerate(value)]
    if isinstance(value, str) and "{{" in value:
        return _IN_TEXT.sub(
            lambda place: _constant(values[place[1]], steps) if code else _text(values[place[1]]),
            value,
        )
    return value


def _is_code(steps: tuple[str | int, ...]) -> bool:
    """Tell whether a text there is code, or an alias, which may become a part of code."""
    match steps:
        case ("aliases", *_) | ("streams", _, "channels", _, "current-value"):
            return True
        case ("streams", _, "window", "emit", key):
            return key == WHEN
        case ("streams", _, "actions", _, key):
            return key == "if"
        case ("streams", _, key):
            return key in (PRE_FILTER, POST_FILTER, FOLD)
    return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _constant(value: Any, steps: tuple[str | int, ...]) -> str:
    """Return JavaScript for the value that is itself wherever it stands.

    Quotes would end a string that the place is in, so a text is told by its characters.
    """
    if isinstance(value, list):
        return f"Array.of({','.join([_constant(each, steps) for each in value])})"
    if not isinstance(value, str):
        return f"({orjson.dumps(value).decode()})"
    if len(value) > MAX_CODE_TEXT:
        reason = f"a text in code has at most {MAX_CODE_TEXT} characters"
        raise WHOLE.at(*steps).bad(reason, TOO_MUCH)
    units = value.encode("utf-16-le", "surrogatepass")
    numbers = [str(int.from_bytes(units[at : at + 2], "little")) for at in range(0, len(units), 2)]
    return f"String.fromCharCode({','.join(numbers)})"
