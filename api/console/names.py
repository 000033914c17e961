"""The names that people gave Service Objects, asked for once a page."""

from __future__ import annotations

from api.console.asking import Api

OFFERED = 200
"""Service Objects of which a field offers the ids."""


class Names:
    """Finds them; of what may not be read, or is gone, the id."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._found: dict[str, tuple[str, bool]] = {}

    def of(self, service_object: str) -> tuple[str, bool]:
        """Return the name, and whether pages lead there."""
        if service_object not in self._found:
            document = self._api.found(service_object)
            name = (document or {}).get("name") or service_object
            self._found[service_object] = name, document is not None
        return self._found[service_object]


def offered(api: Api) -> list[tuple[str, str]]:
    """Return the ids and names of the first Service Objects, to choose one by its name."""
    found = api.found("service-objects", limit=OFFERED) or {"data": []}
    return [(each["id"], each.get("name") or "") for each in found["data"]]
