"""Errors for the user as strings, on their way from a process to the driver."""

import json

from fillmask_ui import errors
from fillmask_ui.errors import FillmaskError


def problem_of(error: FillmaskError) -> str:
    """An error as a string."""
    return json.dumps([type(error).__name__, str(error)])


def error_of(problem: str) -> FillmaskError:
    """The error again, of the same class.

    >>> error_of(problem_of(errors.DataError("no such file")))
    DataError('no such file')
    """
    name, message = json.loads(problem)
    kind = getattr(errors, name, FillmaskError)
    return kind(message)
