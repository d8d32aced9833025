"""Classes among the stored runs, as `fillmask-ui runs` lists and exports them."""

from typing import Any, TextIO

from fillmask_ui.features.classroom.class_rounds import standing
from fillmask_ui.features.classroom.class_run import ClassStore, write_csv


class ListedClasses(ClassStore):
    """The classes under the folder of the runs, with what a list says of each."""

    def entry(self, name: str) -> dict[str, Any]:
        """A class for the list of runs: its mean loss over the sentences that have both."""
        run = self.read(name)
        result = standing(run.rounds)
        return {
            "run": name,
            "created": run.created,
            "state": "done",
            "model": run.model["name"],
            "baseline": None,
            "metric": run.kind,
            "value": result.people_nats if result else None,
            "verdict": None,
            "rows": len(run.rounds),
        }

    def write_csv(self, name: str, target: TextIO) -> None:
        """The rounds of a class, as `write_csv` of them."""
        write_csv(self.read(name).rounds, target)
