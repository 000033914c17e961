"""What can be wrong with a program."""

from __future__ import annotations


class NotAnOperator(Exception):
    """The folder, archive or manifest is no operator's; the message says where and why."""


class Misbehaved(Exception):
    """A program has sent what is no answer: it is ended."""
