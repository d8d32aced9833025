"""A process of its own that records a run; the tests kill it.

Usage: recorded_run.py ROOT SECONDS_A_CALL [NAME_TO_RESUME [BYTES_OF_DISK [NUMBER_OF_TEXTS]]]

With a number of texts they are measured by cross-entropy, and the last line printed is the peak
memory in KiB.
"""

import os
import resource
import signal
import sys
import time
from pathlib import Path

from table_model import TableModel, sample_texts

from fillmask_ui.errors import DataError
from fillmask_ui.evaluation import EvaluationConfig
from fillmask_ui.runs import RunStore, prepare_info, resume, start

METRIC = os.environ.get("RECORDED_METRIC", "pseudo-perplexity")
OPTIONS = {
    "cross-entropy": {"batch_tokens": 20},
    "pseudo-perplexity": {"batch_tokens": 200},
    "unmasking": {"hidden_share": 0.4, "batch_tokens": 200},
}
TEXTS = [*sample_texts(150, seed=4), "", "zzz"]


class SlowModel(TableModel):
    pause_seconds = 0.0

    def logits_at(self, *inputs):
        time.sleep(self.pause_seconds)
        return super().logits_at(*inputs)


def models(pause_seconds=0.0):
    pair = SlowModel(1), SlowModel(1, noise=0.3)
    for model in pair:
        model.pause_seconds = pause_seconds
    return pair


def config_of(metric):
    return EvaluationConfig(metric, **OPTIONS[metric])


def main():
    store = RunStore(Path(sys.argv[1]))
    model, baseline = models(float(sys.argv[2]))
    if len(sys.argv) > 3 and sys.argv[3]:
        recorder = resume(store, sys.argv[3])
    else:
        config = config_of(METRIC) if len(sys.argv) < 6 else EvaluationConfig()
        recorder = start(store, prepare_info(config, model, baseline=baseline))
    texts = TEXTS
    if len(sys.argv) > 5:
        few = sample_texts(1000, seed=4)
        texts = (few[index % 1000] for index in range(int(sys.argv[5])))
    if len(sys.argv) > 4:
        # A disk with so much room: writes beyond it fail as on a full one.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        most = int(sys.argv[4])
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    with recorder:
        print(recorder.name, recorder.dropped_bytes, flush=True)
        try:
            for _ in recorder.measure(model, texts, baseline=baseline):
                model.calls.clear()
                baseline.calls.clear()
        except DataError as error:
            print(error, flush=True)
            raise SystemExit(3) from error
    if len(sys.argv) > 5:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
