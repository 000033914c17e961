"""Persons sign in at an issuer with their browser, and we get their tokens: code with PKCE.

OpenID Connect Core 1.0, section 3.1, with RFC 7636 and RFC 9207. What a sign-in needs to be known
again by is made of one secret, which the browser keeps meanwhile: nothing of one that is not
finished is kept here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from servioticy.errors import Stranger, Unavailable
from servioticy.identity import fetching
from servioticy.identity.errors import NotAccepted, NotGranted
from servioticy.identity.keys import IssuerKeys
from servioticy.identity.signatures import is_signed_by, take_apart
from servioticy.identity.tokens import MAX_TOKEN

MAX_CODE = 4_096
MAX_REASON = 300
"""Characters of what an issuer says is wrong."""
SIGN_INS = 4
"""Codes that a process gives for tokens at once: whoever sends one may have made it up."""
RENEWALS, RENEWALS_OF_ONE = 16, 4
"""Tokens that a process has renewed at once, and of these one tenant's."""
MOST_SECONDS = 2_592_000.0
"""A token that is good for longer is renewed all the same."""
LEEWAY = 60.0
"""Seconds that our clock and the issuer's may be apart."""
_BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)

Post = Callable[[str, Mapping[str, str], tuple[str, str] | None], tuple[int, object]]
"""Sends a form, as an account; returns status and JSON. Raises Unavailable."""


class Client(NamedTuple):
    """What we are at an issuer."""

    id: str
    secret: str
    """empty: none, as PKCE is enough for it"""
    scope: str
    parameters: Mapping[str, str]
    """what else it is asked with"""


class Granted(NamedTuple):
    """What an issuer has given for a code, or for what it gave with the last one."""

    token: str
    seconds: float
    """how long it is good"""
    renewal: str | None
    """for which there is another one (a refresh token)"""


class Pending(NamedTuple):
    """A sign-in that has begun: all that it is known again by."""

    secret: str

    @property
    def state(self) -> str:
        """What the issuer sends back with the code: so it was begun by this browser."""
        return self._made("state")

    @property
    def nonce(self) -> str:
        """What stands in the ID token: so it is for this sign-in."""
        return self._made("nonce")

    @property
    def verifier(self) -> str:
        """What the code is given for tokens with: so whoever else has the code has nothing."""
        return self._made("verifier")

    @property
    def challenge(self) -> str:
        """The digest of the verifier, which the issuer is told when the sign-in begins."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def _made(self, what: str) -> str:
        text = f"servioticy: {what} of a sign-in"
        return hmac.new(self.secret.encode(), text.encode(), hashlib.sha256).hexdigest()


class Said:
    """What an issuer says of itself, as it was told last."""

    def __init__(self, issuer: str) -> None:
        self._is_elsewhere = issuer.startswith("https:")
        self._last: Mapping[str, Any] = {}

    def learn(self, said: Mapping[str, Any]) -> None:
        """Take this from now on."""
        self._last = said

    def place(self, name: str) -> str:
        """Return an address that it names; empty where it names none, or one that is not safe."""
        found = self._last.get(name)
        is_safe = fetching.is_safe(found, elsewhere=self._is_elsewhere)
        return str(found) if is_safe else ""

    def takes(self, name: str, value: str) -> bool:
        """Return whether a list that it tells has this; what it does not tell is as is usual."""
        told = self._last.get(name)
        return value in told if isinstance(told, list) else True


class Login:
    """Signs persons in at one issuer. Threads may share it."""

    def __init__(
        self,
        keys: IssuerKeys,
        client: Client,
        said: Said,
        post: Post = fetching.post,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.issuer = keys.issuer
        self._keys = keys
        self._client = client
        self._said = said
        self._post = post
        self._clock = clock
        self._sign_ins = _Places(SIGN_INS, SIGN_INS)
        self._renewals = _Places(RENEWALS, RENEWALS_OF_ONE)

    def begin(self, pending: Pending, back: str) -> str:
        """Return where the browser goes to; it comes `back` from there. Raises Unavailable."""
        asked = {
            **self._client.parameters,
            "client_id": self._client.id,
            "response_type": "code",
            "scope": self._client.scope,
            "redirect_uri": back,
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": pending.challenge,
            "code_challenge_method": "S256",
        }
        place = self._place("authorization_endpoint")
        return f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}"

    def granted(self, pending: Pending, code: str, back: str) -> Granted:
        """Return what there is for a code. Raises NotGranted, Unavailable."""
        if not 0 < len(code) <= MAX_CODE:
            raise NotGranted("it sent no code")
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back}
        with self._sign_ins.one(None):
            said = self._asked({**form, "code_verifier": pending.verifier})
        found = self._read(said)
        self._check_id(said.get("id_token"), pending, found)
        return found

    def renewed(self, renewal: str, token: str, tenant: int) -> Granted:
        """Return another token for the same person. Raises NotGranted, Unavailable."""
        form = {"grant_type": "refresh_token", "refresh_token": renewal}
        with self._renewals.one(tenant):
            found = self._read(self._asked(form))
        if _subject(found.token) != _subject(token):
            raise NotGranted("it gave a token of somebody else")
        return found if found.renewal else found._replace(renewal=renewal)

    @property
    def leaving(self) -> str:
        """Where one signs out at the issuer; empty where it does not say."""
        place = self._said.place("end_session_endpoint")
        asked = urlencode({"client_id": self._client.id})
        return f"{place}{'&' if '?' in place else '?'}{asked}" if place else ""

    def _place(self, name: str) -> str:
        found = self._said.place(name)
        if not found:
            raise Unavailable(f"{self.issuer} has not told its {name} yet")
        return found

    def _asked(self, form: Mapping[str, str]) -> Mapping[str, Any]:
        """Return what the issuer answers to who we are. Raises NotGranted, Unavailable."""
        own, client = {**self._client.parameters, **form}, self._client
        account = None
        if not client.secret:
            own["client_id"] = client.id
        elif self._said.takes("token_endpoint_auth_methods_supported", "client_secret_basic"):
            account = quote(client.id, safe=""), quote(client.secret, safe="")
        else:
            own |= {"client_id": client.id, "client_secret": client.secret}
        place = self._place("token_endpoint")
        status, said = self._post(place, own, account)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _BUSY:
            raise Unavailable(f"{place} answers {status}")
        if not isinstance(said, dict):
            raise NotGranted(f"it answers {status} without JSON")
        if status != HTTPStatus.OK:
            raise NotGranted(reason(said.get("error"), said.get("error_description")))
        return said

    def _read(self, said: Mapping[str, Any]) -> Granted:
        token, renewal = said.get("access_token"), said.get("refresh_token")
        if not isinstance(token, str) or len(token) > MAX_TOKEN:
            raise NotGranted(f"it gave no access token of up to {MAX_TOKEN} characters")
        try:
            ends = float(take_apart(token).claims.get("exp", 0))
        except (NotAccepted, TypeError, ValueError, OverflowError) as error:
            raise NotGranted(
                "its access token is no JWT: the setting oidc_parameters has to name what makes "
                "it one, as resource=… or audience=…"
            ) from error
        is_kept = isinstance(renewal, str) and 0 < len(renewal) <= MAX_TOKEN
        seconds = min(max(0.0, ends - self._clock()), MOST_SECONDS)
        return Granted(token, seconds, renewal if is_kept else None)

    def _check_id(self, token: object, pending: Pending, found: Granted) -> None:
        """Raise NotGranted unless the ID token is the issuer's, for us, and for this sign-in."""
        try:
            signed = take_apart(token if isinstance(token, str) else "")
            claims, now = signed.claims, self._clock()
            issued_at, ends = float(claims.get("iat", 0)), float(claims.get("exp", 0))
            keys = self._keys.of(signed.key_id, issued_at + LEEWAY)
        except (NotAccepted, TypeError, ValueError, OverflowError) as error:
            raise NotGranted("it gave no ID token that can be verified") from error
        audience = claims.get("aud")
        several = audience if isinstance(audience, list) else [audience]
        nonce = str(claims.get("nonce", ""))
        for is_right, wrong in (
            (is_signed_by(signed, keys), "is not signed by it"),
            (claims.get("iss") == self.issuer, "is of another issuer"),
            (self._client.id in several, "is for another application"),
            (claims.get("azp", self._client.id) == self._client.id, "is for another application"),
            (now < ends + LEEWAY, "has expired"),
            (hmac.compare_digest(nonce.encode(), pending.nonce.encode()), "is of another sign-in"),
            (claims.get("sub") == _subject(found.token), "is of another person than the other"),
        ):
            if not is_right:
                raise NotGranted(f"its ID token {wrong}")


def reason(error: object, description: object = None) -> str:
    """Return what an issuer says is wrong, for people: short, and in one line."""
    parts = [str(each) for each in (error, description) if each]
    text = ": ".join(parts) or "it does not say why"
    return "".join(each if each.isprintable() else " " for each in text[:MAX_REASON])


def _subject(token: str) -> object:
    """Return whose token it is. Raises NotGranted."""
    try:
        return take_apart(token).claims.get("sub")
    except Stranger as error:
        raise NotGranted("its access token is no JWT") from error


class _Places:
    """So many may ask at once, and so many of one; nobody waits for a place."""

    def __init__(self, most: int, of_one: int) -> None:
        self._most = most
        self._of_one = of_one
        self._lock = threading.Lock()
        self._held: Counter[Hashable] = Counter()

    @contextmanager
    def one(self, whose: Hashable) -> Iterator[None]:
        """Have a place for a while. Raises Unavailable where there is none."""
        with self._lock:
            if self._held.total() >= self._most or self._held[whose] >= self._of_one:
                raise Unavailable("too many sign in at this moment")
            self._held[whose] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[whose] -= 1
                if not self._held[whose]:
                    del self._held[whose]
