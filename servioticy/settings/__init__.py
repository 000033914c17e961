"""Settings: one typed object, read once. What there is stands in `sections`."""

from servioticy.settings.loading import changed, load, to_environment
from servioticy.settings.sections import Settings

__all__ = ["Settings", "changed", "load", "to_environment"]
