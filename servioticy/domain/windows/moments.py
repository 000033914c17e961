"""Sums without rounding: what comes of them depends on no order.

A float is a whole number times a power of two, so sums of floats and of their squares are whole
numbers over a power of two, which Python computes exactly. They are rounded once, when they are
told.
"""

from __future__ import annotations

from math import isqrt

MORE_BITS = 109
"""How many a root is computed with: twice 53 and some, so that rounding it again is right."""


class Moments:
    """How many numbers there are, with the sums of them and of their squares.

    `total` is over 2**shift, `squares` over 4**shift, where the shift is the least with which
    each of the numbers is whole.
    """

    __slots__ = ("count", "shift", "squares", "total")

    def __init__(self, count: int = 0, shift: int = 0, total: int = 0, squares: int = 0) -> None:
        self.count = count
        self.shift = shift
        self.total = total
        self.squares = squares

    def add(self, number: float) -> None:
        """Take a finite number."""
        numerator, denominator = number.as_integer_ratio()
        shift = denominator.bit_length() - 1
        if shift > self.shift:
            self._refine(shift)
        elif shift < self.shift:
            numerator <<= self.shift - shift
        self.count += 1
        self.total += numerator
        self.squares += numerator * numerator

    def merge(self, other: Moments) -> None:
        """Take all that the other one has."""
        if other.shift > self.shift:
            self._refine(other.shift)
        finer = self.shift - other.shift
        self.count += other.count
        self.total += other.total << finer
        self.squares += other.squares << 2 * finer

    def _refine(self, shift: int) -> None:
        self.total <<= shift - self.shift
        self.squares <<= 2 * (shift - self.shift)
        self.shift = shift

    def sum(self) -> float | None:
        """Return the sum, rounded; None where no float is as large."""
        return ratio(self.total, 1 << self.shift)

    def mean(self) -> float | None:
        """Return the mean, rounded."""
        return ratio(self.total, self.count << self.shift)

    def stdev(self) -> float | None:
        """Return the standard deviation of the sample, rounded; None of fewer than two."""
        if self.count < 2:
            return None
        spread = self.count * self.squares - self.total * self.total
        return root(spread, self.count * (self.count - 1) << 2 * self.shift)


def ratio(numerator: int, denominator: int) -> float | None:
    """Return the float next to the fraction; None where none is as large."""
    try:
        return numerator / denominator
    except OverflowError:
        return None


def root(numerator: int, denominator: int) -> float | None:
    """Return the float next to the square root of the fraction; None where none is as large.

    The root is cut off after more bits than a float has, and its last bit set if it is not
    exact: then rounding it to a float rounds the root itself ("round to odd", Boldo and
    Melquiond, IEEE Transactions on Computers 57(4), 2008).
    """
    shift = (numerator.bit_length() - denominator.bit_length() - MORE_BITS) // 2
    if shift >= 0:
        return ratio(_odd_root(numerator, denominator << 2 * shift) << shift, 1)
    return ratio(_odd_root(numerator << -2 * shift, denominator), 1 << -shift)


def _odd_root(numerator: int, denominator: int) -> int:
    whole = isqrt(numerator // denominator)
    return whole | (whole * whole * denominator != numerator)
