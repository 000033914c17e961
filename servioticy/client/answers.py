"""What the platform says where it refuses: the same body from the API and from delivery."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servioticy.errors import ServioticyError

MAX_REASON = 500
"""Characters of a reason that are shown; a body that is not ours may be a whole page."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as it came. The names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as what its JSON says; None where it is empty. Raises ValueError."""
        return json.loads(self.body) if self.body else None


class Answered(ServioticyError):
    """The API answered with an error, and asking again would not help.

    `status` is the HTTP status and `reason` what the answer says. `pointer` (a JSON Pointer,
    RFC 6901) and `code` name the place and the kind of what is wrong with a document; both
    are None where the answer has none.
    """

    def __init__(
        self, status: int, reason: str, pointer: str | None = None, code: str | None = None
    ) -> None:
        at = f" (at {pointer})" if pointer else ""
        super().__init__(f"the API answered {status}: {reason}{at}")
        self.status = status
        self.reason = reason
        self.pointer = pointer
        self.code = code

    @classmethod
    def of(cls, answer: Answer) -> Answered:
        """Return the error that an answer tells."""
        said = _said(answer.body)
        pointer, code = (_text(said.get(name)) for name in ("pointer", "code"))
        return cls(answer.status, reason_in(answer.body), pointer, code)


def reason_in(body: bytes) -> str:
    """Return the message in the body of an error; the body itself where it is not one of ours."""
    message = _said(body).get("message")
    return (body.decode(errors="replace") if message is None else str(message))[:MAX_REASON]


def _said(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
