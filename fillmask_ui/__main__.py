"""`python -m fillmask_ui` is `fillmask-ui`; from here on Ctrl-C ends it in one line."""

import signal
import sys


def main() -> None:
    """The process: `cli.main.run`, which says the exit codes."""
    try:
        from fillmask_ui.cli.main import run  # which takes a moment

        run()
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        raise SystemExit(130) from None
    finally:
        # Python has threads to wait for on its way out, which a second Ctrl-C would abort.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
