"""What a back-up says of itself: `about.json` in the file."""

from __future__ import annotations

from typing import Annotated

import msgspec

FORMAT = 1
"""Another number where an earlier release could not read it."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file in the file: `tables/NAME` with rows as COPY writes them, or `log/TOPIC-PARTITION`
    with records (framing.py).
    """

    name: str
    count: Count
    """Of rows or records."""
    size: Count
    """In bytes, as it was before it was compressed."""
    sha256: str
    columns: tuple[str, ...] = ()


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is to be known before the first part is read."""

    servioticy_backup: Annotated[int, msgspec.Meta(ge=FORMAT, le=FORMAT)]
    made_at: str
    """When it began, in ISO 8601."""
    release: str
    postgres: str
    topic: str
    topic_id: str
    migrations: dict[str, str]
    """The files that made the schema, with their checksums."""
    progress: dict[int, Count]
    """By partition of the log, of which there are so many: the offset that is 0 in here."""
    sequences: dict[str, tuple[int, bool]]
    parts: tuple[Part, ...]

    def part(self, name: str) -> Part | None:
        """Return the part of that name, if there is one."""
        return next((each for each in self.parts if each.name == name), None)


_FORMAT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ABOUT = msgspec.json.Decoder(About)


def written(about: About) -> bytes:
    """Return it as it stands in the file, for people to read, too."""
    return msgspec.json.format(msgspec.json.encode(about), indent=1) + b"\n"


def read(text: bytes) -> About:
    """Read it. Raises ValueError that says what is wrong."""
    try:
        form = int(_FORMAT.decode(text)["servioticy_backup"])
    except (msgspec.DecodeError, KeyError, ValueError, UnicodeError) as error:
        raise ValueError("it does not say of itself that it is a back-up") from error
    if form != FORMAT:
        raise ValueError(f"it is of format {form}, this release reads format {FORMAT}")
    try:
        return _ABOUT.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ValueError(f"about.json: {error}") from error
