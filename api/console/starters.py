"""Kinds of devices to begin with, and what can be derived of each: for who has nothing yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STARTER = "starter"
"""In the customFields of a template: which of these it was made of."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """A value that is made of one channel of a device, as a composite stream."""

    id: str
    title: str
    stream: str
    unit: str
    code: str
    """the body of a function: `value` is what came, a number"""

    def document(
        self, name: str, service_object: str, source: str, channel: str
    ) -> dict[str, Any]:
        """Return the Service Object that derives it of another's stream."""
        code = (
            f"function(device) {{ var value = iot.value(device, '{channel}'); "
            f"if (value === null) return null; {self.code} }}"
        )
        made: dict[str, Any] = {"type": "number", "unit": self.unit, "current-value": code}
        return {
            "version": "0.2.0",
            "name": f"{name}: {self.title[0].lower()}{self.title[1:]}",
            "groups": {"device": {"soIds": [service_object], "stream": source}},
            "streams": {self.stream: {"channels": {self.stream: made}}},
        }


@dataclass(frozen=True, slots=True)
class Starter:
    """A kind of device."""

    id: str
    title: str
    about: str
    stream: str
    channels: dict[str, tuple[str, float]]
    """number channels by name: unit, and a value as it may come"""
    derivations: tuple[Derivation, ...]

    @property
    def channel(self) -> str:
        """The channel that something is derived of."""
        return next(iter(self.channels))

    @property
    def template(self) -> dict[str, Any]:
        """The template that the API is sent for it."""
        channels = {
            name: {"type": "number", "unit": unit} for name, (unit, _) in self.channels.items()
        }
        document = {
            "name": "{{name}}",
            "description": self.title,
            "customFields": {STARTER: self.id},
            "streams": {self.stream: {"channels": channels}},
            "actions": [{"name": "identify", "description": "Blink, to be found"}],
        }
        name = {"type": "string", "example": "Kitchen", "description": "What people call it"}
        return {"parameters": {"name": name}, "document": document}


STARTERS = (
    Starter(
        "thermometer",
        "Thermometer",
        "temperature and humidity of a room",
        "air",
        {"temperature": ("Cel", 21.5), "humidity": ("%RH", 48.0)},
        (
            Derivation(
                "fahrenheit", "In Fahrenheit", "fahrenheit", "F", "return value * 1.8 + 32"
            ),
            Derivation(
                "warm", "An alert above 25 °C", "alert", "Cel", "return value > 25 ? value : null"
            ),
        ),
    ),
    Starter(
        "meter",
        "Electricity meter",
        "the power that a house takes",
        "power",
        {"watts": ("W", 430.0)},
        (
            Derivation("kilowatts", "In kilowatts", "kilowatts", "kW", "return value / 1000"),
            Derivation(
                "peak", "An alert above 3 kW", "alert", "W", "return value > 3000 ? value : null"
            ),
        ),
    ),
    Starter(
        "tank",
        "Tank",
        "how full it is, in percent",
        "level",
        {"percent": ("%", 64.0)},
        (
            Derivation("free", "What is free", "free", "%", "return 100 - value"),
            Derivation(
                "low", "An alert below 20 %", "alert", "%", "return value < 20 ? value : null"
            ),
        ),
    ),
)


def starter(id_: str) -> Starter | None:
    """Return the kind of this id, if there is one."""
    return next((each for each in STARTERS if each.id == id_), None)
