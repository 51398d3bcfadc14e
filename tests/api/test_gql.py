# SPDX-License-Identifier: Apache-2.0
"""The GraphQL queries of Backend.AI's clients: the keys that were asked for, in their order."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from client import ADMIN, USER, Client
from cluster import WAITS, batch, wait_status


def ask(client, query, variables=None):
    reply = client.gql(query, variables)
    assert reply.status == 200, reply
    assert not reply.json.get("errors"), reply.json["errors"]
    return reply.json["data"]


def keys_of(selection):
    """Names at the top level of a selection, e.g. "a b { c } d" -> [a, b, d]."""
    names, depth = [], 0
    for token in re.findall(r"[{}]|\w+", selection):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth == 0 and token not in "{}":
            names.append(token)
    return names


def list_of(client, field, selection, variables=None, types=""):
    query = f"query($limit:Int!, $offset:Int!, {types}) {{ {field}(limit:$limit, offset:$offset, " \
        + " ".join(f"{v}:${v}," for v in re.findall(r"\$(\w+)", types)) \
        + f") {{ items {{ {selection} }} total_count }} }}"
    page = ask(client, query, {"limit": 20, "offset": 0, **(variables or {})})[field]
    assert list(page) == ["items", "total_count"]
    for item in page["items"]:
        assert list(item) == keys_of(selection)
    return page


STATUSES = "PENDING,SCHEDULED,PREPARING,PULLING,RUNNING,RESTARTING,TERMINATING,RESIZING,SUSPENDED,ERROR"


def test_keypair(user, admin):
    data = ask(user, "query {  keypair {    user_id access_key secret_key is_active is_admin  }}")
    assert list(data["keypair"]) == ["user_id", "access_key", "secret_key", "is_active", "is_admin"]
    assert data["keypair"]["access_key"] == USER[0] and data["keypair"]["secret_key"] == USER[1]
    data = ask(admin, "query($k: String) { keypair(access_key: $k) { user_id secret_key } }",
               {"k": USER[0]})
    assert data["keypair"] == {"user_id": "user@lablup.com", "secret_key": None}
    data = ask(user, 'query { keypair(access_key: "AKIAIOSFODNN7EXAMPLE") { user_id } }')
    assert data["keypair"] is None


def test_session_list(user, admin, name):
    session = user.post("/session", batch(name, "true", **WAITS)).json["sessionId"]
    columns = "name session_id group_name id image type status status_info status_changed result " \
        "tag created_at occupied_slots"
    types = "$status: String, $access_key: String, $filter: String, $order: String"
    page = list_of(user, "compute_session_list", columns, {
        "status": STATUSES, "access_key": None, "filter": None, "order": None}, types)
    mine = [i for i in page["items"] if i["name"] == name][0]
    assert mine["session_id"] == mine["id"] == session
    assert (mine["type"], mine["status"], mine["result"]) == ("BATCH", "PENDING", "UNDEFINED")
    assert isinstance(json.loads(mine["occupied_slots"]), dict)
    page = list_of(user, "compute_session_list", "name", {
        "status": None, "access_key": None, "filter": f'name == "{name}"', "order": "-name"}, types)
    assert page == {"items": [{"name": name}], "total_count": 1}
    theirs = {"status": None, "access_key": None, "filter": f'name == "{name}"', "order": None}
    assert list_of(admin, "compute_session_list", "access_key", theirs, types)["items"] == [
        {"access_key": USER[0]}]
    theirs["access_key"] = "AKIAIOSFODNN7EXAMPLE"
    assert list_of(user, "compute_session_list", "name", theirs, types)["total_count"] == 0
    user.delete("/session/" + session)


def test_memory_lists_what_the_store_lists(user, admin, domain_admin, name):
    """Of a request's lists of sessions that live memory finds the first, the store the others."""
    waiting = [user.post("/session", batch(f"{name[:30]}-{i}", "true", **WAITS)).json["sessionId"]
               for i in range(5)]
    shown = ask(user, '{ s: compute_session(id: "%s") { group_id } }' % waiting[0])["s"]
    columns = "total_count items { id name status status_changed occupied_slots containers { id } }"
    for more in ("", f'access_key: "{USER[0]}"', 'domain_name: "default"',
                 f'group_id: "{shown["group_id"]}"', 'domain_name: "nowhere"'):
        for client in (user, domain_admin, admin):
            for limit, offset in ((2, 0), (2, 1), (100, 0), (3, 4), (1, 5000)):
                one = (f'compute_session_list(limit: {limit}, offset: {offset}, '
                       f'status: "PENDING,PREPARING" {more}) {{ {columns} }}')
                both = ask(client, f"{{ memory: {one} store: {one} }}")
                assert both["memory"] == both["store"], one
                if limit == 100 and "nowhere" not in more:
                    assert [i["id"] for i in both["memory"]["items"]][:5] == waiting[::-1]
    for session in waiting:
        user.delete("/session/" + session)


def test_one_session(user, domain_admin, name):
    session = user.post("/session", batch(name, "exit 4")).json["sessionId"]
    wait_status(user, session, "TERMINATED")
    query = """query($id: UUID!) {  compute_session(id: $id) {    name session_id id image tag
        created_at terminated_at status status_info status_data occupied_slots
        containers { id cluster_role cluster_idx cluster_hostname session_id image registry status
        status_info status_data status_changed agent container_id resource_opts occupied_slots
        live_stat last_stat exit_code } dependencies { name id }  }}"""
    shown = ask(user, query, {"id": session})["compute_session"]
    assert list(shown)[:5] == ["name", "session_id", "id", "image", "tag"]
    assert shown["status"] == "TERMINATED" and shown["dependencies"] == []
    kernel, = shown["containers"]
    assert kernel["cluster_hostname"] == "main1" and kernel["exit_code"] == 4
    assert kernel["session_id"] == session and kernel["image"] == "sh"
    assert json.loads(kernel["occupied_slots"]) == {"cpu": "1", "mem": "67108864"}
    assert kernel["container_id"] is None  # this agent runs processes
    alone = ask(user, "query($id: UUID!) { compute_session(id: $id) { status_data } }", {"id": session})
    assert alone["compute_session"]["status_data"] == shown["status_data"]
    assert json.loads(shown["status_data"]) == {
        "kernel": {"exit_code": 4}, "session": {"status": "terminated"}}
    assert ask(domain_admin, query, {"id": session})["compute_session"]["name"] == name
    other = "00000000-0000-4000-8000-000000000000"
    assert ask(user, query, {"id": other})["compute_session"] is None
    one = ask(user, "query($id: UUID!) { compute_container(container_id: $id) { session_id } }",
              {"id": kernel["id"]})
    assert one["compute_container"]["session_id"] == session


def test_dependencies(user, name):
    first = user.post("/session", batch(name[:30] + "-1", "true", **WAITS)).json["sessionId"]
    second = user.post("/session", batch(name[:30] + "-2", "true", dependencies=[first])).json
    data = ask(user, "query($id: UUID!) { compute_session(id: $id) { dependencies { id name } } }",
               {"id": second["sessionId"]})
    assert data["compute_session"]["dependencies"] == [{"id": first, "name": name[:30] + "-1"}]
    for session in (second["sessionId"], first):
        user.delete("/session/" + session)


def test_agents(admin, user):
    columns = "id status architecture scaling_group region first_contact cpu_cur_pct " \
        "mem_cur_bytes available_slots occupied_slots"
    types = "$status: String, $scaling_group: String, $filter: String, $order: String"
    page = list_of(admin, "agent_list", columns, {"status": "ALIVE"}, types)
    assert page["total_count"] == 1
    agent = page["items"][0]
    assert agent["mem_cur_bytes"] is not None and "cpu" in json.loads(agent["available_slots"])
    query = """query($agent_id: String!) { agent(agent_id: $agent_id) {id status region
        architecture first_contact cpu_cur_pct available_slots occupied_slots hardware_metadata
        live_stat local_config gpu_alloc_map compute_containers { id } } }"""
    shown = ask(admin, query, {"agent_id": agent["id"]})["agent"]
    assert set(json.loads(shown["live_stat"])) == {"node", "devices"}
    assert shown["gpu_alloc_map"] == "{}" and isinstance(shown["compute_containers"], list)
    refused = user.gql(query, {"agent_id": agent["id"]}).json
    assert refused["data"]["agent"] is None and "privilege required" in refused["errors"][0]["message"]


def test_accounts(admin, user, domain_admin):
    columns = "user_id user_info { full_name } access_key secret_key is_active is_admin " \
        "created_at last_used resource_policy rate_limit concurrency_used"
    types = "$is_active: Boolean, $domain_name: String, $filter: String, $order: String"
    page = list_of(admin, "keypair_list", columns, {
        "is_active": True, "filter": f'access_key == "{ADMIN[0]}"'}, types)
    assert page["items"] and all("full_name" in k["user_info"] for k in page["items"])
    own = [k for k in page["items"] if k["access_key"] == ADMIN[0]][0]
    assert own["created_at"] <= own["last_used"]
    columns = "uuid username role email full_name need_password_change status status_info " \
        "created_at domain_name groups { id name }"
    types = "$status: String, $group_id: UUID, $filter: String, $order: String"
    [stock] = list_of(admin, "user_list", columns, {
        "status": "active", "filter": 'email == "user@lablup.com"'}, types)["items"]
    assert [g["name"] for g in stock["groups"]] == ["default"]
    shown = ask(user, "query { user { email role groups { name } } }")["user"]
    assert shown == {"email": "user@lablup.com", "role": "user", "groups": [{"name": "default"}]}
    other = ask(user, "query($email: String) { user(email: $email) { email } }",
                {"email": "admin@lablup.com"})
    assert other["user"] is None
    found = ask(domain_admin, "query($id: ID) { user_from_uuid(user_id: $id) { email } }",
                {"id": stock["uuid"]})
    assert found["user_from_uuid"]["email"] == "user@lablup.com"


def test_tenants(admin, user):
    domains = ask(admin, "query { domains {name description is_active created_at "
                         "total_resource_slots allowed_vfolder_hosts allowed_docker_registries "
                         "integration_id} }")["domains"]
    assert "default" in [d["name"] for d in domains]
    assert isinstance(json.loads(domains[0]["total_resource_slots"]), dict)
    assert [d["name"] for d in ask(user, "{ domains { name } }")["domains"]] == ["default"]
    groups = ask(user, "query($domain_name: String) { groups(domain_name: $domain_name) "
                       "{id name is_active created_at integration_id} }")["groups"]
    assert [g["name"] for g in groups] == ["default"]
    one = ask(user, "query($id: UUID!) { group(id: $id) { name } }", {"id": groups[0]["id"]})
    assert one["group"]["name"] == "default"
    groups = ask(admin, "query($is_active: Boolean) { scaling_groups(is_active: $is_active) "
                        "{ name description is_active created_at driver scheduler } }",
                 {"is_active": True})["scaling_groups"]
    assert "default" in [g["name"] for g in groups]
    policy = ask(user, "{ keypair_resource_policy { name total_resource_slots } }")
    assert policy["keypair_resource_policy"]["name"] == "default"
    policies = ask(admin, "{ keypair_resource_policies { name created_at } }")
    for row in [*domains, *groups, *policies["keypair_resource_policies"],
                *ask(admin, "{ groups { name created_at } }")["groups"]]:
        assert re.match(r"\d{4}-\d\d-\d\dT", row["created_at"]), row


def test_images_of_a_cluster_without_any(user):
    data = ask(user, """query($is_operation: Boolean) {  images(is_operation: $is_operation) {
        name registry architecture tag digest size_bytes aliases  }}""", {"is_operation": False})
    assert data == {"images": []}


def test_webui_forms(user):
    """Operation names, fragments, aliases, directives."""
    query = """query Named($yes: Boolean!, $email: String) {
        me: user(email: $email) { ...F id @skip(if: $yes) __typename }
        groups(is_active: true, type: ["GENERAL"]) { name @include(if: $yes) }
      } fragment F on User { email full_name }"""
    reply = user.post("/admin/gql", {"query": query, "operationName": "Named",
                                     "variables": {"yes": True, "email": "user@lablup.com"}}).json
    assert list(reply["data"]["me"]) == ["email", "full_name", "__typename"]
    assert reply["data"]["groups"] == [{"name": "default"}]


@pytest.mark.parametrize("query, variables, part", [
    ("{ nothing }", {}, 'Cannot query field "nothing" on type "Queries".'),
    ("{ keypair { nothing } }", {}, 'Cannot query field "nothing" on type "KeyPair".'),
    ("{", {}, "Syntax Error"),
    ("query($id: UUID!) { compute_session(id: $id) { id } }", {}, "$id"),
    ("query($id: UUID!) { compute_session(id: $id) { id } }", {"id": "odd"}, "UUID"),
    ("{ compute_session_list(limit: 1001, offset: 0) { total_count } }", {}, "limit"),
    ("{ compute_session_list(limit: 0, offset: 0) { total_count } }", {}, "limit"),
    ("{ compute_session_list(limit: 1, offset: -1) { total_count } }", {}, "offset"),
    ('{ compute_session_list(limit: 1, offset: 0, filter: "name ==") { total_count } }', {},
     "Query filter parsing error"),
    ('{ compute_session_list(limit: 1, offset: 0, status: "ODD") { total_count } }', {}, "status"),
    ('{ image(reference: "python:3.9", architecture: "x86_64") { name } }', {},
     "No such environment image."),
    ('{ image(reference: "Bad Name") { name } }', {}, "reference: "),
    ("{ user_list(limit: 1, offset: 0) { total_count } }", {}, "privilege required"),
])
def test_errors(user, query, variables, part):
    reply = user.gql(query, variables)
    assert reply.status == 200
    assert any(part in e["message"] for e in reply.json["errors"]), reply.json


def test_legacy(user):
    reply = user.gql("{ keypair { access_key } }", path="/admin/graphql")
    assert reply.json == {"keypair": {"access_key": USER[0]}}
    reply = user.gql("{ nothing }", path="/admin/graphql")
    assert (reply.status, reply.slug) == (400, "graphql-error")
    assert reply.json["data"][0]["message"]


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b'{"query": 5}', b'{"variables": {}}', b'{"query": "{a}", "variables": []}',
    b'{"query": "{a}", "variables": ' + b"[" * 10000 + b"]" * 10000 + b"}"])
def test_bad_requests(user, body):
    reply = user.post("/admin/gql", body or None)
    assert (reply.status, reply.slug) == (400, "invalid-api-params") or \
        (reply.status, reply.slug) == (400, "generic-bad-request"), reply


def test_deep_and_wide_queries(user):
    deep = "{ user { groups " + "{ id " * 500 + "}" * 500 + "} }"
    wide = "{ " + " ".join(f"a{i}: keypair {{ access_key }}" for i in range(15000)) + " }"
    for query in (deep, wide):
        assert user.gql(query).json["errors"]


def test_a_query_over_its_memory(user, admin):
    def query(times):
        part = "__schema { types { fields(includeDeprecated: true) { args { name } } } }"
        return "{" + " ".join(f"a{i}: {part}" for i in range(times)) + "}"

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(user.gql, query(900))
        while not running.done():
            assert ask(admin, "{ keypair { access_key } }")
        refused = running.result()
    assert (refused.status, refused.slug) == (400, "invalid-api-params"), refused
    assert "needs more than 32 MiB" in refused.json["data"]["query"], refused
    assert len(ask(user, query(20))) == 20


def test_old_clients_see_old_states(user, name):
    session = user.post("/session", batch(name, "sleep 60", enqueueOnly=False)).json["sessionId"]
    for version in ("v6.20220315", "v9.20250722"):
        client = Client(user.address, USER, version)
        data = ask(client, "query($id: UUID!) { compute_session(id: $id) { status } }",
                   {"id": session})
        assert data["compute_session"]["status"] == "RUNNING"
    user.delete("/session/" + session)


def test_images_of_kernels_with_large_roles(user, name):
    """The roles of a session are read once for its kernels, and their variables are left out."""
    def role(letter):
        return {"role": f"r{letter}", "count": 7, "image": "process",
                "environ": {f"A{i}": "" for i in range(2000)}}

    made = user.post("/session", batch(name, "true", waitForCapacity=True,
                                       roles=[role(letter) for letter in "abcdefgh"]))
    assert made.status == 201, made
    data = ask(user, "query($id: UUID!) { compute_session(id: $id) { containers { image } } }",
               {"id": made.json["sessionId"]})
    images = [kernel["image"] for kernel in data["compute_session"]["containers"]]
    assert images == ["sh"] + 56 * ["process"]
    assert user.delete("/session/" + made.json["sessionId"]).status == 200
