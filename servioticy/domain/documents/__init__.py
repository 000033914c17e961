"""JSON documents <-> model: the one place that knows spellings such as `current-value`.

Parse at the edge, once: past this package nobody handles a raw document. The messages
are those of the original platform where it had one.
"""

from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.documents.service_objects import parse_service_object
from servioticy.domain.documents.stored import Documents
from servioticy.domain.documents.updates import parse_update

__all__ = ["BadDocument", "Documents", "parse_service_object", "parse_update"]
