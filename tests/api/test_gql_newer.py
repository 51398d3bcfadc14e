# SPDX-License-Identifier: Apache-2.0
"""Roots that newer clients and the web UI ask for beside nodes."""

import base64
import itertools
import json

import pytest

from client import Client
from cluster import WAITS, batch, wait_status

numbers = itertools.count(1)
NONE = "00000000-0000-4000-8000-000000000000"


def ask(client, query, variables=None):
    reply = client.gql(query, variables)
    assert reply.status == 200 and not reply.json.get("errors"), reply
    [value] = reply.json["data"].values()
    return value


def refusal(client, query, variables=None):
    reply = client.gql(query, variables).json
    assert not reply.get("data") or set(reply["data"].values()) == {None}, reply
    return reply["errors"][0]["message"]


@pytest.fixture
def stranger(admin):
    """A user of a domain that may use no resource group yet: the client, the domain, the project."""
    name = f"newer{next(numbers)}"
    for query in (f'create_domain(name: "{name}", props: {{}})',
                  f'create_group(name: "{name}", props: {{domain_name: "{name}"}})',
                  f'create_user(email: "{name}@example.com", props: {{domain_name: "{name}",'
                  f' username: "{name}", password: "long enough 1"}})'):
        done = ask(admin, f"mutation {{ {query} {{ ok msg }} }}")
        assert done["ok"], done
    [project] = [row["id"] for row in admin.get("/aliquot/v1/groups?limit=1000").json["items"]
                 if row["name"] == name]
    key = ask(admin, f'mutation {{ create_keypair(user_id: "{name}@example.com", props: {{'
                     'resource_policy: "default", rate_limit: 0}) { keypair { access_key secret_key } } }')
    key = key["keypair"]
    added = admin.post(f"/aliquot/v1/groups/{project}/add-users", {"users": [name + "@example.com"]})
    assert added.status == 204, added
    yield Client(admin.address, (key["access_key"], key["secret_key"])), name, project
    for query in (f'purge_user(email: "{name}@example.com", props: {{}})',
                  f'purge_group(gid: "{project}")', f'purge_domain(name: "{name}")'):
        done = ask(admin, f"mutation {{ {query} {{ ok msg }} }}")
        assert done["ok"], done


SUMMARY = """query($limit: Int!, $offset: Int!, $status: String) { agent_summary_list(limit: $limit,
    offset: $offset, status: $status) { items { id status architecture available_slots
    occupied_slots scaling_group schedulable } total_count } }"""


@pytest.mark.parametrize("whom", ("domain", "user_group", "keypair"))
def test_agents_are_shown_to_those_who_may_use_their_group(admin, domain_admin, stranger, whom):
    client, domain, project = stranger
    page = {"limit": 1000, "offset": 0, "status": "ALIVE"}
    groups = f'{{ accessible_scaling_groups(project_id: "{project}") {{ name is_active ' \
             "resource_allocation_limit_for_sessions accelerator_quantum_size } }"
    for other in (admin, domain_admin):
        shown = ask(other, SUMMARY, page)
        assert shown["total_count"] == len(shown["items"]) == 1
    [agent] = shown["items"]
    assert json.loads(agent["available_slots"])["cpu"] and agent["scaling_group"] == "default"
    assert ask(client, SUMMARY, page) == {"items": [], "total_count": 0}
    assert ask(client, f'{{ agent_summary(agent_id: "{agent["id"]}") {{ id }} }}') is None
    assert ask(client, groups) == []
    given = {"domain": f'domain: "{domain}"', "user_group": f'user_group: "{project}"',
             "keypair": f'access_key: "{client.keypair[0]}"'}[whom]
    done = ask(admin, f'mutation {{ associate_scaling_group_with_{whom}(scaling_group: "default", '
                      f"{given}) {{ ok }} }}")
    assert done["ok"]
    assert ask(client, SUMMARY, page) == {"items": [agent], "total_count": 1}
    assert ask(client, f'{{ agent_summary(agent_id: "{agent["id"]}") {{ id }} }}') == {
        "id": agent["id"]}
    assert ask(client, groups) == [{"name": "default", "is_active": True,
                                    "resource_allocation_limit_for_sessions": "{}",
                                    "accelerator_quantum_size": None}]
    assert "privilege required" in refusal(client, "{ agents { id } }")


def test_groups_of_a_project_of_others(user, stranger):
    _, _, project = stranger
    for other in (project, NONE):
        assert refusal(user, f'{{ accessible_scaling_groups(project_id: "{other}") {{ name }} }}')
    assert "limit must be within 1..1000" in refusal(
        user, "{ agent_summary_list(limit: 1001, offset: 0) { total_count } }")


def test_the_viewer(admin, user):
    for client, email, role in ((admin, "admin@lablup.com", "superadmin"),
                                (user, "user@lablup.com", "user")):
        seen = ask(client, "{ viewer { user { email id row_id } user_id encoded_user_role } }")
        assert seen["user"]["email"] == email and seen["user_id"] == seen["user"]["row_id"]
        assert base64.b64decode(seen["encoded_user_role"]).decode() == role


MINE = """mutation($input: UpdateUserV2Input!) { updateUserV2(input: $input) { user { basicInfo { email
    fullName } security { allowedClientIp } organization { role } } } }"""


KEYS = """query($email: String) { keypair_list(limit: 100, offset: 0, email: $email, is_active: true)
    { total_count items { access_key secret_key user_id } } }"""


def test_people_list_their_own_keypairs(admin, user, stranger):
    client, name, _ = stranger
    made = admin.post("/aliquot/v1/keypairs", {"user": name + "@example.com"}).json
    own = {(client.keypair[0], client.keypair[1]), (made["access_key"], made["secret_key"])}
    for email in (None, name + "@example.com"):
        rows = ask(client, KEYS, {"email": email})
        assert {(row["access_key"], row["secret_key"]) for row in rows["items"]} >= own
        assert {row["user_id"] for row in rows["items"]} == {name + "@example.com"}
        assert rows["total_count"] == len(rows["items"]) == 3  # the first came with the user
    assert {row["user_id"] for row in ask(client, "{ keypairs { user_id } }")} == {
        name + "@example.com"}
    for other in ("user@lablup.com", "nobody@example.com"):
        assert "admin privilege" in refusal(client, KEYS, {"email": other})
    assert "admin privilege" in refusal(user, KEYS, {"email": name + "@example.com"})
    assert {row["secret_key"] for row in
            ask(admin, KEYS, {"email": name + "@example.com"})["items"]} == {None}


def test_people_change_their_own_name_password_and_addresses(cluster, stranger):
    client, name, _ = stranger
    done = ask(client, MINE, {"input": {"fullName": "<b>New</b> 이름", "password": "quite an0ther one",
                                        "allowedClientIp": ["127.0.0.0/8"]}})["user"]
    assert done == {"basicInfo": {"email": name + "@example.com", "fullName": "<b>New</b> 이름"},
                    "security": {"allowedClientIp": ["127.0.0.0/8"]}, "organization": {"role": "USER"}}
    login = {"type": "keypair", "domain": name, "username": name + "@example.com"}
    for password, status in (("long enough 1", 401), ("quite an0ther one", 200)):
        assert cluster.client(None).post("/auth/authorize",
                                         {**login, "password": password}).status == status
    kept = ask(client, MINE, {"input": {"fullName": "Old", "description": None}})["user"]
    assert kept["security"]["allowedClientIp"] == ["127.0.0.0/8"]
    assert not ask(client, MINE, {"input": {"allowedClientIp": None}})["user"]["security"]["allowedClientIp"]


@pytest.mark.parametrize("given", (
    {"role": "SUPERADMIN"}, {"domainName": "default"}, {"status": "ACTIVE"}, {"groupIds": []},
    {"username": "root"}, {"resourcePolicy": "default"}, {"needPasswordChange": False},
    {"containerUid": 0}, {"mainAccessKey": "AKIAIOSFODNN7EXAMPLE"}, {"sudoSessionEnabled": True}))
def test_people_change_nothing_else_of_themselves(user, given):
    [member] = given
    before = ask(user, "{ myUserV2 { basicInfo { fullName } organization { role } } }")
    assert refusal(user, MINE, {"input": {"fullName": "Not this", **given}}) == \
        f"{member}: only administrators may change it"
    assert ask(user, "{ myUserV2 { basicInfo { fullName } organization { role } } }") == before
    assert "password" in refusal(user, MINE, {"input": {"password": "short"}})


def test_kernels_of_a_session(user, admin, name):
    session = user.post("/session", batch(name, "true", cluster_size=3, **WAITS)).json["sessionId"]
    query = "query($s: ID!, $limit: Int!, $offset: Int!, $role: String) { compute_container_list(" \
            "session_id: $s, limit: $limit, offset: $offset, role: $role) { items { id kernel_id " \
            "cluster_role cluster_hostname session_id } total_count } }"
    page = {"s": session, "limit": 2, "offset": 1}
    for client in (user, admin):
        shown = ask(client, query, page)
        assert shown["total_count"] == 3 and len(shown["items"]) == 2
        assert {(k["session_id"], k["cluster_role"]) for k in shown["items"]} == {(session, "sub")}
        assert shown["items"][0]["id"] == shown["items"][0]["kernel_id"]
        assert ask(client, query, {**page, "offset": 0, "role": "main"})["total_count"] == 1
    kernel = shown["items"][0]["id"]
    for argument in ("id", "container_id"):
        assert ask(user, f'{{ compute_container({argument}: "{kernel}") {{ id }} }}') == {"id": kernel}
    assert ask(user, query, {**page, "s": NONE}) == {"items": [], "total_count": 0}
    assert "is not a UUID" in refusal(user, query, {**page, "s": "x"})
    assert "is required" in refusal(user, "{ compute_container { id } }")
    assert "takes no filter" in refusal(
        user, f'{{ compute_container_list(session_id: "{session}", limit: 1, offset: 0, '
              'filter: "x == 1") { total_count } }')
    user.delete("/session/" + session)


def test_what_all_sessions_ask_for(user, admin, domain_admin, name):
    query = "query($f: String, $s: [String], $d: String) { total_resource_slot(filter: $f, " \
            "statuses: $s, domain_name: $d) { occupied_slots requested_slots } }"
    made = [user.post("/session", batch(f"{name}-{i}", "true", **WAITS)).json["sessionId"]
            for i in range(2)]
    one = ask(user, f'{{ compute_session(id: "{made[0]}") {{ requested_slots }} }}')
    cpu = json.loads(one["requested_slots"])["cpu"]
    mine = {"f": f'name like "{name}%"'}
    for more in ({}, {"s": ["PENDING"]}, {"s": ["PENDING", "RUNNING"]}, {"d": "default"}):
        total = ask(admin, query, {**mine, **more})
        assert json.loads(total["requested_slots"])["cpu"] == str(2 * int(cpu)), total
        assert json.loads(total["occupied_slots"]).get("cpu", "0") == "0"
    for more in ({"s": ["RUNNING"]}, {"d": "nowhere"}):
        assert json.loads(ask(admin, query, {**mine, **more})["requested_slots"]).get("cpu", "0") == "0"
    assert "status" in refusal(admin, query, {"s": ["ODD"]})
    for client in (user, domain_admin):
        assert "privilege required" in refusal(client, query, mine)
    for session in made:
        user.delete("/session/" + session)


# ---- modify_compute_session ----

MODIFY = "mutation($input: ModifyComputeSessionInput!) { modify_compute_session(input: $input) " \
         "{ item { row_id name priority } clientMutationId } }"


def test_a_session_gets_another_name_and_priority(user, admin, name):
    session = user.post("/session", batch(name, "true", **WAITS)).json["sessionId"]
    node = base64.b64encode(f"ComputeSessionNode:{session}".encode()).decode()
    done = ask(user, MODIFY, {"input": {"id": session, "name": name + "-b", "priority": 7,
                                        "clientMutationId": "m1"}})
    assert done == {"item": {"row_id": session, "name": name + "-b", "priority": 7},
                    "clientMutationId": "m1"}
    done = ask(admin, MODIFY, {"input": {"id": node, "priority": 3}})
    assert done == {"item": {"row_id": session, "name": name + "-b", "priority": 3},
                    "clientMutationId": None}
    for given, words in (({"priority": 101}, "priority"), ({"name": "-"}, "name"), ({}, "nothing to"),
                         ({"id": NONE, "name": "x"}, "no such session"),
                         ({"id": "x", "name": "x"}, "is not a UUID")):
        assert words in refusal(user, MODIFY, {"input": {"id": session, **given}}), given
    user.delete("/session/" + session)
    assert "no such session" in refusal(user, MODIFY, {"input": {"id": session, "name": "late"}})


def test_a_session_of_others_stays_as_it_is(user, admin, domain_admin, stranger, name):
    session = user.post("/session", batch(name, "true", **WAITS)).json["sessionId"]
    client, _, _ = stranger
    asked = {"input": {"id": session, "name": "taken"}}
    assert "no such session" in refusal(client, MODIFY, asked)
    assert ask(domain_admin, MODIFY, {"input": {"id": session, "priority": 2}})["item"]["priority"] == 2
    try:
        assert admin.send("PUT", "/manager/status", {"status": "frozen"}).status < 300
        assert "frozen" in refusal(user, MODIFY, asked)
    finally:
        assert admin.send("PUT", "/manager/status", {"status": "running"}).status < 300
    shown = ask(user, f'{{ compute_session(id: "{session}") {{ name agent_ids agents '
                      "vfolder_mounts commit_status } }")
    assert shown == {"name": name, "agent_ids": [], "agents": [], "vfolder_mounts": [],
                     "commit_status": None}
    user.delete("/session/" + session)


# ---- fields of newer clients ----

def test_when_sessions_were_placed(user, name):
    waiting = user.post("/session", batch(name + "-w", "true", **WAITS)).json["sessionId"]
    ended = user.post("/session", batch(name + "-e", "true")).json["sessionId"]
    wait_status(user, ended, "TERMINATED")
    fields = "scheduled_at abusing_reports"
    page = ask(user, f'{{ compute_session_nodes(filter: "name like \\"{name}-%\\"", order: "name")'
                     f" {{ edges {{ node {{ created_at {fields} }} }} }} }}")
    first, second = [edge["node"] for edge in page["edges"]]
    assert first["created_at"] <= first["scheduled_at"] and second["scheduled_at"] is None
    assert first["abusing_reports"] == []
    one = ask(user, f'{{ compute_session(id: "{ended}") {{ full_name {fields} }} }}')
    assert one["scheduled_at"] == first["scheduled_at"] and one["full_name"]
    user.delete("/session/" + waiting)


def test_agents_of_a_group_by_status(admin, user, stranger):
    query = '{ scaling_group(name: "default") { agent_count_by_status lost: agent_count_by_status(' \
            'status: "LOST") agent_total_resource_slots_by_status } }'
    seen = ask(admin, query)
    assert (seen["agent_count_by_status"], seen["lost"]) == (1, 0)
    sums = json.loads(seen["agent_total_resource_slots_by_status"])
    [agent] = ask(admin, "{ agents(status: \"ALIVE\") { available_slots } }")
    assert sums["available_slots"] == json.loads(agent["available_slots"])
    assert set(sums) == {"available_slots", "occupied_slots"}
    reply = admin.gql('{ scaling_group(name: "default") { agent_count_by_status(status: "ODD") } }')
    assert "is no agent status" in reply.json["errors"][0]["message"]
    client, domain, project = stranger
    assert ask(admin, f'mutation {{ associate_scaling_group_with_domain(scaling_group: "default", '
                      f'domain: "{domain}") {{ ok }} }}')["ok"]
    reply = client.gql(f'{{ accessible_scaling_groups(project_id: "{project}") '
                       "{ name agent_count_by_status } }").json
    assert reply["data"]["accessible_scaling_groups"] == [
        {"name": "default", "agent_count_by_status": None}]
    assert "privilege required" in reply["errors"][0]["message"]
