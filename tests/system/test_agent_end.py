# SPDX-License-Identifier: Apache-2.0
"""aliquot-agent end: what runs on a machine ends before its agent is removed."""

import pytest

from cluster import Cluster, batch, interactive, processes_of, wait_for, wait_status


@pytest.fixture
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster


def end(cluster, name="agent"):
    return cluster.run("aliquot-agent", "--state", cluster.folder / "agent", "end",
                       ALIQUOT_ID=name)


def programs_of(cluster):
    return [command for command in processes_of(cluster.folder).values()
            if "aliquot-manager" not in command and "cluster.py" not in command]


def test_sessions_end_and_the_manager_knows(cluster):
    client = cluster.client()
    for body in (batch("task", "trap '' TERM; sleep 1000 & wait"), interactive("desk")):
        client.post("/aliquot/v1/sessions", body)
        wait_status(client, body["name"], "RUNNING")
    assert end(cluster).returncode == 1  # the agent itself runs
    cluster.programs["agent"].stop()
    assert programs_of(cluster)
    done = end(cluster)
    assert done.returncode == 0, done
    assert programs_of(cluster) == []
    for name in ("task", "desk"):
        shown = wait_status(client, name, "TERMINATED")
        assert shown["reason"] == "agent-removed"


@pytest.mark.parametrize("manager", ["is away", "refuses the agent"])
def test_without_a_manager(cluster, manager):
    client = cluster.client()
    client.post("/aliquot/v1/sessions", interactive("desk"))
    wait_status(client, "desk", "RUNNING")
    cluster.programs["agent"].stop()
    if manager == "is away":
        cluster.programs["manager"].stop()
    assert end(cluster, "another").returncode == 0
    wait_for(lambda: not programs_of(cluster), 10, "the end of all programs")


@pytest.mark.gate
def test_where_nothing_ran(cluster, tmp_path):
    done = cluster.run("aliquot-agent", "--state", tmp_path / "none", "end")
    assert done.returncode == 0 and not (tmp_path / "none").exists()


def test_beside_another_agent(cluster):
    """Both are shared; one who forgets that at the end is told."""
    cluster.start_agent("second")
    cluster.programs.pop("second").stop()
    del cluster.env["ALIQUOT_RESOURCE_ALLOCATION_MODE"]
    command = ["--state", cluster.folder / "second", "end"]
    done = cluster.run("aliquot-agent", *command, ALIQUOT_ID="second")
    assert done.returncode == 1 and "with --shared" in done.stderr, done
    assert cluster.run("aliquot-agent", "--shared", *command, ALIQUOT_ID="second").returncode == 0
