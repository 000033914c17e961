"""Which windows of a trial are whole: what was not played cannot have been in them.

Of a stream all updates are there behind some time, its *horizon*: of what is stored that is where
the playing begins; of what comes of windows it is where the last one ends that reaches back to the
horizon of what they read. A window that begins behind that is whole. All times here are in ns
since 1970, as streams may count in several units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from api.trials.moments import moment
from api.trials.trial import Found
from api.trials.version import Version
from sandbox.trees import Made
from servioticy.domain.evaluators.windows.sessions import newest_of
from servioticy.domain.model import StreamRef, Timestamp, WindowRef
from servioticy.domain.time_units import PER_SECOND, unit_of
from servioticy.domain.windowed import WindowsOf
from servioticy.domain.windows.grid import grid_of
from servioticy.domain.windows.model import Silence, Window
