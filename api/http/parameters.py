"""Parameters of an address that are almost those of its route: they would mean nothing there."""

from __future__ import annotations

import re

from flask import Flask, request

from schemas import contracts
from servioticy.domain.documents.spelling import misspelt
from servioticy.refusals import Refused


def check_parameters(app: Flask) -> None:
    """Refuse what resembles a parameter that the route's description names.

    To be called when all routes are there. Whatever resembles none is let through, as ever.
    """
    described = contracts.query_parameters()
    known = {rule.rule: re.sub("<[^>]*>", "{}", rule.rule) for rule in app.url_map.iter_rules()}

    @app.before_request
    def check() -> None:
        if not request.args or request.url_rule is None:
            return
        names = described.get((_method(), known[request.url_rule.rule]), frozenset())
        if told := misspelt(request.args, names):
            raise Refused(told)


def _method() -> str:
    return "GET" if request.method == "HEAD" else request.method
