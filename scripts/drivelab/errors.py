"""The one exception for mistakes that a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """One sentence that names the thing, the reason and the remedy; shown without a traceback, exit status 2."""
