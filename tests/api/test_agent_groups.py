# SPDX-License-Identifier: Apache-2.0
"""An administrator moves agents to other resource groups: over what their settings say, at once
for the scheduler, without touching the sessions that are on them.
"""

import pytest

from client import ADMIN, USER
from cluster import Cluster, batch, running, wait_for, wait_status

V1 = "/aliquot/v1"
ONE = {"cpu": "1", "mem": "64m"}
TWO = {"cpu": "2", "mem": "64m"}


@pytest.fixture(scope="module")
def own():
    """A cluster with one agent of two cores, which says that it is of 'default'."""
    settings = {"ALIQUOT_RESOURCE_CPUS": "2", "ALIQUOT_RESOURCE_RESERVED_CPU": "0",
                "ALIQUOT_NODE_RESOURCE_GROUP": "default"}
    with Cluster(**settings) as made:
        made.start_manager()
        made.start_agent()
        admin = made.client(ADMIN)
        for group in ("day", "night"):
            assert admin.post(V1 + "/resource-groups", {"name": group}).status == 201
            assert admin.post(f"{V1}/resource-groups/{group}/allow",
                              {"domain": "default"}).status == 204
        yield made
        made.stop()


@pytest.fixture(autouse=True)
def of_default(own):
    yield
    assert move(own, "").status == 204
    wait_for(lambda: group_of(own) == ("default", None), what="the agent's own group")
    own.check_audits()


def move(own, group, agent="agent"):
    return own.client(ADMIN).send("PATCH", f"{V1}/agents/{agent}", {"resource_group": group})


def group_of(own):
    shown = own.client(ADMIN).get(V1 + "/agents/agent").json
    return shown["resource_group"], shown["assigned_group"]


def submit(own, name, group, resources=ONE):
    reply = own.client(USER).post("/session", batch(
        name, "true", config={"scaling_group": group, "resources": resources}))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def test_what_is_refused_changes_nothing(own):
    agents = V1 + "/agents/"
    admin = own.client(ADMIN)
    assert move(own, "nowhere").json["msg"] == "there is no resource group 'nowhere'"
    assert move(own, "nowhere").status == 404
    assert move(own, "night", "nobody").status == 404
    for body in ({}, {"resource_group": None}, {"resource_group": 7}, {"resource_group": "x" * 65},
                 {"resource_group": "night", "color": "red"}):
        reply = admin.send("PATCH", agents + "agent", body)
        assert (reply.status, reply.slug) == (400, "invalid-api-params"), (body, reply)
    for client in (own.client(USER), own.client(None)):
        assert client.send("PATCH", agents + "agent", {"resource_group": "night"}).status == 401
    assert group_of(own) == ("default", None)


def test_capacity_moves_at_once_and_sessions_stay(own):
    user = own.client(USER)
    with running(own.client(ADMIN), "stays-there") as stays:
        waits = submit(own, "waits-for-night", "night")
        whole = submit(own, "waits-for-all", "night", TWO)
        assert move(own, "night").status == 204
        assert group_of(own) == ("night", "night")
        wait_status(user, waits, "TERMINATED")
        left = submit(own, "left-behind", "default")
        shown = own.client(ADMIN).get(f"{V1}/sessions/{stays}").json
        assert (shown["status"], shown["resource_group"]) == ("RUNNING", "default")
        assert user.get(f"{V1}/sessions/{whole}").json["status"] == "PENDING", "it is half full"
        why = wait_for(lambda: user.get(f"{V1}/sessions/{left}/why").json["text"], what="a reason")
        assert "agent" in why, why
        own.check_audits()
    wait_status(user, whole, "TERMINATED")
    assert user.get(f"{V1}/sessions/{left}").json["status"] == "PENDING"
    assert move(own, "default").status == 204
    wait_status(user, left, "TERMINATED")


def test_it_holds_when_programs_start_again(own):
    assert move(own, "night").status == 204
    own.programs["agent"].kill()
    own.start_agent()
    assert group_of(own) == ("night", "night")
    own.programs["manager"].kill()
    own.start_manager()
    wait_for(lambda: own.agent().get("connected"), what="the agent")
    assert group_of(own) == ("night", "night")
    wait_status(own.client(USER), submit(own, "after-restart", "night"), "TERMINATED")


def test_a_group_with_agents_is_not_purged(own):
    admin = own.client(ADMIN)
    group = V1 + "/resource-groups/brief"
    assert admin.post(V1 + "/resource-groups", {"name": "brief"}).status == 201
    assert move(own, "brief").status == 204
    assert admin.delete(group).status == 200
    refused = admin.delete(group + "?purge=true")
    assert refused.status >= 400 and "aliquot agent set" in refused.json["msg"], refused
    assert move(own, "").status == 204
    assert admin.delete(group + "?purge=true").status == 200


def test_from_the_command_line(own):
    assert "give either" in own.cli("agent", "set", "agent").stderr
    done = own.cli("agent", "set", "agent", "--resource-group", "nowhere")
    assert done.returncode == 5 and "no resource group 'nowhere'" in done.stderr, done
    assert own.cli("agent", "set", "agent", "--resource-group", "day").returncode == 0
    assert "day" in own.cli("agent", "ls", "-o", "wide").stdout
    assert own.cli("agent", "set", "agent", "--own-resource-group").returncode == 0
    assert group_of(own) == ("default", None)


def test_by_graphql(own):
    admin = own.client(ADMIN)

    def modify(**props):
        return admin.gql("mutation($p: ModifyAgentInput!) { modify_agent(id: \"agent\", props: $p)"
                         " { ok msg } }", {"p": props}).json["data"]["modify_agent"]

    def shown():
        return admin.gql("{ agent(agent_id: \"agent\") { scaling_group schedulable } }"
                         ).json["data"]["agent"]
    assert modify(scaling_group="day", schedulable=False)["ok"]
    assert shown() == {"scaling_group": "day", "schedulable": False}
    assert modify(schedulable=True)["ok"]
    assert shown() == {"scaling_group": "day", "schedulable": True}
    assert modify(scaling_group="nowhere", schedulable=False)["ok"] is False
    assert shown() == {"scaling_group": "day", "schedulable": True}
