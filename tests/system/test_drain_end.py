# SPDX-License-Identifier: Apache-2.0
"""'agent drain --end': containers get their signal and time, and their sessions go back to the queue
or end, once also when the manager is killed."""

import json

import pytest

from cluster import Cluster, wait_for, wait_status
from runtimes import settings_of

SMALL = ("-d", "--image", "host", "-r", "cpu=1", "-r", "mem=64m")
WATCH = ("trap 'echo USR1' USR1; trap 'echo TERM; exit 5' TERM; echo began $ALIQUOT_ATTEMPT; "
         "test $ALIQUOT_ATTEMPT = 0 || exit 0; while :; do sleep 0.05; done")
SIGNALS = ("--checkpoint-signal", "USR1", "--grace", "1s")


@pytest.fixture
def cluster():
    with Cluster(**settings_of("crun"), ALIQUOT_NETWORK_ENABLED="false",
                 ALIQUOT_RESOURCE_ALLOCATION_MODE="shared") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def shown(cluster, name):
    return cluster.client().get(f"/aliquot/v1/sessions/{name}").json


def said(cluster, name, *options):
    """The program's own lines: its shell also says which signal ended a command of it."""
    lines = cluster.cli("logs", *options, name).stdout.splitlines()
    return [line for line in lines if line in ("USR1", "TERM") or line.startswith("began")]


def run(cluster, name, *options, command=WATCH):
    done = cluster.cli("run", *SMALL, "--name", name, *options, "--", command)
    assert done.returncode == 0, done
    wait_status(cluster.client(), name, "RUNNING")
    wait_for(lambda: "began" in cluster.cli("logs", name).stdout, 30, "its first line")


@pytest.mark.gate
def test_sessions_leave_an_agent_that_is_drained_with_end(cluster):
    run(cluster, "again", "--on-node-loss", "restart-all", *SIGNALS)
    run(cluster, "retried", "--retry", "1", *SIGNALS)
    run(cluster, "ended", *SIGNALS)
    done = cluster.cli("agent", "drain", "--end", "--reason", "new disks", "agent")
    assert done.returncode == 0, done
    cluster.programs["manager"].kill()
    cluster.start_manager()
    client = cluster.client()
    wait_status(client, "ended", "TERMINATED")
    for name in ("again", "retried"):
        wait_status(client, name, "PENDING")
        assert shown(cluster, name)["started_at"] is None
    ended = shown(cluster, "ended")
    assert (ended["reason"], ended["result"]) == ("agent-drained", "FAILURE")
    assert ended["text"] == "Agent 'agent' was drained and its sessions ended: new disks."
    assert said(cluster, "ended") == ["began 0", "USR1", "TERM"]
    agent = json.loads(cluster.cli("agent", "info", "agent", "-o", "json").stdout)
    assert agent["ends_sessions"] and set(agent["occupied_slots"].values()) <= {"0"}, agent
    cluster.start_agent("other")
    for name in ("again", "retried"):
        wait_status(client, name, "TERMINATED")
        found = shown(cluster, name)
        assert [(one["agent"], one["reason"]) for one in found["attempts"]] == [
            ("agent", "agent-drained"), ("other", "task-finished")], found
        assert said(cluster, name, "--attempt", "1") == ["began 0", "USR1", "TERM"]
    assert shown(cluster, "again")["retry"] is None
    assert shown(cluster, "retried")["retry"]["used"] == 1
    assert cluster.cli("agent", "undrain", "agent").returncode == 0
    assert not json.loads(cluster.cli("agent", "info", "agent", "-o", "json").stdout)["ends_sessions"]


def test_a_drain_without_end_lets_sessions_go_on(cluster):
    run(cluster, "stays", *SIGNALS)
    assert cluster.cli("agent", "drain", "agent").returncode == 0
    cluster.start_agent("other")
    assert cluster.cli("run", *SMALL, "--name", "new", "--", "true").returncode == 0
    wait_status(cluster.client(), "new", "TERMINATED")
    assert shown(cluster, "new")["agents"] == ["other"]
    assert shown(cluster, "stays")["status"] == "RUNNING"
    assert said(cluster, "stays") == ["began 0"]
    assert cluster.cli("rm", "--wait", "stays").returncode == 0
