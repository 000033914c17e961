"""The way to MQTT and STOMP clients that subscribe to the topic of a device's actuations."""

from __future__ import annotations

from broker.client import Publication, Subscription
from broker.exchange import Exchange
from broker.topics import actuated, part
from delivery.actuations.queues import Queues
from delivery.actuations.ways import Taken, message
from servioticy.domain.message_topics import ACTIONS
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.actuations import Actuation


class TopicWay:
    """Keeps to the protocol `Way`."""

    def __init__(self, exchange: Exchange, key: ServiceObjectKey) -> None:
        self._exchange = exchange
        self._empty = Publication(key.tenant, (part(key.id), ACTIONS), b"", None, actuated=key.id)

    def is_there(self) -> bool:
        """Tell whether somebody subscribes who may have it."""
        return bool(self._exchange.subscribers(self._empty))

    def has_room(self) -> bool:
        """Tell whether all of them have room for one more."""
        return all(each.client.has_room for each in self._exchange.subscribers(self._empty))

    def give(self, actuation: Actuation, taken: Taken) -> None:
        """Publish it."""
        self._exchange.give(self._empty._replace(payload=message(actuation)), taken)


def attach(exchange: Exchange, queues: Queues) -> None:
    """Let the queues know who comes for which device's actuations."""

    def came(subscription: Subscription) -> None:
        tenant, name = subscription.client.known.tenant, actuated(subscription.wanted.levels)
        if subscription.client.is_passed_on:
            return
        if subscription.wanted.is_everything:
            queues.came_for_all(tenant)
        elif name is not None:
            queues.came(ServiceObjectKey(tenant, name))

    exchange.added = came
