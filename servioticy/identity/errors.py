"""Why a token of an issuer lets nobody in."""

from __future__ import annotations

from servioticy.errors import Stranger, Unavailable


class NotAccepted(Stranger):
    """The token is not one that counts here, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The token of the issuer is not accepted: {reason}")


class NoKeys(Unavailable):
    """The issuer's keys are not known now."""

    def __init__(self) -> None:
        super().__init__("The keys of the token's issuer are not known yet")


class NotGranted(Stranger):
    """The issuer has not let somebody in, or not so that it counts here, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The issuer has not let you in: {reason}")
