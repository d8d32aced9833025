"""Settings of the hub's client that it reads when imported, and fails on where they are wrong."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from fillmask_ui.errors import NetworkError

_WHOLE_SECONDS = ("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT")


def check_hub_settings(environment: Mapping[str, str]) -> None:
    """Stop with a NetworkError for one that would be a traceback of the client.

    >>> check_hub_settings({"HF_HUB_DOWNLOAD_TIMEOUT": "abc"})
    Traceback (most recent call last):
    fillmask_ui.errors.NetworkError: HF_HUB_DOWNLOAD_TIMEOUT is 'abc', where a whole number of ...
    """
    for name in _WHOLE_SECONDS:
        if (value := environment.get(name)) is not None:
            try:
                int(value)
            except ValueError as error:
                raise NetworkError(
                    f"{name} is {value[:100]!r}, where a whole number of seconds is wanted: set it "
                    "to one, such as 10, or unset it"
                ) from error
    endpoint = environment.get("HF_ENDPOINT") or "https://huggingface.co"
    try:
        known = urlsplit(endpoint).scheme in ("http", "https")
    except ValueError:  # brackets that do not close
        known = False
    if not known:
        raise NetworkError(
            f"HF_ENDPOINT is {endpoint[:100]!r}, which is no address of a hub: set it to one, such "
            "as https://huggingface.co, or unset it"
        )
