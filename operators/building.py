"""Builds what runs programs, as the settings describe it."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

from operators import cgroups
from operators.adapters.docker import Docker
from operators.attending import Bounds
from operators.cgroups import Groups, NoGroups
from operators.instance import Place
from operators.links import Links, Pairs
from operators.node import Node
from operators.queues.link import MOST_BYTES, Queues
from operators.queues.resp import address
from operators.queues.server import Server
from operators.registry import Registry
from operators.shelf import Shelf
from operators.telling import Telling
from operators.warming import Warming
from servioticy.ports.programs import KnownPrograms, Program, Question, Reply
from servioticy.ports.stored_programs import StoredPrograms
from servioticy.settings import Settings

log = logging.getLogger(__name__)

OF_WORKFLOWS = "workflows"
"""What a node is called that is no partition's."""
OWN_BYTES = 32 * 1024 * 1024
"""What an empty store takes, generously."""


class Programs:
    """The port on this machine: a node, its shelf, and who tells of it."""

    def __init__(self, settings: Settings, stored: StoredPrograms, partition: int | None) -> None:
        """Of a partition, or of workflows. Nothing is begun before it is asked."""
        own = settings.operators
        folder = Path(own.folder or Path(settings.data) / "operators").absolute()
        registry = Registry(stored)
        self.known: KnownPrograms = registry
        """Which programs there are."""
        self._shelf = Shelf(folder, registry)
        bounds = Bounds(
            places=own.places,
            start_seconds=own.start_seconds,
            idle_seconds=own.idle_seconds,
        )
        self._links = _links(settings, self._shelf)
        place = Place(
            self._shelf.base,
            own.protection == "required",
            self._links,
            _groups(settings),
            Docker(own.docker, own.image).begin if own.docker else None,
        )
        self._node = Node(self._shelf, place, bounds)
        name = f"{socket.gethostname()}/{OF_WORKFLOWS if partition is None else partition}"
        warming = None if partition is None else Warming(registry, name, partition, self._node)
        spent = dict if partition is None else self._node.spent
        self._telling = Telling(registry, name, self._node.running, warming, spent=spent)

    def ask(self, question: Question) -> bool:
        """Take a question, as the port has it."""
        return self._node.ask(question)

    def replies(self, wait_seconds: float) -> list[Reply]:
        """Return what has been answered, as the port has it."""
        return list(self._node.replies(wait_seconds))

    def forget(self, program: Program) -> None:
        """End a program, as the port has it."""
        self._node.forget(program)

    def close(self) -> None:
        """End all of them."""
        self._telling.close()
        self._node.close()
        self._links.close()
        self._shelf.close()


def _groups(settings: Settings) -> Groups | None:
    """What bounds programs beside their own limits, where the machine has that."""
    try:
        return Groups(cgroups.found(settings.operators.cgroup))
    except NoGroups as error:
        log.info("operators_without_groups", extra={"reason": str(error)})
        return None


def _links(settings: Settings, shelf: Shelf) -> Links:
    """What is between the platform and programs here."""
    own = settings.operators
    if own.transport == "socket":
        return Pairs()
    if own.store:
        place = address(own.store, own.store_ca)
        return Queues(lambda: place, lambda: None)
    server = Server(shelf.aside, OWN_BYTES + own.places * MOST_BYTES)
    return Queues(server.address, server.close)
