"""Where the console is reached, and by which cookie it knows who asks.

A cookie goes to every port of a host, and to whatever page of it: so pages are told apart by
their origin, which a browser tells truly.
"""

from __future__ import annotations

from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

ROOT = "/console"
API = f"{ROOT}/api"
"""What the pages ask the REST API by: its own paths stand behind."""

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Place:
    """How browsers reach the API, and sockets beside it.

    `url` is the API's, as in the setting `public_url`; empty where nobody has told us.
    """

    url: str
    live_url: str = ""
    live_port: int = 0

    @property
    def base(self) -> str:
        """The path below which everything is, without a slash at the end; mostly empty."""
        return urlsplit(self.url).path.rstrip("/")

    @property
    def is_secure(self) -> bool:
        """Whether browsers come by TLS."""
        return urlsplit(self.url).scheme == "https"

    @property
    def is_loopback(self) -> bool:
        """Whether browsers of this machine alone come."""
        return urlsplit(self.url).hostname in _LOOPBACK

    @property
    def may_sign_in(self) -> bool:
        """Whether a cookie is safe on its way: by TLS, or within this machine."""
        return self.is_secure or self.is_loopback

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers keep what the first one promises."""
        return "__Host-servioticy" if self.is_secure else "servioticy-session"

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of our own pages."""
        return tuple(f"{urlsplit(self.url).scheme}://{each}" for each in self._hosts(self.url))

    @property
    def sockets(self) -> tuple[str, ...]:
        """What addresses of sockets begin with, for each host that a page may be of.

        No policy of a page can name an IPv6 address, so there are no sockets to one.
        """
        url, path = self.live_url or self.url, urlsplit(self.live_url).path.rstrip("/")
        scheme = "wss" if urlsplit(url).scheme == "https" else "ws"
        hosts = self._hosts(url, None if self.live_url else self.live_port or None)
        return tuple(f"{scheme}://{each}{path}" for each in hosts if not each.startswith("["))

    def _hosts(self, url: str, port: int | None = None) -> list[str]:
        parts = urlsplit(url)
        if parts.hostname is None:
            return []
        names = sorted(_LOOPBACK) if parts.hostname in _LOOPBACK else [parts.hostname]
        number = port or parts.port
        end = "" if number in (None, _PORTS.get(parts.scheme)) else f":{number}"
        return [f"[{name}]{end}" if ":" in name else f"{name}{end}" for name in names]


def secret_in(cookies: str, name: str) -> str:
    """Return what the cookie of this name holds, in the value of a header `Cookie`; or empty."""
    if name not in cookies:
        return ""
    try:
        found = SimpleCookie(cookies).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def is_below(path: str) -> bool:
    """Return whether a path is the console's."""
    return path == ROOT or path.startswith(f"{ROOT}/")
