"""`python -m fillmask_ui` is `fillmask-ui`; from here on Ctrl-C ends it in one line."""

import atexit
import os
import sys
import threading


def main() -> None:
    """The process: `cli.main.run`, which says the exit codes."""
    code = 0
    try:
        from fillmask_ui.cli.main import run  # which takes a moment

        run()
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        code = 130
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    # A library's thread that is torn down in a call to C++ would end the process by SIGABRT.
    if any(thread.daemon for thread in threading.enumerate()):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
