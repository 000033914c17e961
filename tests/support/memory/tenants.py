"""The Tenants in memory."""

from __future__ import annotations

from memory.state import State
from servioticy.domain.tokens import new_token


class MemoryTenants:
    """Who owns Service Objects, and by which tokens they are known."""

    def __init__(self, state: State) -> None:
        self._state = state

    def create_tenant(self, name: str) -> str:
        """Make the tenant unless it exists, and a new token for it, which is returned."""
        self._state.ask_postgres()
        token = new_token()
        with self._state.lock:
            tenants = self._state.tenants
            tenant = tenants.setdefault(name, max(tenants.values(), default=0) + 1)
            self._state.tokens[token] = tenant
        return token

    def tenant_of(self, token: str) -> int | None:
        """Return whose token it is, or None."""
        self._state.ask_postgres()
        return self._state.tokens.get(token)

    def delete_tenant(self, name: str) -> bool:
        """Let nobody of the tenant in from now on; False: there is none."""
        self._state.ask_postgres()
        with self._state.lock:
            tenant = self._state.tenants.pop(name, None)
            tokens = self._state.tokens
            for token in [each for each, its in tokens.items() if its == tenant]:
                del tokens[token]
        return tenant is not None
