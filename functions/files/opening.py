"""Which store it is that files are read of."""

from __future__ import annotations

from collections.abc import Callable

from functions.files.folder import LocalFolder
from functions.files.store import Files
from servioticy.domain.workflows.stores import Bucket, Folder

Opening = Callable[[Folder | Bucket], Files]


def opened(at: Folder | Bucket) -> Files:
    """Return the store that is there; what it takes to ask a bucket is loaded where one is."""
    if isinstance(at, Folder):
        return LocalFolder(at.path, below=at.below)
    from functions.files.bucket import RemoteBucket

    return RemoteBucket(at)
