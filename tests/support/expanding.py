"""What a migration may do while programs of the release before go on with what it leaves.

Decision 0178: a release expands the schema, and only the one after it contracts what nobody reads.
"""

from __future__ import annotations

import re

CONTRACTS = "-- Contracts:"
"""How a migration begins that takes away what the release before has not used any more; what
follows on the line says since when."""
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
_BODY = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)
_REFUSED = {
    "it takes away what programs use": r"\bDROP\s+"
    r"(TABLE|COLUMN|VIEW|FUNCTION|PROCEDURE|TYPE|POLICY)\b",
    "it takes away rows": r"\bTRUNCATE\b",
    "it takes away a right": r"\bREVOKE\b",
    "it calls something otherwise": r"\bRENAME\b",
    "it makes a column something else": r"\bALTER\s+(COLUMN\s+)?\w+\s+(SET\s+DATA\s+)?TYPE\b",
    "it demands a value that programs do not give": r"\bSET\s+NOT\s+NULL\b",
    "it demands what was not demanded": r"\bADD\s+(CONSTRAINT\s+\w+\s+)?"
    r"(CHECK|UNIQUE|PRIMARY\s+KEY|FOREIGN\s+KEY|EXCLUDE)\b",
}
_COLUMN = re.compile(r"\bADD\s+COLUMN\b[^,;]*", re.IGNORECASE)
_INDEX = re.compile(r"\bCREATE\s+(UNIQUE\s+)?INDEX\b.*?\bON\s+(?:ONLY\s+)?(\w+)", re.IGNORECASE)
_TABLE = re.compile(r"\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.IGNORECASE)


def wrong(sql: str) -> list[str]:
    """Return why programs of the release before would not go on; empty: they do."""
    if sql.startswith(CONTRACTS) and sql.partition("\n")[0].removeprefix(CONTRACTS).strip():
        return []
    text = _BODY.sub("", _COMMENT.sub("", sql))
    found = [why for why, pattern in _REFUSED.items() if re.search(pattern, text, re.IGNORECASE)]
    for column in _COLUMN.findall(text):
        words = column.upper()
        if "NOT NULL" in words and "DEFAULT" not in words and "GENERATED" not in words:
            found.append("it adds a column that programs do not fill")
    own = {each.lower() for each in _TABLE.findall(text)}
    for unique, table in _INDEX.findall(text):
        if unique and table.lower() not in own:
            found.append("it demands that rows differ which need not have")
    return found
