"""What is done with a bound token, which may end while messages wait."""

from __future__ import annotations

from http import HTTPStatus

from broker.client import Client
from broker.lane import Takes
from broker.outcomes import Outcome
from delivery.admission.pending import Caller
from delivery.admission.reception import Reception
from delivery.admission.refusals import Refusal
from delivery.endings import Ending
from delivery.rest_api import ApiResponse, Asks
from ingest.updates import Sent


class Bound:
    """Keeps to the protocols `Takes` and `Asks`.

    Where a token is refused, its messages are not: the broker keeps them until it has another.
    """

    def __init__(
        self,
        lane: Takes,
        api: Asks,
        reception: Reception,
        client: Client,
        caller: Caller,
        token: str,
    ) -> None:
        self._lane = lane
        self._api = api
        self._reception = reception
        self._client = client
        self._caller = caller
        self._token = token

    async def take(self, tenant: int, sent: Sent) -> list[Outcome]:
        """Return what became of each update; a status of 0 where the token has ended."""
        found = await self._lane.take(tenant, sent)
        refused = any(each.status == HTTPStatus.FORBIDDEN for each in found)
        if refused and sent.token == self._token and await self._has_ended():
            return [Outcome(0) if each.status == HTTPStatus.FORBIDDEN else each for each in found]
        return found

    async def ask(
        self, method: str, path: str, token: str, body: bytes, content_type: str
    ) -> ApiResponse:
        """Return what the API says; a status of 0 where it has no say any more."""
        answer = await self._api.ask(method, path, token, body, content_type)
        if answer.status != HTTPStatus.FORBIDDEN or token != self._token:
            return answer
        return ApiResponse(0) if await self._has_ended() else answer

    async def _has_ended(self) -> bool:
        """Tell whether nobody has the token any more; then the connection ends, too."""
        has_ended = isinstance(await self._reception.recognise(self._caller, self._token), Refusal)
        if has_ended:
            self._client.dismiss(Ending.REVOKED)
        return has_ended
