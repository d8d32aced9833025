"""A finished folder of a model as a repository of the Hugging Face hub.

Where the hub is and who writes to it are its client's own choices: HF_TOKEN or `hf auth login`, and
HF_ENDPOINT.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from fillmask_ui.errors import NetworkError, OptionError, first_line
from fillmask_ui.options import option

_LOGIN = "log in with a token that may write (hf auth login), or set HF_TOKEN"
# What to do about an answer of the hub, by its status.
_ADVICE = {
    401: _LOGIN,
    403: "take a token that may write there, or a repository of your own",
}


@dataclass(frozen=True)
class HubTarget:
    """Which repository a folder is pushed to; an OptionError for what cannot be its name."""

    push_to_hub: str | None = option(
        None,
        "Push the finished folder to this repository of the Hugging Face hub, made if it is new.",
        flags=("--push-to-hub",),
        metavar="REPO",
    )
    private: bool = option(False, "With --push-to-hub: a new repository is private.")

    def __post_init__(self) -> None:
        if self.push_to_hub is None:
            if self.private:
                raise OptionError("--private belongs to --push-to-hub: which repository?")
            return
        from huggingface_hub.utils import HFValidationError, validate_repo_id

        try:
            validate_repo_id(self.push_to_hub)
        except HFValidationError as error:
            raise OptionError(
                f"{self.push_to_hub!r} cannot name a repository of the hub: {first_line(error)}"
            ) from error

    def push(self, folder: Path) -> str | None:
        """Upload a folder as one commit; the repository's address, or None if none was asked for.

        A `NetworkError` that names the folder, which stays as it is, if the hub does not take it.
        """
        if self.push_to_hub is None:
            return None
        from huggingface_hub import HfApi, errors, get_token

        try:
            if (token := get_token()) is None:
                raise errors.LocalTokenNotFoundError("there is no token")
            hub = HfApi(token=token)
            made = hub.create_repo(self.push_to_hub, private=self.private or None, exist_ok=True)
            hub.upload_folder(
                repo_id=made.repo_id,
                folder_path=folder,
                commit_message="Upload a model made with fillmask-ui",
                ignore_patterns=[".draft-*"],  # of another process that works there
            )
        # As `models.hub_models` meets them.
        except (errors.HTTPError, OSError, RuntimeError, ValueError) as error:
            answer = getattr(error, "response", None)
            missing = isinstance(error, errors.LocalTokenNotFoundError)
            advice = _LOGIN if missing else _ADVICE.get(getattr(answer, "status_code", 0))
            again = shlex.join(["hf", "upload", self.push_to_hub, str(folder)])
            raise NetworkError(
                f"{folder} is complete and stays, but {self.push_to_hub} on the hub did not get it "
                f"({first_line(error, 200)}): {f'{advice}, then' if advice else 'try again with'}: "
                f"{again}"
            ) from error
        return str(made)
