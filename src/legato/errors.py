"""The errors a user can meet: each message is one sentence that names what would be right."""


class LegatoError(Exception):
    """Anything the user is told in one sentence; `exit_code` is what the command ends with."""

    exit_code = 2


class UsageError(LegatoError):
    """Wrong usage or bad input, found before anything was sent."""


class RecordingError(LegatoError):
    """A recording or capture that cannot be read or written."""


class TargetError(LegatoError):
    """The endpoint failed: it cannot be reached, does not stream, or no stream succeeded."""

    exit_code = 4
