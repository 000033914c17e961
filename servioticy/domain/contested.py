"""How much of one tenant's comes at once where others wait behind it."""

CONTESTED_SECONDS = 0.02
"""What one tenant sends to the log, has computed or has loaded at once is to take so long at most
while others are there. Whoever comes meanwhile waits for it: half of that on average, which is
what an update takes from request to socket. Each such slice ends with a transaction, of some
two milliseconds, so that smaller ones would be at everybody's cost."""
