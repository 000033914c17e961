"""What a program of the tenant's own keeps for a stream: shown, and forgotten."""

from __future__ import annotations

from flask import Blueprint, Response

from api.documents.kept_by_programs import keeps_itself, kept_by_program
from api.http import authentication
from api.http.answers import answer, nothing
from api.http.authentication import needs
from api.services import Services
from servioticy.changes import Changed
from servioticy.domain.access import Right
from servioticy.ports.addresses import Address
from servioticy.refusals import Conflict, NotFound


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/state`."""
    routes = Blueprint("operator_states", __name__)

    @routes.get("/<service_object>/streams/<stream>/state")
    @needs(Right.INSPECT)
    def read(stream: str, **_names: str) -> Response:
        """Tell what is kept, and how much waits."""
        address, key = authentication.stream()
        expect_program(address, stream)
        headers = services.reads.wait(address)
        return answer(kept_by_program(key, address, stream, services), 200, headers)

    @routes.delete("/<service_object>/streams/<stream>/state")
    @needs(Right.CHANGE)
    def forget(stream: str, **_names: str) -> Response:
        """Keep nothing from one place of the log on; what waits goes on waiting."""
        address, _key = authentication.stream()
        expect_program(address, stream)
        try:
            services.ports.changes.forget(authentication.service_object(), stream, services.now())
        except Changed as error:
            raise NotFound("The Service Object was not found.") from error
        return nothing()

    def expect_program(address: Address, stream: str) -> None:
        if not keeps_itself(address, stream, services):
            raise Conflict("No program computes this stream: it names none as its `operator`")

    return routes
