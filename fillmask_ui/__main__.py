"""`python -m fillmask_ui` is `fillmask-ui`; from here on Ctrl-C ends it in one line."""

import signal
import sys
import time

# Ctrl-C again within so long is the same wish: what ends the work in order must not be cut short.
_SAME_WISH_SECONDS = 2.0


def main() -> None:
    """The process: `cli.main.run`, which says the exit codes."""
    _heed_one_at_a_time()
    try:
        from fillmask_ui.cli.main import run  # which takes a moment

        run()
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        raise SystemExit(130) from None
    finally:
        # Python has threads to wait for on its way out, which a second Ctrl-C would abort.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _heed_one_at_a_time() -> None:
    heeded = -_SAME_WISH_SECONDS

    def interrupt(*_: object) -> None:
        nonlocal heeded
        if (now := time.monotonic()) - heeded >= _SAME_WISH_SECONDS:
            heeded = now
            raise KeyboardInterrupt

    # What a shell starts in the background ignores it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


if __name__ == "__main__":
    main()
