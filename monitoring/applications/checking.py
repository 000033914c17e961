"""`python -m monitoring.applications.checking ANSWER ENTRY [POINTCUT ...]`: does it load?

In a process of its own, as what is loaded is not ours. The file ANSWER says `why` not, and which
pointcuts are `nowhere`.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

from monitoring.applications.entering import NoEntry, entry
from monitoring.pointcuts import named
from monitoring.weaving.places import places


def main() -> None:
    """Load it, and write the answer down."""
    file, text, *pointcuts = sys.argv[1:]
    why, nowhere = "", []
    try:
        entry(text)
    except NoEntry as error:
        why = str(error)
    except BaseException as error:  # noqa: BLE001  whatever it does
        why = "".join(traceback.format_exception_only(error)).strip()
    else:
        nowhere = [each for each in pointcuts if not named(each) and not _is_somewhere(each)]
    Path(file).write_text(json.dumps({"why": why, "nowhere": nowhere}), encoding="utf-8")


def _is_somewhere(pointcut: str) -> bool:
    return any(each.function is not None for each in places(pointcut))


if __name__ == "__main__":
    main()
