# SPDX-License-Identifier: Apache-2.0
"""Agents say where they are, and the kernels of a session go near to each other."""

import json

import pytest

from client import USER
from cluster import Cluster, batch, wait_for, wait_status

LABELS = {"a1": "hall/rack-1", "b1": "hall/rack-2", "b2": "hall/rack-2", "c1": "annex/rack-1",
          "d1": None}
GROUP = "/aliquot/v1/resource-groups/default"


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    with Cluster(ALIQUOT_RESOURCE_CPUS="2", ALIQUOT_SESSIONS_KILL_GRACE="3s") as cluster:
        cluster.start_manager()
        for name, label in LABELS.items():
            cluster.start_agent(name, **({"ALIQUOT_NODE_TOPOLOGY": label} if label else {}))
        yield cluster
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(autouse=True)
def clean(cluster):
    yield
    assert cluster.client().send("PATCH", GROUP, {"selection": "concentrated"}).status == 200
    end_all(cluster)


def end_all(cluster):
    for session in cluster.live_sessions():
        assert cluster.client(USER).delete(f"/session/{session['id']}").status == 200
    wait_for(lambda: not cluster.live_sessions(), 60, "all sessions to end")


def agents_of(cluster, name, kernels, **more):
    client = cluster.client(USER)
    reply = client.post("/session", batch(name, "sleep 600", clusterSize=kernels,
                                          clusterMode="multi-node", **more))
    assert reply.status == 201, reply
    wait_status(client, name, "RUNNING")
    shown = client.get("/aliquot/v1/sessions/" + reply.json["sessionId"]).json
    return [kernel["agent"] for kernel in shown["kernels"]]


def test_labels_are_shown(cluster):
    items = cluster.client().get("/aliquot/v1/agents").json["items"]
    assert {item["id"]: item["topology"] for item in items} == LABELS
    shown = cluster.run("aliquot", "agent", "ls", "-o", "wide",
                        **cluster.cli_env()).stdout
    assert "TOPOLOGY" in shown and "hall/rack-2" in shown
    shown = cluster.run("aliquot", "agent", "info", "b1", "-o", "json", **cluster.cli_env())
    assert json.loads(shown.stdout)["topology"] == "hall/rack-2"


def test_an_administrator_labels_over_the_settings(cluster):
    def label(*words):
        done = cluster.run("aliquot", "agent", "set", "d1", *words, **cluster.cli_env())
        assert done.returncode == 0, done
        shown = cluster.client().get("/aliquot/v1/agents/d1").json
        return shown["topology"], shown["assigned_topology"]

    assert label("--topology", "hall/rack-2") == ("hall/rack-2",) * 2
    assert set(agents_of(cluster, "in-the-rack", 6)) == {"b1", "b2", "d1"}
    assert label("--own-topology") == (None, None)
    reply = cluster.client().send("PATCH", "/aliquot/v1/agents/d1", {"topology": "a//b"})
    assert reply.status == 400 and "'a//b'" in reply.body.decode(), reply


def test_kernels_go_near_to_each_other(cluster):
    one = agents_of(cluster, "two-kernels", 2)
    assert len(set(one)) == 1
    end_all(cluster)
    assert sorted(agents_of(cluster, "a-rack", 4)) == ["b1", "b1", "b2", "b2"]
    # what is left of the hall has no room, and no other rack
    assert sorted(agents_of(cluster, "anywhere", 5)) == ["a1", "a1", "c1", "c1", "d1"]


def test_a_hall_with_room_is_used_before_others(cluster):
    assert set(agents_of(cluster, "a-hall", 6)) == {"a1", "b1", "b2"}


def test_dispersed_spreads_within_a_rack(cluster):
    assert cluster.client().send("PATCH", GROUP, {"selection": "dispersed"}).status == 200
    assert sorted(agents_of(cluster, "spread", 2)) == ["b1", "b2"]


def test_a_label_that_cannot_be_is_refused(cluster):
    said = cluster.run("aliquot-agent", "--state", cluster.folder / "x",
                       ALIQUOT_NODE_TOPOLOGY="hall//rack")
    assert said.returncode and "topology label 'hall//rack' is invalid" in said.stderr
