"""Errors that a person should read. The message says what to do next."""


class ServioticyError(Exception):
    """Something of the platform failed in a way it can explain."""


class SettingsError(ServioticyError):
    """A setting is missing or not usable."""


class SetupError(ServioticyError):
    """The machine lacks something that set-up should have provided."""


class Unavailable(ServioticyError):
    """A part the platform depends on does not answer; trying again later may help."""


class Stranger(ServioticyError):
    """Whose token it is may not come in; the message says what he can do about it."""


class Fenced(ServioticyError):
    """Another worker owns this partition now; this one must stop."""


class Rejected(ServioticyError):
    """This one record can never be sent, however long one waits; others can."""
