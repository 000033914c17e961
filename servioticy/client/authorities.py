"""Whose certificates a client believes."""

from __future__ import annotations

import ssl

from servioticy import trust

Authorities = str | ssl.SSLContext
"""A PEM file of authorities, or what else says whose certificate is believed."""


def believed(ca: Authorities) -> ssl.SSLContext | None:
    """Return what says whose certificate is believed; None: whom everybody believes.

    Raises ServioticyError.
    """
    return (trust.authorities(ca) if isinstance(ca, str) else ca) if ca else None
