# SPDX-License-Identifier: Apache-2.0
"""Sessions of the type system: what they may ask for, and how many there may be. Their resource
group has no agents, so they wait.
"""

import itertools

import pytest

from cluster import wait_for
from test_scheduling import group  # noqa: F401 (a fixture)

numbers = itertools.count(1)
IMAGE = "aliquot/files"


def make(client, group, image=IMAGE, type="system", config=None, **more):
    return client.post("/session", {
        "name": f"files-{next(numbers)}", "image": image, "type": type, "enqueueOnly": True,
        "config": {"scaling_group": group, **(config or {})}, **more})


def end(client, reply):
    assert reply.status == 201, reply
    ended = client.send("DELETE", f"/session/{reply.json['sessionId']}")
    assert ended.status in (200, 204), ended


def test_what_one_gets(user, group):
    made = make(user, group)
    shown = user.get(f"/aliquot/v1/sessions/{made.json['sessionId']}").json
    assert shown["type"] == "system" and shown["image"] == IMAGE
    assert shown["requested_slots"] == {"cpu": "1", "mem": str(256 << 20)}
    assert user.get(f"/session/{made.json['sessionId']}/direct-access-info").json == {}
    assert user.get(f"/aliquot/v1/sessions/{made.json['sessionId']}/ssh").status == 404
    end(user, made)


@pytest.mark.parametrize("what, says", [
    ({"image": "docker.io/library/debian"}, "aliquot/files"),
    ({"image": "process"}, "aliquot/files"),
    ({"type": "interactive"}, "aliquot/files"),
    ({"type": "batch", "startupCommand": "true"}, "aliquot/files"),
    ({"startupCommand": "id"}, "runs no command"),
    ({"bootstrap_script": "aWQ="}, "runs no command"),
    ({"clusterSize": 2}, "one container"),
    ({"config": {"resources": {"cpu": "5"}}}, "4 cores and 4 GiB at most"),
    ({"config": {"resources": {"mem": "5g"}}}, "4 cores and 4 GiB at most"),
])
def test_what_one_may_not_ask_for(user, group, what, says):
    refused = make(user, group, **what)
    assert refused.status == 400 and says in str(refused.json), refused


def test_how_many_there_may_be(admin, user, group):
    policies = "/aliquot/v1/keypair-policies"
    policy = next(row for row in admin.get(policies).json["items"] if row["name"] == "default")
    assert policy["max_concurrent_sftp_sessions"] == 1
    first = make(user, group)
    assert first.status == 201, first
    refused = make(user, group)
    assert refused.status == 412 and "more than 1 SFTP sessions" in refused.json["msg"], refused
    other = make(admin, group)  # another keypair has its own
    pair = user.post("/aliquot/v1/sessions", [
        {"name": f"pair-{n}", "image": IMAGE, "type": "system", "config": {"scaling_group": group}}
        for n in range(2)])
    assert pair.status == 412, pair
    assert admin.send("PATCH", f"{policies}/default", {"max_concurrent_sftp_sessions": 2}).status == 200
    query = '{keypair_resource_policy(name:"default"){max_concurrent_sftp_sessions}}'
    assert admin.post("/admin/gql", {"query": query}).json["data"] == {
        "keypair_resource_policy": {"max_concurrent_sftp_sessions": 2}}
    second = make(user, group)
    assert second.status == 201 and make(user, group).status == 412
    assert admin.send("PATCH", f"{policies}/default", {"max_concurrent_sftp_sessions": 0}).status == 200
    third = make(user, group)
    assert admin.send("PATCH", f"{policies}/default", {"max_concurrent_sftp_sessions": 1}).status == 200
    for client, made in ((user, first), (user, second), (user, third), (admin, other)):
        end(client, made)
    end(user, make(user, group))  # those that have ended do not count


def test_a_node_without_sftp(user):
    """It waits for one that has it, and says so."""
    made = make(user, "default")
    why = f"/aliquot/v1/sessions/{made.json['sessionId']}/why"
    wait_for(lambda: b"no agent offers SFTP" in user.get(why).body, 60,
             lambda: f"the reason: {user.get(why).body}")
    assert user.get(f"/aliquot/v1/sessions/{made.json['sessionId']}").json["status"] == "PENDING"
    end(user, made)
