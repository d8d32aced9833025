"""`python -m fillmask_ui` is `fillmask-ui`; from here on Ctrl-C ends it in one line."""

import atexit
import os
import sys
import threading


def main() -> None:
    """The process: `cli.main.run`, which says the exit codes."""
    try:
        from fillmask_ui.cli.main import run  # which takes a moment

        run()
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        _end(130)
    except SystemExit as end:
        if isinstance(end.code, int | None):
            _end(end.code or 0)
        raise


def _end(code: int) -> None:
    """End now if a library's thread would be torn down in a call, which C++ makes a SIGABRT of."""
    if any(thread.daemon for thread in threading.enumerate()):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
