"""The request that an update becomes: its form is the subscription's to choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from delivery.callbacks.signing import signed_headers
from delivery.evaluating.budget import Budget, TooMuch
from delivery.evaluating.templates import (
    Escape,
    filled,
    for_address,
    for_body,
    for_header,
    has_reference,
)
from delivery.feeds.deliveries import Delivery
from servioticy.domain.traces import HEADER
from servioticy.domain.webhook_secrets import in_force

JSON = "application/json"
AGENT = "servIoTicy/1.0"
MAX_URL = 8_000
METHODS = ("GET", "PUT")
"""Anything else is POST, as the original does."""

EVENT_TYPE = "com.servioticy.update"

OURS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
    }
)
"""Headers that a template may not set: where the request ends, whom it is for, and our word."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class Outgoing(NamedTuple):
    """What a receiver is to get."""

    id: str
    """The same, however often it is sent."""
    document: bytes
    """JSON."""
    source: str
    type: str
    subject: str
    trace: str = ""
    """A trace context that is passed on; empty: none."""


def outgoing(delivery: Delivery) -> Outgoing:
    """Return an update as it goes out."""
    stream, update = delivery.stream, delivery.update
    source = f"/{stream.service_object}/streams/{stream.stream}"
    subject = str(update.timestamp)
    return Outgoing(delivery.id, update.document, source, EVENT_TYPE, subject, delivery.trace)


@dataclass(frozen=True, slots=True)
class CallbackForm:
    """How a subscription wants to be called."""

    subscription: str
    url: str
    format: str = "plain"
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The original's template: `aliases`, `method`, `headers`, `body`."""
    secrets: tuple[Mapping[str, Any], ...] = ()
    """As they are stored: some are in force for a while only."""

    @staticmethod
    def read(subscription: str, document: bytes) -> CallbackForm:
        """Read the form out of a stored subscription."""
        stored = orjson.loads(document)
        return CallbackForm.of(subscription, stored, stored.get("secrets", ()))

    @staticmethod
    def of(
        name: str, stored: Mapping[str, Any], secrets: Iterable[Mapping[str, Any]]
    ) -> CallbackForm:
        """Return the form that a checked callback has."""
        fields = stored.get("customFields") or {}
        format_ = stored.get("format", "plain")
        return CallbackForm(name, stored["destination"], format_, fields, tuple(secrets))

    @property
    def is_template(self) -> bool:
        """Return whether a request for it takes more than copying what is sent."""
        texts = {name: text for name, text in self.fields.items() if name != "method"}
        return bool(_aliases(texts.get("aliases"))) or has_reference([self.url, texts])

    def request(self, sent: Outgoing, seconds: int) -> Request:
        """Return the request for what is sent, at a time. Raises TooMuch, and ValueError where
        what is sent cannot be read.

        However many texts it is made of, all of them are filled from one budget.
        """
        url, method, headers, body = self._filled(sent)
        fixed = {"User-Agent": AGENT}
        if sent.trace:
            fixed[HEADER] = sent.trace
        if self.format == "cloudevents":
            fixed["Content-Type"] = "application/cloudevents+json"
            event = {**_event(sent), "datacontenttype": JSON}
            body = orjson.dumps({**event, "data": orjson.Fragment(sent.document)})
        elif self.format == "cloudevents-binary":
            fixed["Content-Type"] = JSON
            fixed |= {f"ce-{name}": _percent(value) for name, value in _event(sent).items()}
            body = sent.document
        elif body is None:
            if not any(name.lower() == "content-type" for name in headers):
                fixed["Content-Type"] = JSON
            body = b"" if method == "GET" else sent.document
        secrets = in_force(self.secrets, seconds * 1000)
        signed = signed_headers(f"msg_{sent.id}", seconds, body, secrets)
        own = {each.lower() for each in fixed}
        kept = {name: text for name, text in headers.items() if name.lower() not in own}
        return Request(method, url, {**kept, **fixed, **signed}, body)

    def _filled(self, sent: Outgoing) -> tuple[str, str, dict[str, str], bytes | None]:
        """The original's template, filled in; None where it has no body."""
        fields, budget = self.fields, Budget()
        aliases = _aliases(fields.get("aliases"))
        update = orjson.loads(sent.document) if self.is_template else None

        def fill(text: str, escape: Escape) -> str:
            return filled(text, aliases, update, escape, budget)

        url = fill(self.url, for_address)
        if len(url) > MAX_URL:
            raise TooMuch(f"the address has more than {MAX_URL} characters")
        headers = {
            fill(name, for_header): fill(text, for_header)
            for name, text in (fields.get("headers") or {}).items()
        }
        headers = {name: text for name, text in headers.items() if name.lower() not in OURS}
        method = str(fields.get("method", "POST")).upper()
        text = fields.get("body")
        body = None if text is None else fill(text, for_body).encode()
        return url, method if method in METHODS else "POST", headers, body


def _event(sent: Outgoing) -> dict[str, str]:
    """The attributes of CloudEvents 1.0. An update's timestamp has no unit, so no `time`."""
    return {
        "specversion": "1.0",
        "id": sent.id,
        "source": sent.source,
        "type": sent.type,
        "subject": sent.subject,
    }


def _aliases(stored: Any) -> dict[str, str]:
    """Aliases are a map, or as in the original a list of maps."""
    maps = stored if isinstance(stored, list) else [stored or {}]
    return {name: text for each in maps for name, text in each.items()}


def _percent(text: str) -> str:
    """Write a header's value as the HTTP binding of CloudEvents says."""
    return "".join(
        each
        if " " < each <= "~" and each not in '"%'
        else "".join(f"%{b:02X}" for b in each.encode())
        for each in text
    )
