"""What is wrong with a document, and where."""

from servioticy.errors import ServioticyError


class BadDocument(ServioticyError):
    """The document cannot be accepted; the message says why and at which place.

    `status` is the original platform's answer: 400, or 404 where it named
    something that does not exist.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
