"""The examples of docs/client.md, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from running_platform import RunningPlatform

from servioticy import client

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_example_of_the_page_runs(platform: RunningPlatform) -> None:
    """One after the other, as somebody who reads it would try them."""
    names: dict[str, Any] = {
        "url": f"http://127.0.0.1:{platform.api_port}",
        "live_url": f"ws://127.0.0.1:{platform.live_port}",
        "token": platform.token,
    }
    assert len(EXAMPLES) > 5
    for number, example in enumerate(EXAMPLES):
        exec(compile(example, f"docs/client.md, example {number}", "exec"), names)


def test_the_page_names_every_method_and_error() -> None:
    methods = {each for each in vars(client.Rest) if not each.startswith("_")} - {"close"}
    errors = {
        name
        for name in client.__all__
        if isinstance(found := getattr(client, name), type) and issubclass(found, Exception)
    }

    assert {each for each in methods | errors if f"`{each}`" not in PAGE} == set()
    assert {each for each in vars(client.AsyncRest) if not each.startswith("_")} - {
        "close"
    } == methods
