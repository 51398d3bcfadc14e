# SPDX-License-Identifier: Apache-2.0
"""The manager is killed while a cluster of Backend.AI moves in: all of it is there, or nothing."""

import contextlib

import pytest

import backendai_database as old
from cluster import GONE, Cluster

ROUTE = "/aliquot/v1/import/backendai"
TABLES = {
    "domains": [{"name": "labs", "dotfiles": [{"path": ".vimrc", "perm": "644", "data": "x"}]}],
    "keypair_resource_policies": [{"name": "students"}],
    "scaling_groups": [{"name": "gpu", "scheduler": "fifo"}],
    "groups": [{"id": old.LAB, "name": "lasers", "domain_name": "labs"}],
    "users": [{"uuid": old.ANN, "email": "ann@labs.example", "password": old.BCRYPT,
               "domain_name": "labs"}],
    "association_groups_users": [{"user_id": old.ANN, "group_id": old.LAB}],
    "keypairs": [{"access_key": old.KEYS["ann"][0], "secret_key": old.KEYS["ann"][1],
                  "user": old.ANN, "resource_policy": "students", "bootstrap_script": "true"}],
    "sgroups_for_domains": [{"scaling_group": "gpu", "domain": "labs"}],
    "resource_presets": [{"name": "small", "resource_slots": {"cpu": "1"}}],
    "image_aliases": [{"alias": "python39", "image": "cr.example/python:3.9"}],
}


def statuses(reply):
    return {item["status"] for item in reply.json["items"]}


# Others write, too: it may die before its turn.
@pytest.mark.parametrize("point, may_be_there", [
    ("store.batch.begun", False), ("store.piece.written", False), ("store.commit.before", False),
    ("store.commit.after", True), ("store.batch.finished", True),
    ("store.dispatch.callback", True)])
def test_killed_while_it_is_written(point, may_be_there):
    with Cluster() as cluster:
        mark = cluster.folder / "died"
        mark.touch()
        cluster.start_manager(ALIQUOT_FAULT=f"{point}:any", ALIQUOT_FAULT_ONCE=str(mark))
        client = cluster.client()
        assert statuses(client.post(ROUTE, {"tables": TABLES, "dry_run": True})) == {"taken"}
        mark.unlink()
        with contextlib.suppress(*GONE):
            client.post(ROUTE, {"tables": TABLES})
        cluster.programs["manager"].stop()
        assert mark.exists(), "it was killed"
        cluster.start_manager()
        client = cluster.client()
        found = statuses(client.post(ROUTE, {"tables": TABLES, "dry_run": True}))
        assert found == {"taken"} or (may_be_there and found == {"exists"})
        reply = client.post(ROUTE, {"tables": TABLES})
        assert reply.status == 200 and client.post(ROUTE, {"tables": TABLES}).status == 200
        ann = cluster.client(old.KEYS["ann"])
        assert ann.get("/user-config/bootstrap-script").json == "true"
        assert [row["name"] for row in ann.get("/scaling-groups?group=lasers").json[
            "scaling_groups"]] == ["gpu"]
        cluster.check_audits()
        cluster.stop()
