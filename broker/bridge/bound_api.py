"""The REST API as it is asked with a bound token, which may end while messages wait."""

from __future__ import annotations

from http import HTTPStatus

from broker.client import Client
from delivery.admission.pending import Caller
from delivery.admission.reception import Reception
from delivery.admission.refusals import Refusal
from delivery.endings import Ending
from delivery.rest_api import ApiResponse, Asks


class BoundApi:
    """Keeps to the protocol `Asks`.

    Where a token is refused, its messages are not: the broker keeps them until it has another.
    """

    def __init__(
        self, api: Asks, reception: Reception, client: Client, caller: Caller, token: str
    ) -> None:
        self._api = api
        self._reception = reception
        self._client = client
        self._caller = caller
        self._token = token

    async def ask(
        self, method: str, path: str, token: str, body: bytes, content_type: str
    ) -> ApiResponse:
        """Return what the API says; a status of 0 where it has no say any more."""
        answer = await self._api.ask(method, path, token, body, content_type)
        if answer.status != HTTPStatus.FORBIDDEN or token != self._token:
            return answer
        if isinstance(await self._reception.recognise(self._caller, token), Refusal):
            self._client.dismiss(Ending.REVOKED)
            return ApiResponse(0)
        return answer
