# SPDX-License-Identifier: Apache-2.0
"""GET /aliquot/v1/nodes: what users may know of the nodes of their resource groups."""

import pytest

from client import ADMIN, USER
from cluster import Cluster, interactive, wait_status

MEMBERS = {"id", "status", "resource_group", "architecture", "schedulable", "drain_reason",
           "total_slots", "free_slots"}


@pytest.fixture(name="cluster")
def cluster_fixture():
    with Cluster(ALIQUOT_IMAGE_ALLOW="* host") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


def test_users_see_what_is_free_and_nothing_else(cluster):
    user, admin = cluster.client(USER), cluster.client(ADMIN)
    assert user.post("/session", {**interactive("mine"), "image": "host"}).status == 201
    wait_status(user, "mine", "RUNNING")
    reply = user.get("/aliquot/v1/nodes")
    assert reply.status == 200 and reply.json["total"] == 1
    node, = reply.json["items"]
    assert set(node) == MEMBERS and node["status"] == "ALIVE" and node["resource_group"] == "default"
    used = admin.get("/aliquot/v1/agents").json["items"][0]["occupied_slots"]
    assert float(used["cpu"]) > 0
    for slot, amount in node["total_slots"].items():
        assert float(node["free_slots"][slot]) == float(amount) - float(used.get(slot, 0)), slot


def test_a_drained_node_shows_its_reason(cluster):
    user, admin = cluster.client(USER), cluster.client(ADMIN)
    node, = user.get("/aliquot/v1/nodes").json["items"]
    assert node["schedulable"] and node["drain_reason"] is None
    drained = admin.post(f"/aliquot/v1/agents/{node['id']}/drain", {"reason": "new disks"})
    assert drained.status == 204, drained
    node, = user.get("/aliquot/v1/nodes").json["items"]
    assert not node["schedulable"] and node["drain_reason"] == "new disks"
    table = cluster.run("aliquot", "nodes", **cluster.cli_env(USER)).stdout
    assert "new disks" in table, table


def test_nodes_of_other_groups_are_not_seen(cluster):
    user, admin = cluster.client(USER), cluster.client(ADMIN)
    name = user.get("/aliquot/v1/nodes").json["items"][0]["id"]
    assert admin.post("/aliquot/v1/resource-groups", {"name": "secret"}).status == 201
    assert admin.send("PATCH", f"/aliquot/v1/agents/{name}", {"resource_group": "secret"}).status == 204
    assert user.get("/aliquot/v1/nodes").json == {"items": [], "total": 0}
    assert [node["id"] for node in admin.get("/aliquot/v1/nodes").json["items"]] == [name]


def test_a_role_that_is_not_enough_is_named(cluster):
    reply = cluster.client(USER).get("/aliquot/v1/agents")
    assert reply.status == 401 and "auth-failed" in reply.json["type"]
    assert reply.json["title"] or reply.json["msg"]
    said = str(reply.json)
    assert "role 'admin' or 'superadmin'" in said and "yours is 'user'" in said, said
