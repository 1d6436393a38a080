"""What AMD's tools raise for failures that a user can mend."""

import fetch_model


class RocmError(fetch_model.FetchError):
    """A failure that the user can understand; its text is one line."""


class Unreachable(RocmError):
    """A server that can't be reached. Tests that need it are skipped."""


def need(path, how):
    """Raises an error if a file or folder is missing. how: what makes it."""
    if not path.exists():
        raise RocmError(f"{path} is missing: {how}")
