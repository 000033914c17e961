"""The engines that are to run the code of docs/document-format.md accept it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from page_commands import blocks

from api.documents.snippets import Snippets
from sandbox import SandboxPool, argument_names
from servioticy.domain.documents import parse_service_object

PAGE = Path(__file__).parents[2] / "docs" / "document-format.md"
EXAMPLES = [each for each in blocks(PAGE.read_text("utf-8")) if each.language == "json"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"line {each.line}")
def test_the_code_of_each_example_is_accepted(pool: SandboxPool, example: Any) -> None:
    definition = parse_service_object(json.loads(example.text), "so", argument_names)

    assert Snippets(pool).problems(1, definition) == []
