"""Ray starts itself at the first call of any thread, unless it is told not to before its import."""

import subprocess
import sys

SCRIPT = """
from fillmask_ui.cluster import EngineChoice, open_engine
from fillmask_ui.errors import DataError
try:
    with open_engine(EngineChoice("ray", address="127.0.0.1:9")):
        pass
except DataError as error:
    print(error)
import ray
try:
    ray.put(1)  # as a thread that is late, after the end
except Exception as error:
    print(error)
"""


def test_a_late_call_starts_no_ray():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert "no cluster answers at 127.0.0.1:9" in done.stdout
    assert "Ray has not been started yet" in done.stdout
