"""`python -m fillmask_ui` is `fillmask-ui`; from here on Ctrl-C ends it in one line."""

import atexit
import os
import signal
import sys
import threading
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
    except SystemExit as end:
        _end_with_threads(end)
        raise
    finally:
        # Python has threads to wait for on its way out, which a second Ctrl-C would abort.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_with_threads(end: SystemExit) -> None:
    """End here where threads are left that Python does not wait for.

    Python ends such a thread as it comes back from a library, such as out of a model's call, and
    on that C++ ends the process with SIGABRT.
    """
    if any(thread.daemon for thread in threading.enumerate()) and isinstance(end.code, int | None):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code or 0)


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
