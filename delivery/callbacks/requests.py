"""The request that an update becomes: its form is the subscription's to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from delivery.callbacks.signing import signed_headers
from delivery.callbacks.templates import filled, for_address, for_body, for_header
from delivery.feeds.deliveries import Delivery
from servioticy.domain.webhook_secrets import in_force

JSON = "application/json"
AGENT = "servIoTicy/1.0"
METHODS = ("GET", "PUT")
"""Anything else is POST, as the original does."""

EVENT_TYPE = "com.servioticy.update"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


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
        fields = stored.get("customFields") or {}
        return CallbackForm(
            subscription,
            stored["destination"],
            stored.get("format", "plain"),
            fields,
            tuple(stored.get("secrets", ())),
        )

    def request(self, delivery: Delivery, seconds: int) -> Request:
        """Return the request for an update, at a time. Raises TemplateTooLong."""
        url, method, headers, body = self._filled(delivery)
        fixed = {"User-Agent": AGENT}
        if self.format == "cloudevents":
            fixed["Content-Type"] = "application/cloudevents+json"
            event = {**self._event(delivery), "datacontenttype": JSON}
            body = orjson.dumps({**event, "data": orjson.Fragment(delivery.update.document)})
        elif self.format == "cloudevents-binary":
            fixed["Content-Type"] = JSON
            fixed |= {
                f"ce-{name}": _percent(value) for name, value in self._event(delivery).items()
            }
            body = delivery.update.document
        elif body is None:
            fixed["Content-Type"] = JSON
            body = b"" if method == "GET" else delivery.update.document
        secrets = in_force(self.secrets, seconds * 1000)
        signed = signed_headers(f"msg_{delivery.id}", seconds, body, secrets)
        return Request(method, url, {**headers, **fixed, **signed}, body)

    def _filled(self, delivery: Delivery) -> tuple[str, str, dict[str, str], bytes | None]:
        """The original's template, filled in; None where it has no body."""
        fields = self.fields
        aliases = _aliases(fields.get("aliases"))
        update = orjson.loads(delivery.update.document)
        url = filled(self.url, aliases, update, for_address)
        headers = {
            filled(name, aliases, update, for_header): filled(text, aliases, update, for_header)
            for name, text in (fields.get("headers") or {}).items()
        }
        method = str(fields.get("method", "POST")).upper()
        text = fields.get("body")
        body = None if text is None else filled(text, aliases, update, for_body).encode()
        return url, method if method in METHODS else "POST", headers, body

    def _event(self, delivery: Delivery) -> dict[str, str]:
        """The attributes of CloudEvents 1.0. An update's timestamp has no unit, so no `time`."""
        stream = delivery.stream
        return {
            "specversion": "1.0",
            "id": delivery.id,
            "source": f"/{stream.service_object}/streams/{stream.stream}",
            "type": EVENT_TYPE,
            "subject": str(delivery.update.timestamp),
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
