"""Classes among the stored runs, as `fillmask-ui runs` lists and exports them."""

from typing import TextIO

from fillmask_ui.features.classroom.class_rounds import standing
from fillmask_ui.features.classroom.class_run import ClassStore, write_csv
from fillmask_ui.runs.listed import ListedRun


class ListedClasses(ClassStore):
    """The classes under the folder of the runs, with what a list says of each."""

    def entry(self, name: str) -> ListedRun:
        """A class for the list of runs: its mean loss over the sentences that have both."""
        run = self.read(name)
        result = standing(run.rounds)
        return ListedRun(
            name,
            "",
            run.created,
            "done",
            "sentences",
            run.kind,
            None,
            run.model["name"],
            len(run.rounds),
            result.people_nats if result else None,
        )

    def write_csv(self, name: str, target: TextIO) -> None:
        """The rounds of a class, as `write_csv` of them."""
        write_csv(self.read(name).rounds, target)
