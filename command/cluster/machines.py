"""Which machines there are, and at which addresses."""

from __future__ import annotations

NETWORK = "10.77.0"
BITS = 24
OURS = f"{NETWORK}.1"
"""Of whoever starts the others, and looks after them."""

NUMBERS = {
    "balancer": 2,
    "client": 3,
    "store": 10,
    "standby": 11,
    "driver": 20,
    "master": 21,
    "worker-1": 31,
    "worker-2": 32,
    "api-1": 41,
    "api-2": 42,
    "delivery-1": 51,
    "delivery-2": 52,
}
"""The last number of each one's address. The store has Postgres and Kafka, the standby a Postgres
that follows."""

WORKERS = ("worker-1", "worker-2")
APIS = ("api-1", "api-2")
DELIVERIES = ("delivery-1", "delivery-2")


def address(machine: str) -> str:
    """Return where it is."""
    return f"{NETWORK}.{NUMBERS[machine]}"


def link(machine: str) -> str:
    """Return the name of the switch's end of its cable."""
    return f"to-{machine}"


def hardware(machine: str) -> str:
    """Return the address of its card."""
    return f"02:00:00:00:00:{NUMBERS[machine]:02x}"
