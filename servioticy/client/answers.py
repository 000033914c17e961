"""What the platform says where it refuses: the same body from the API and from delivery."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

from servioticy.errors import ServioticyError

MAX_REASON = 500
"""Characters of a reason that are shown; a body that is not ours may be a whole page."""


MAX_LOOKED_AT = 65_536
"""Bytes of an answer; those about a document that is made are short, and histories are not."""
_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as it came. The names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as what its JSON says; None where it is empty. Raises ValueError."""
        return json.loads(self.body) if self.body else None

    def warnings(self) -> list[str]:
        """Return what was done and is odd: in `Warning`, or of documents in the body."""
        found = [
            each.replace('\\"', '"') for each in _WARNING.findall(self.headers.get("warning", ""))
        ]
        told = (
            _said(self.body).get("warnings")
            if b'"warnings"' in self.body[:MAX_LOOKED_AT]
            else None
        )
        of_documents = [str(each) for each in told] if isinstance(told, list) else []
        return list(dict.fromkeys([*found, *of_documents]))

    def retry_after(self) -> float | None:
        """Return the seconds after which to ask again; None where the answer does not say."""
        told = self.headers.get("retry-after", "").strip()
        if told.isdecimal():
            return float(told)
        try:
            at = parsedate_to_datetime(told)
        except ValueError:
            return None
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0.0, (at - datetime.now(UTC)).total_seconds())


class Answered(ServioticyError):
    """The API answered with an error; those with a status of their own have a class each.

    `status` is the HTTP status and `reason` what the answer says. `pointer` (a JSON Pointer,
    RFC 6901) and `code` name the place and the kind of what is wrong with a document; both
    are None where the answer has none.
    """

    _classes: ClassVar[dict[int, type[Answered]]] = {}

    def __init_subclass__(cls, status: int) -> None:
        Answered._classes[status] = cls

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
        """Return the error that an answer tells, of the class of its status."""
        said = _said(answer.body)
        pointer, code = (_text(said.get(name)) for name in ("pointer", "code"))
        kind = cls._classes.get(answer.status, Answered)
        return kind(answer.status, reason_in(answer.body), pointer, code)


class NotAcceptable(Answered, status=400):
    """What was sent is not acceptable; `pointer` and `code` may say where and why."""


class NotAuthorized(Answered, status=401):
    """It is another tenant's, and private, or only its owner may do this."""


class UnknownToken(Answered, status=403):
    """There is no token, or an unknown one."""


class NotFound(Answered, status=404):
    """What the request names does not exist."""


class Conflict(Answered, status=409):
    """It does not go together with what is there; others subscribe to it, perhaps."""


class Outdated(Answered, status=412):
    """It has changed since it was read: read it again."""


class TooLarge(Answered, status=413):
    """It is more than the platform takes at once."""


class TooMany(Answered, status=429):
    """Too much of ours waits already, however long we have tried."""


def reason_in(body: bytes) -> str:
    """Return what the body of an error says, with what to do; all of it where it is not ours."""
    said = _said(body)
    message = said.get("detail", said.get("message"))
    return (body.decode(errors="replace") if message is None else str(message))[:MAX_REASON]


def _said(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
