"""Hostile inputs: an environment in which little is as expected, and output that goes nowhere."""

from cli.hostile.attempt import Attempt

_PREDICT = ("predict", "The cat sat on the [MASK].")
_EVAL = ("eval", "--samples", "2", "--max-tokens", "16", "--json")
_RUNS = ("runs", "list")


def _cache(name: str, value: str) -> Attempt:
    """Where nothing can be kept, a prediction is made all the same."""
    return Attempt(name, _PREDICT, ("probability",), 0, environment={"FILLMASK_UI_CACHE": value})


def _odd(variable: str, value: str) -> Attempt:
    """What is no setting that makes sense is no reason to fail."""
    name = f"{variable} is {value}"
    return Attempt(name, _PREDICT, ("probability",), 0, environment={variable: value})


def _unwritable(name: str, target: str, *words: str) -> Attempt:
    return Attempt(name, (*_EVAL, "-o", target), ("cannot be written", "is kept as", *words))


ATTEMPTS: list[Attempt] = [
    Attempt(
        "predict into a mask that is none",
        ("predict", "The cat sat on the mat."),
        ("[MASK]",),
        code=2,
    ),
    *(
        Attempt(f"a mask written {mask}", ("predict", f"The cat {mask}."), ("[MASK]",), 0)
        for mask in ("[mask]", "[mAsK]", "<MASK>", "___")
    ),
    _cache("a cache in the home of nobody", "~nosuchuser/cache"),
    _cache("a cache whose name is too long", "{}/" + "a" * 5_000),
    _cache("a cache that is a device", "/dev/null"),
    _cache("a cache below a file", "/etc/passwd/cache"),
    Attempt(
        "runs in the home of nobody",
        _RUNS,
        ("no home folder", "~nosuchuser", "FILLMASK_UI_RUNS"),
        environment={"FILLMASK_UI_RUNS": "~nosuchuser/runs"},
    ),
    Attempt("runs in a folder of no name", _RUNS, (), 0, environment={"FILLMASK_UI_RUNS": " "}),
    _odd("COLUMNS", "0"),
    _odd("COLUMNS", "-5"),
    _odd("COLUMNS", "wide"),
    _odd("COLUMNS", "999999"),
    _odd("TERM", "dumb"),
    _odd("OMP_NUM_THREADS", "abc"),
    _unwritable("output to a full device", "/dev/full", "no space left"),
    Attempt("output to a folder", (*_EVAL, "-o", "{}"), ("it is a folder",), 2),
    Attempt("a chart to a folder", ("bench", "--quick", "--plot", "{}"), ("it is a folder",), 2),
    Attempt(
        "a history to a folder",
        ("unmask", "A [MASK].", "--history", "{}"),
        ("it is a folder",),
        2,
    ),
    Attempt("output where no folder is", (*_EVAL, "-o", "{}/no/a.json"), ("no folder",), 2),
    Attempt("output below a file", (*_EVAL, "-o", "/etc/passwd/a.json"), ("no folder",), 2),
    Attempt("output of too long a name", (*_EVAL, "-o", "{}/" + "a" * 300), ("name too long",), 2),
    Attempt("output of bytes that are no UTF-8", (*_EVAL, "-o", "{}/\udcff.json"), ("metric",), 0),
    Attempt(
        "a history to a full device",
        ("unmask", "A [MASK].", "--history", "/dev/full"),
        ("/dev/full cannot be written", "no space left"),
    ),
    *(
        Attempt(
            f"GRADIO_SERVER_PORT {port}", (), (port,), 2, environment={"GRADIO_SERVER_PORT": port}
        )
        for port in ("abc", "99999", "-1")
    ),
    Attempt("a host elsewhere", ("--host", "192.0.2.7"), ("cannot listen on 192.0.2.7",), 2),
    Attempt("a port that is none", ("--port", "99999"), ("65535",), 2),
    Attempt(
        "a model of bytes that are no UTF-8",
        ("predict", "-m", "{}/\udcff", "A [MASK]."),
        ("no such model",),
    ),
    Attempt(
        "a file of texts of bytes that are no UTF-8, which is not there",
        ("predict", "--file", "{}/\udcff.txt"),
        ("no file",),
        2,
    ),
]
