"""A finished folder of a model as a repository of the Hugging Face hub.

Which hub, and who writes there, is decided by its client: HF_ENDPOINT, HF_TOKEN, `hf auth login`.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.errors import NetworkError, OptionError, first_line
from fillmask_ui.options import option

# What to do about an answer of the hub, by its status.
_ADVICE = {
    401: "log in with a token that may write (hf auth login), or set HF_TOKEN",
    403: "take a token that may write there, or a repository of your own",
}


@dataclass(frozen=True)
class HubTarget:
    """Which repository a folder is pushed to, if to any."""

    push_to_hub: str | None = option(
        None,
        "Push the finished folder to this repository of the Hugging Face hub; created if needed.",
        metavar="REPO",
    )
    private: bool = option(False, "With --push-to-hub: a new repository is private.")

    def __post_init__(self) -> None:
        if self.push_to_hub is not None:
            from huggingface_hub.utils import HFValidationError, validate_repo_id

            try:
                validate_repo_id(self.push_to_hub)
            except HFValidationError as error:
                named = f"{self.push_to_hub!r} cannot name a repository of the hub"
                raise OptionError(f"{named}: {first_line(error)}") from error
        elif self.private:
            raise OptionError("--private belongs to --push-to-hub: which repository?")

    def push(self, folder: Path) -> str:
        """Upload a folder; the repository's address, or "" if none was asked for.

        A `NetworkError` that names the folder, which stays as it is, if the hub does not take it.
        """
        if self.push_to_hub is None:
            return ""
        from huggingface_hub import HfApi, errors, get_token

        status, token = 401, get_token()
        try:
            if token is None:
                raise errors.LocalTokenNotFoundError("there is no token")
            hub = HfApi(token=token)
            url = hub.create_repo(self.push_to_hub, private=self.private or None, exist_ok=True)
            # Drafts are of another process that works there.
            hub.upload_folder(repo_id=url.repo_id, folder_path=folder, ignore_patterns=[".draft-*"])
        # As `models.hub_models` meets them.
        except (errors.HTTPError, OSError, RuntimeError, ValueError) as error:
            if token is not None:
                status = getattr(getattr(error, "response", None), "status_code", 0)
            advice = f"{_ADVICE[status]}, then" if status in _ADVICE else "try again with"
            again = shlex.join(["hf", "upload", self.push_to_hub, str(folder)])
            raise NetworkError(
                f"{folder} is complete and stays, but {self.push_to_hub} on the hub did not get it "
                f"({first_line(error, 200)}): {advice}: {again}"
            ) from error
        return str(url)
