"""Files of a repository, downloaded once; the only importer of pooch.

A file gets its final name when it is whole and its bytes are those that were locked. So it is
enough to find it, and a second run goes on where the first one stopped.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from servioticy.errors import SetupError

SECONDS_OF_SILENCE = 60
MAX_AT_ONCE = 6

Progress = Callable[[int, int, int], None]
"""It is given the files done, the files in all, and the bytes fetched so far."""


@dataclass(frozen=True, slots=True)
class Repository:
    """Where files come from, and what a message says about it."""

    url: str
    setting: str  # the environment variable that names another one
    name: str  # what a mirror must mirror
    lock: str  # the file that holds the digests


@dataclass(frozen=True, slots=True)
class Download:
    """A wanted file: its path in the repository, where it goes, and its digest.

    The digest is "sha256:..." or "sha512:..." in hexadecimal, None if it is not known. An
    optional file may be absent in the repository.
    """

    path: str
    target: Path
    digest: str | None
    optional: bool = False


def fetch(
    repository: Repository, wanted: Sequence[Download], progress: Progress
) -> list[Download]:
    """Download these files, several at once, and return the optional ones that are absent.

    What has arrived stays. Raises SetupError, which says what to do.
    """
    absent, fetched = [], 0
    with ThreadPoolExecutor(MAX_AT_ONCE) as pool:
        futures = {pool.submit(_fetch, repository, each): each for each in wanted}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                size = future.result()
                fetched += size
                if not size:
                    absent.append(futures[future])
                progress(done, len(wanted), fetched)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return absent


def _fetch(repository: Repository, wanted: Download) -> int:
    """Download a file and return its size; 0 if it is optional and not to be had."""
    import pooch  # slow, and not needed where everything is here

    url = f"{repository.url.rstrip('/')}/{wanted.path}"
    secure = url.startswith("https://")
    if not secure and not url.startswith("http://"):
        raise SetupError(
            f"{repository.setting} must be an https:// address, not {repository.url!r}"
        )
    if wanted.digest is None and not secure:
        return 0  # nothing would vouch for its bytes
    pooch.get_logger().setLevel("WARNING")  # the progress is ours to show
    partial = wanted.target.with_name(f".{wanted.target.name}.{os.getpid()}")
    downloader = pooch.HTTPDownloader(timeout=SECONDS_OF_SILENCE, verify=_authorities())
    try:
        pooch.retrieve(url, wanted.digest, partial.name, partial.parent, downloader=downloader)
    except OSError as error:
        if wanted.optional and _status(error) == HTTPStatus.NOT_FOUND:
            return 0
        raise SetupError(
            f"cannot download {url}: {error}. Run the same again to go on where it stopped, or "
            f"set {repository.setting} to a mirror of {repository.name} that you can reach (https://)"
        ) from error
    except ValueError as error:
        algorithm = (wanted.digest or "").partition(":")[0]
        raise SetupError(
            f"{url} is not the file of {repository.lock} (wrong {algorithm}); "
            f"set {repository.setting} to a mirror you trust and run the same again"
        ) from error
    partial.chmod(0o644)  # pooch makes it for this user alone; others may run what root set up
    size = partial.stat().st_size
    partial.replace(wanted.target)
    return size


def _status(error: OSError) -> int | None:
    """Return the HTTP status that a failure of requests carries, if it carries one."""
    answer: Any = getattr(error, "response", None)
    return None if answer is None else answer.status_code


def _authorities() -> str | bool:
    """Return whom to trust: the machine's certificates, as pip does; True for requests' own."""
    if os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE"):
        return True  # requests reads these itself
    here = ssl.get_default_verify_paths()
    if here.cafile:
        return here.cafile
    return here.capath if here.capath and any(Path(here.capath).iterdir()) else True
