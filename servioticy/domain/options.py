"""What a composite stream may choose, each option declared once.

A field is an option: how documents spell it, the values that it may have, the one that
holds where a document does not name it, and its meaning. Parsing and its messages follow
from the declaration; tests hold the JSON Schema and docs/document-format.md against it.

A new option is a field here, its use where composites are computed, a test of that, and a
copy of the declaration in schemas/service-object.json and docs/document-format.md; the tests
say which.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class Options(msgspec.Struct, frozen=True):
    """What one composite stream has chosen; the defaults are the paper's rules."""

    diamonds: Annotated[
        Literal["first", "settle"],
        Meta(
            description="Where several paths lead from one update to this stream: the first to "
            "arrive computes and the others are `stale`; or the last does, when all its inputs "
            "have their values of this update, and the others are `superseded`."
        ),
    ] = "first"
    staleness: Annotated[
        Literal["output", "input"],
        Meta(
            description="A trigger has to be newer than this stream's last output; or newer than "
            "what was last used of the trigger's own source, so that one device whose clock runs "
            "ahead does not silence the others. An output then is one tick newer than the last "
            "where its inputs are older."
        ),
    ] = "output"
    missing: Annotated[
        Literal["null", "skip"],
        Meta(
            description="With an input that has no update yet: compute with `null`, or end with "
            "the verdict `missing`."
        ),
    ] = "null"


DEFAULTS = Options()
"""What holds for a stream that chooses nothing."""
