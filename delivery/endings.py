"""Why a subscription ends before its client wants it to, in words for that client."""

from __future__ import annotations

from enum import Enum


class Ending(Enum):
    """The reasons; each transport tells them in its own way."""

    DOCUMENT_CHANGED = "the stream's document has changed; reconnect with ?after="
    """The stream is another tenant's and may be private by now; who comes again is asked."""

    READS_TOO_SLOWLY = "you read slower than the stream grows; reconnect with ?after="
    HISTORY_TOO_SLOW = "the history is read slower than the stream grows; reconnect"
    HISTORY_SILENT = "the history does not answer; reconnect"
    OVER_BUDGET = "too much waits for sockets that do not read; reconnect with ?after="
    FAILED = "an update could not be sent; reconnect with ?after="
    """Something of ours is not as we think."""

    QUOTA_USED_UP = "your quota of deliveries is used up; reconnect later with ?after="

    REPLACED = "another client gets the updates of this subscription now"
    UNACKNOWLEDGED = "acknowledge what you have got: reconnect with the id of your last event"
    SUBSCRIPTION_CHANGED = "the subscription has changed, or is gone; ask again"

    REVOKED = "the token is not good for this any more"
    NOT_READABLE = "the stream is private by now, or gone"

    STOPPING = "the server stops"
