"""What several of the files here come to; the platform itself is for all tests of a run."""

from __future__ import annotations

from doors import doors

__all__ = ["doors"]
