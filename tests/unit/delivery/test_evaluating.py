"""What tenants have written is evaluated out of the loop, within one budget, asked beforehand."""

from __future__ import annotations

import ast
import asyncio
import os
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from callback_receivers import Answers, Dead, a_delivery
from support.evaluating import Here

from delivery.actuations import acting_streams
from delivery.actuations.acting_streams import MAX_OF_OUTPUT, _parameters
from delivery.callbacks.receiver import Callbacks
from delivery.callbacks.requests import CallbackForm, Outgoing, outgoing
from delivery.evaluating.budget import MAX_CHARACTERS, MAX_REFERENCES, Budget, TooMuch
from delivery.evaluating.evaluator import Evaluator
from delivery.evaluating.other_process import OtherProcess
from delivery.evaluating.templates import filled, filled_json, for_body
from servioticy.domain.actuations import MAX_PARAMETERS
from servioticy.errors import Unavailable

LISTS = b'{"v":[' + b"[]," * 300_000 + b"0]}"
"""An update of 900 KB: what takes longest to be read, and most memory."""


def sent(document: bytes) -> Outgoing:
    return outgoing(a_delivery(document))


def made_bytes(call: Any) -> int:
    """Return how much memory a call takes at most that ends in TooMuch."""
    tracemalloc.start()
    with pytest.raises(TooMuch):
        call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_all_texts_of_a_request_have_one_budget() -> None:
    """Fifty names and fifty values share what one body may have; one character beyond is too
    much, whichever text has it."""
    value = "x" * (MAX_CHARACTERS // 128)
    headers = {f"{n:02}{{$.v}}": "{$.v}" for n in range(50)}
    left = MAX_CHARACTERS - 50 * (2 + 2 * len(value)) - len("http://h/")
    document = orjson.dumps({"v": value})
    fields = {"headers": headers, "body": "b" * left}

    request = CallbackForm("s", "http://h/", fields=fields).request(sent(document), 1)
    assert len(request.body) == left

    for more in ({"body": "b" * (left + 1)}, {"headers": headers | {"a": ""}}):
        with pytest.raises(TooMuch):
            CallbackForm("s", "http://h/", fields=fields | more).request(sent(document), 1)


def test_all_references_of_a_request_are_counted_together() -> None:
    fields = {"headers": {"a": "{$.v}" * (MAX_REFERENCES - 1)}, "body": "{$.v}"}
    CallbackForm("s", "http://h/", fields=fields).request(sent(b"{}"), 1)

    with pytest.raises(TooMuch):
        CallbackForm("s", "http://h/?{$.v}", fields=fields).request(sent(b"{}"), 1)


@pytest.mark.parametrize(
    "value",
    [[[]] * 300_000, [{"": 0}] * 110_000, {str(n): 0 for n in range(80_000)}, ["x" * 900_000]],
    ids=["lists", "objects", "members", "text"],
)
def test_what_is_too_much_is_never_made(value: Any) -> None:
    """Neither as text nor as a part of parameters, however often it is named."""
    update = {"v": value}

    assert made_bytes(partial(filled, "{$.v}" * 900, {}, update, for_body, Budget())) < 500_000
    assert made_bytes(partial(filled_json, ["{$.v}"] * 900, update, Budget())) < 500_000


def test_a_small_value_that_is_named_often_counts_each_time() -> None:
    update = {"v": [0] * 1000}

    assert made_bytes(partial(filled, "{$.v}" * 900, {}, update, for_body, Budget())) < 1_000_000
    assert made_bytes(partial(filled_json, ["{$.v}"] * 900, update, Budget())) < 1_000_000


def test_aliases_do_not_grow_without_end() -> None:
    """Neither one of another, nor a long one of a text that names it often."""
    aliases = {chr(97 + n): chr(98 + n) * 40 for n in range(10)}

    assert made_bytes(partial(filled, "a", aliases, {}, for_body, Budget())) < 1_000_000
    longer = {"a": "b" * 10_000}
    assert made_bytes(partial(filled, "a" * 10_000, longer, {}, for_body, Budget())) < 500_000


def test_a_value_nested_beyond_what_can_be_written_is_too_much() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]

    with pytest.raises(TooMuch):
        filled("{$.v}", {}, {"v": deep}, for_body, Budget())


def test_parameters_that_name_a_whole_document_are_told_apart_from_those_that_fit() -> None:
    assert _parameters("{$.}", LISTS, MAX_OF_OUTPUT) == (
        "",
        f"more than {MAX_PARAMETERS} bytes of parameters",
    )
    fits = "x" * (MAX_PARAMETERS - 4)
    text, refusal = _parameters(["{$.v}"], orjson.dumps({"v": fits}), MAX_OF_OUTPUT)
    assert (len(text), refusal) == (MAX_PARAMETERS, None)
    assert _parameters(["{$.v}"], orjson.dumps({"v": fits + "x"}), MAX_OF_OUTPUT)[0] == ""


def test_one_output_has_one_budget_for_all_that_it_asks_for() -> None:
    """The first ones fit, and the next says that too much was asked for before."""
    text, refusal = _parameters("{$.v}", orjson.dumps({"v": "x" * 100}), 100)
    assert (len(text), refusal) == (100, None)

    text, refusal = _parameters("{$.v}", orjson.dumps({"v": "x" * 101}), 100)
    assert text == "" and refusal is not None and "of one output" in refusal


def test_a_template_is_filled_in_another_process_and_a_plain_request_is_not() -> None:
    async def run() -> None:
        here, answers = Here(), Answers(200)
        callbacks = Callbacks(answers, Dead(), Evaluator(here), answers.sleep)
        for form in (
            CallbackForm("s", "http://h/"),
            CallbackForm("s", "http://h/", fields={"headers": {"a": "b"}, "body": "c"}),
            CallbackForm("s", "http://h/", "cloudevents"),
        ):
            await callbacks.attempt(7, form, sent(LISTS))
        assert here.asked == 0

        for fields in (
            {"headers": {"a{$.v}": "b"}},
            {"body": "{$.v}"},
            {"aliases": [{"@": "{$.v}"}]},
        ):
            await callbacks.attempt(7, CallbackForm("s", "http://h/", fields=fields), sent(b"{}"))
        await callbacks.attempt(7, CallbackForm("s", "http://h/{$.v}"), sent(b"{}"))
        assert here.asked == 4

    asyncio.run(run())


def test_the_other_process_is_another_one_and_tells_what_is_wrong() -> None:
    other = OtherProcess()
    try:
        assert other.ask(os.getpid) != os.getpid()
        form = CallbackForm("s", "http://h/{$.v}")
        assert other.ask(partial(form.request, sent(b'{"v":"a"}'), 1)).url == "http://h/a"
        with pytest.raises(TooMuch):
            other.ask(partial(form.request, sent(LISTS), 1))
        with pytest.raises(ValueError, match="unexpected"):
            other.ask(partial(form.request, sent(b"{"), 1))
        assert (
            other.ask(partial(acting_streams._understood, None, a_delivery().stream)).actions == ()
        )
    finally:
        other.stop()


def test_a_process_that_ends_or_is_late_is_told_and_another_one_begun() -> None:
    other = OtherProcess(seconds=20)
    try:
        with pytest.raises(Unavailable):
            other.ask(partial(os._exit, 1))
        assert other.ask(os.getpid)
    finally:
        other.stop()


DELIVERY = Path(acting_streams.__file__).parents[1]
LOADS = {
    "actuations/acting_streams.py": "in the other process",
    "callbacks/requests.py": "in the other process, and the form of a subscription in a thread",
    "rest_api.py": "the message of our own API",
    "transports/live_messages.py": "a message of at most 4 KiB",
    "transports/pulling.py": "a body of at most 4 KiB",
    "workflows.py": "a workflow as it is stored, in a thread of the store",
}
"""Where JSON that others have written is read, and why that holds nobody up."""


def test_whoever_reads_json_says_why_it_holds_nobody_up() -> None:
    """A new place is not to be found by an attack."""
    found = {
        str(path.relative_to(DELIVERY))
        for path in DELIVERY.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in ("loads", "decode")
        and isinstance(node.value, ast.Name)
        and node.value.id in ("orjson", "json", "msgspec")
    }

    assert found == set(LOADS)
