"""A cluster of several machines, which are processes of this one."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from features.ray.conftest import assert_same, measured
from ray.cluster_utils import Cluster as RayCluster

from fillmask_ui.errors import DataError, OptionError
from fillmask_ui.features.ray.ray_machines import describe
from fillmask_ui.models import load_choice
from fillmask_ui.models.model_choice import ModelChoice
from fillmask_ui.runs import perform
from fillmask_ui.runs.engines import EngineChoice, open_engine


@pytest.fixture
def machines():
    cluster = RayCluster(initialize_head=True, head_node_args={"num_cpus": 1})
    yield cluster
    cluster.shutdown()


def joined(machines, workers=2):
    return open_engine(EngineChoice("ray", address=machines.address, workers=workers))


def test_a_machine_that_leaves(machines, store, plan):
    whole = measured(plan, store)
    leaving = machines.add_node(num_cpus=1)
    with joined(machines) as engine:
        for step in perform(plan, store, load_choice, engine):
            if step.rows and leaving is not None:
                machines.remove_node(leaving, allow_graceful=False)
                leaving = None
                machines.add_node(num_cpus=1)
    assert_same(store.open(step.info.name), whole)


def blind(monkeypatch, to):
    """Let all other machines lack what has a name in its path."""

    def described(paths):
        this_one = describe(paths)
        sizes = {path: None if to in path else size for path, size in this_one.sizes.items()}
        return [this_one, replace(this_one, host="other", sizes=sizes)]

    monkeypatch.setattr("fillmask_ui.features.ray.ray_machines.machines", described)


def test_a_model_that_others_cannot_see_is_sent(machines, store, plan, monkeypatch, tmp_path):
    monkeypatch.setenv("FILLMASK_UI_CACHE", str(tmp_path / "cache"))
    folder = Path(plan.model.reference)
    for reference in (folder, folder / "onnx" / "model.onnx"):
        source = replace(plan.source, samples=300)
        sent = replace(plan, model=ModelChoice(str(reference)), source=source)
        whole = measured(sent, store)
        with joined(machines, workers=1) as engine, monkeypatch.context() as patched:
            blind(patched, to=folder.name)
            assert_same(measured(sent, store, engine), whole)


def test_what_machines_lack_is_said_before_a_run(machines, store, plan, monkeypatch):
    with joined(machines, workers=1) as engine:
        with monkeypatch.context() as patched:
            patched.setattr("fillmask_ui.features.ray.ray_machines.MOST_SHIPPED_BYTES", 10)
            blind(patched, to=Path(plan.model.reference).name)
            with pytest.raises(DataError, match=r"the machine other cannot read .* put it where"):
                measured(plan, store, engine)

        def described(paths):
            this_one = describe(paths)
            versions = {**this_one.versions, "numpy": "1.0"}
            return [replace(this_one, host="other", versions=versions)]

        monkeypatch.setattr("fillmask_ui.features.ray.ray_machines.machines", described)
        with pytest.raises(DataError, match=r"other has numpy 1\.0, .* install the same versions"):
            measured(plan, store, engine)
    with pytest.raises(OptionError, match="4 workers of 1 thread need 4 cores, and the cluster"):
        joined(machines, workers=4).__enter__()
    assert store.names() == []


def test_something_else_at_the_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(DataError, match=f"no cluster of Ray .* answers at {address}"):
            open_engine(EngineChoice("ray", address=address)).__enter__()
