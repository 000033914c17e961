"""Every parser of what clients send is linear: half of the largest input takes half of its time.

A parser that is not in the catalogue (`tests/support/worst_bodies.py`) fails this.
"""

from __future__ import annotations

import gc
import re
import time
from pathlib import Path
from typing import Any

import pytest
from worst_bodies import WORST, Worst

ROOT = Path(__file__).parents[2]
ROOMS = (
    "api",
    "functions",
    "ingest",
    "operators",
    "servioticy/domain",
    "servioticy/identity",
    "servioticy/http_heads.py",
)
TRIES = 15
MOST = 3.0
"""Times as long for twice as much; what is quadratic takes four times, and was 17 s for 200 KB."""
NOTHING = 0.02
"""Seconds that are not told from none."""
_TAKES_APART = re.compile(
    r"^(?:import|from) (?:re|csv|base64)\b|(?:orjson|json)\.loads\(|Decoder\(|isdecimal|isdigit",
    re.MULTILINE,
)
NOT_OF_CLIENTS = {
    "api/console/asking.py": "what the API has answered",
    "api/console/jobs.py": "one text of a form, which is 19 digits or is not",
    "api/console/by_issuer.py": "a cookie, which is no longer than a head may be",
    "api/console/operators.py": "one text of a form, which is ten digits or is not",
    "api/console/workflows.py": "one text of a form, which the API reads as a body next",
    "servioticy/identity/logins.py": "nothing: it writes base64",
    "servioticy/identity/sign_ins.py": "a cookie, which is no longer than a head may be",
    "api/console/places.py": "what the API has answered",
    "api/console/devices.py": "the header Link of what the API has answered",
    "api/exports/columns.py": "names that a document has declared, for a file that is written",
    "api/exports/comma_separated.py": "cells that are written",
    "servioticy/domain/scripts.py": "errors of scripts, cut by the sandbox",
    "functions/files/table_process.py": "atoms as they are stored",
    "servioticy/domain/workflows/looking.py": "what the platform has stored",
    "servioticy/domain/workflows/objects.py": "what the platform has stored",
    "api/fleets/groups.py": "documents as they are stored",
    "api/fleets/jobs.py": "what the platform has stored",
    "api/fleets/making.py": "what the platform has stored",
    "api/platform/telling.py": "metrics of our own programs",
    "api/platform/traces.py": "a name of 32 digits, or is none",
    "api/search/blocks.py": "updates as they are stored",
    "api/trials/comparing.py": "updates as the sandbox has made them",
    "api/trials/wholeness.py": "windows as their operator has made them",
    "api/exports/writer.py": "updates as they are stored",
    "api/documents/actions.py": "documents as they are stored",
    "api/documents/claim_codes.py": "codes of a fixed length",
    "api/documents/readers.py": "documents as they are stored",
    "api/documents/service_objects.py": "documents as they are stored",
    "api/documents/traced.py": "what the pipeline has stored",
    "api/documents/warnings.py": "documents as they are stored",
    "ingest/hints.py": "updates that were read already",
    "api/http/idempotency.py": "a key of a bounded length, and answers as they are stored",
    "api/http/parameters.py": "addresses of our own routes; what is sent is compared elsewhere",
    "ingest/parsing/document_parser_process.py": "documents that the API has read already",
    "api/resources/aggregates.py": "values as they are stored",
    "api/resources/callbacks.py": "a number of 19 digits; subscriptions as they are stored",
    "api/resources/claim_codes.py": "templates as they are stored",
    "api/resources/claims.py": "templates as they are stored",
    "api/resources/groups.py": "documents as they are stored",
    "api/documents/kept_by_programs.py": "what a program keeps, as it was stored",
    "api/resources/operators.py": "a number of ten digits; manifests as they are stored",
    "api/resources/jobs.py": "what the platform has stored",
    "api/resources/replacing.py": "documents as they are stored",
    "api/resources/status.py": "verdicts as they are stored",
    "api/resources/subscriptions.py": "subscriptions as they are stored",
    "api/resources/template_jobs.py": "templates as they are stored",
    "api/resources/templates.py": "templates as they are stored",
    "api/resources/versions.py": "documents as they are stored",
    "api/documents/workflows.py": "a document that was read already",
    "api/resources/workflow_atoms.py": "atoms that were read already",
    "api/resources/workflow_status.py": "workflows as they are stored",
    "api/resources/workflows.py": "workflows as they are stored",
    "functions/dispatcher.py": "workflows as they are stored",
    "functions/tables.py": "atoms of a bounded length",
    "functions/files/columns.py": "rows that the process apart has read",
    "functions/files/columns_process.py": "what we ask it",
    "functions/files/source.py": "tickets as they are stored",
    "servioticy/domain/workflows/files.py": "a name of a bounded length",
    "servioticy/domain/workflows/tables.py": "a name of a bounded length",
    "operators/adapters/docker.py": "answers of a Docker that the operator named, 1 MiB at most",
    "operators/adapters/kafka_loop.py": "events of one's own topic, in a loop of one's own",
    "operators/guest/launch.py": "what the node has written",
    "operators/instance.py": "lines of our own launcher",
    "operators/kits/python/servioticy_operator.py": "in a program of a tenant, what we ask it",
    "operators/queues/carrier.py": "a manifest and a secret that whoever runs it has written",
    "operators/queues/probe.py": "what a store that the operator named says of itself",
    "operators/queues/relay.py": "what the platform has written",
    "operators/queues/resp.py": "a setting; answers of a store that the operator named",
    "operators/registry.py": "what programs have printed, of which a bounded end is kept",
    "operators/wire.py": "frames of a bounded length, by a compiled reader",
    "servioticy/domain/workflows/picture.py": "workflows as they are stored",
    "servioticy/domain/workflows/programs.py": "atoms of a bounded length",
    "servioticy/domain/buckets.py": "a width of ten digits",
    "servioticy/domain/documents/operators.py": "a name: blocks of 200 and 63 characters",
    "servioticy/domain/documents/stored.py": "documents as they are stored",
    "servioticy/domain/letters.py": "dead letters of the platform",
    "servioticy/domain/persons.py": "one name of a bounded length",
    "servioticy/domain/records.py": "records of the log",
    "servioticy/domain/evaluators/past.py": "what the store has answered, by a compiled reader",
    "servioticy/domain/evaluators/programs.py": "what it keeps; what programs have made, bounded",
    "servioticy/domain/evaluators/silence.py": "what it keeps, as it is stored",
    "servioticy/domain/evaluators/windows/contents.py": "panes as they are stored",
    "servioticy/domain/evaluators/windows/folding.py": "states as the sandbox has made them",
    "servioticy/domain/evaluators/windows/head.py": "what windows keep, as it is stored",
    "servioticy/domain/evaluators/windows/inputs.py": "updates, and those that are kept",
    "servioticy/domain/evaluators/windows/one_value.py": "what the sandbox has made",
    "servioticy/domain/evaluators/windows/retracting.py": "what windows keep, as it is stored",
    "servioticy/domain/traces.py": "a header whose length is looked at before",
    "servioticy/domain/windows/aggregates.py": "aggregates as they are stored",
    "servioticy/domain/webhook_secrets.py": "a secret of a bounded length",
    "servioticy/identity/fetching.py": "what an issuer that the operator named publishes",
}
"""Modules that take texts apart, but none of any length that a client sends."""


def took(worst: Worst, given: Any) -> float:
    gc.collect()
    gc.disable()  # it looks through all that other tests have left, however often
    try:
        begun = time.process_time()
        worst.run(given)
        return time.process_time() - begun
    finally:
        gc.enable()


@pytest.mark.parametrize("worst", WORST.values(), ids=WORST)
def test_twice_as_much_takes_twice_as_long(worst: Worst) -> None:
    """The least of some tries: what else the machine does makes a try longer, and none shorter."""
    half, whole = worst.made(worst.most // 2), worst.made(worst.most)
    halves, wholes = [], []
    for _ in range(TRIES):
        halves.append(took(worst, half))
        wholes.append(took(worst, whole))
        if min(wholes) <= MOST * min(halves) + NOTHING:
            break

    assert min(wholes) <= MOST * min(halves) + NOTHING


def test_every_parser_is_in_the_catalogue() -> None:
    """Whoever takes apart what comes from outside says what is worst for it."""
    files = [
        file
        for room in ROOMS
        for file in ((ROOT / room).rglob("*.py") if (ROOT / room).is_dir() else [ROOT / room])
    ]
    parsers = {
        str(each.relative_to(ROOT)) for each in files if _TAKES_APART.search(each.read_text())
    }
    known = {each.module for each in WORST.values()} | NOT_OF_CLIENTS.keys()

    assert sorted(parsers - known) == [], "say what is worst for it"
    assert sorted(each for each in known if not (ROOT / each).is_file()) == []
