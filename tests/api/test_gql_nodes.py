# SPDX-License-Identifier: Apache-2.0
"""Nodes and connections of Relay: the rows of the other lists, page by page."""

import base64
import json

import pytest

from cluster import WAITS, batch, wait_status

NODES = {  # root, and the older list of the same rows
    "agent": ("AgentNode", "agents", "id"),
    "domain": ("DomainNode", "domains", "name"),
    "group": ("GroupNode", "groups", "id"),
    "user": ("UserNode", "users", "id"),
    "compute_session": ("ComputeSessionNode", None, "session_id"),
}


def encode(kind, name):
    return base64.b64encode(f"{kind}:{name}".encode()).decode()


def decode(text):
    return base64.b64decode(text).decode().split(":", 1)


def ask(client, query, variables=None):
    reply = client.gql(query, variables)
    assert reply.status == 200 and not reply.json.get("errors"), reply
    return reply.json["data"]


def refuse(client, query, words):
    [error] = client.gql(query).json["errors"]
    assert words in error["message"], error


def nodes_of(client, field, words="", selection="id"):
    """The connection of a root field, and its nodes."""
    args = f"({words})" if words else ""
    found = ask(client, f"{{ {field}{args} {{ pageInfo {{ hasNextPage hasPreviousPage startCursor "
                        f"endCursor }} count edges {{ cursor node {{ {selection} }} }} }} }}")[field]
    return found, [edge["node"] for edge in found["edges"]]


@pytest.fixture
def waiting(user, name):
    """Sessions that wait, in the order of their creation."""
    made = [user.post("/session", batch(f"{name[:30]}-{i}", "true", **WAITS)).json["sessionId"]
            for i in range(5)]
    yield name[:30], made
    for session in reversed(made):
        user.delete("/session/" + session)


# ---- which rows ----

@pytest.mark.parametrize("kind", [kind for kind in NODES if NODES[kind][1]])
def test_nodes_are_the_rows_of_the_other_lists(admin, domain_admin, user, kind):
    of_type, older, key = NODES[kind]
    for client in (admin, domain_admin, user):
        reply = client.gql(f"{{ {older} {{ {key} }} }}").json
        newer = client.gql(f"{{ {kind}_nodes {{ count edges {{ node {{ id }} }} }} }}").json
        assert bool(reply.get("errors")) == bool(newer.get("errors")), (reply, newer)
        if reply.get("errors"):
            assert reply["errors"][0]["message"] == newer["errors"][0]["message"]
            continue
        rows = [row[key] for row in reply["data"][older]]
        found = newer["data"][f"{kind}_nodes"]
        assert sorted(decode(edge["node"]["id"]) for edge in found["edges"]) == sorted(
            [of_type, row] for row in rows)
        assert found["count"] == len(rows) > 0


def test_sessions_are_shown_to_whom_they_belong(user, admin, domain_admin, waiting):
    prefix, made = waiting
    for client in (user, domain_admin, admin):
        found, nodes = nodes_of(client, "compute_session_nodes",
                                f'filter: "name like \\"{prefix}%\\"", order: "name"',
                                "row_id name status type user_id project_id")
        assert [node["row_id"] for node in nodes] == made and found["count"] == 5
        assert {(node["status"], node["type"]) for node in nodes} == {("PENDING", "batch")}
    _, nodes = nodes_of(domain_admin, "compute_session_nodes", 'filter: "user_email == '
                        '\\"admin@lablup.com\\""', "user_id")
    _, own = nodes_of(user, "compute_session_nodes", 'filter: "user_email != '
                      '\\"user@lablup.com\\""', "user_id")
    assert own == []


@pytest.mark.parametrize("kind", [*NODES])
def test_a_node_has_a_global_id_and_many_names(admin, user, waiting, kind):
    of_type, _, _ = NODES[kind]
    words = f'filter: "name like \\"{waiting[0]}%\\""' if kind == "compute_session" else ""
    _, nodes = nodes_of(admin, kind + "_nodes", words)
    made, raw = decode(nodes[0]["id"])
    assert made == of_type
    for text in (nodes[0]["id"], encode(kind + "_node", raw), raw, encode("Any", raw)):
        assert ask(admin, f'{{ {kind}_node(id: "{text}") {{ id }} }}')[f"{kind}_node"] == nodes[0]
    seen = ask(admin, f'{{ node(id: "{nodes[0]["id"]}") {{ id __typename }} }}')["node"]
    assert seen == {"id": nodes[0]["id"], "__typename": of_type}
    refuse(admin, f'{{ node(id: "{raw}") {{ id }} }}', "is no global id")


def test_a_node_of_somebody_else_is_null(user, admin, domain_admin):
    [other] = ask(admin, '{ user_nodes(filter: "email == \\"admin@lablup.com\\"") '
                         "{ edges { node { id row_id } } } }")["user_nodes"]["edges"]
    for query in (f'{{ user_node(id: "{other["node"]["id"]}") {{ id }} }}',
                  f'{{ user_node(id: "{other["node"]["row_id"]}") {{ id }} }}',
                  f'{{ node(id: "{other["node"]["id"]}") {{ id }} }}',
                  '{ domain_node(id: "elsewhere") { id } }'):
        assert set(ask(user, query).values()) == {None}
    refuse(user, '{ agent_node(id: "none") { id } }', "privilege required")
    refuse(user, '{ user_node(id: "none") { id } }', "is not a UUID")


# ---- pages ----

def test_pages_forwards_and_backwards(user, waiting):
    prefix, made = waiting
    words = f'filter: "name like \\"{prefix}%\\"", order: "-name"'
    want, seen, after = made[::-1], [], ""
    while True:
        found, nodes = nodes_of(user, "compute_session_nodes", f"first: 2, {after} {words}", "row_id")
        seen += [node["row_id"] for node in nodes]
        assert found["pageInfo"]["hasPreviousPage"] is bool(after) and found["count"] == 5
        assert found["pageInfo"]["endCursor"] == found["edges"][-1]["cursor"]
        if not found["pageInfo"]["hasNextPage"]:
            break
        after = f'after: "{found["pageInfo"]["endCursor"]}",'
    assert seen == want
    seen, before = [], ""
    while True:
        found, nodes = nodes_of(user, "compute_session_nodes", f"last: 2, {before} {words}", "row_id")
        seen = [node["row_id"] for node in nodes] + seen
        assert found["pageInfo"]["hasNextPage"] is bool(before)
        if not found["pageInfo"]["hasPreviousPage"]:
            break
        before = f'before: "{found["pageInfo"]["startCursor"]}",'
    assert seen == want


def test_a_cursor_keeps_its_place_when_rows_come_before_it(user, waiting):
    prefix, made = waiting
    words = f'filter: "name like \\"{prefix}%\\"", order: "-created_at"'
    found, _ = nodes_of(user, "compute_session_nodes", f"first: 2, {words}")
    later = user.post("/session", batch(prefix + "-z", "true", **WAITS)).json["sessionId"]
    made.append(later)
    _, nodes = nodes_of(user, "compute_session_nodes",
                        f'first: 2, after: "{found["pageInfo"]["endCursor"]}", {words}', "row_id")
    assert [node["row_id"] for node in nodes] == [made[2], made[1]]
    _, nodes = nodes_of(user, "compute_session_nodes", f"first: 2, offset: 2, {words}", "row_id")
    assert [node["row_id"] for node in nodes] == [made[3], made[2]], "an offset does not"


def test_the_count_alone_and_an_offset(user, waiting):
    words = f'filter: "name like \\"{waiting[0]}%\\"", order: "name"'
    found, nodes = nodes_of(user, "compute_session_nodes", f"first: 0, offset: 0, {words}")
    assert (found["count"], nodes) == (5, []) and found["pageInfo"]["hasNextPage"] is True
    found, nodes = nodes_of(user, "compute_session_nodes", f"first: 3, offset: 4, {words}", "row_id")
    assert [node["row_id"] for node in nodes] == waiting[1][4:]
    variables = {"limit": 2, "after": None, "offset": 1, "before": None}
    data = ask(user, """query($limit:Int, $after:String, $offset:Int, $before:String) {
        group_nodes(first:$limit, offset:$offset, after:$after, before:$before) {
        edges { node { name } cursor } count } }""", variables)  # as the newest SDK asks
    assert data["group_nodes"] == {"edges": [], "count": 1}


@pytest.mark.parametrize("words, error", (
    ("first: 101", "first must not be above 100"), ("last: 101", "last must not be above 100"),
    ("first: -1", "negative"), ("first: 1, last: 1", "together"),
    ('first: 1, before: "x"', "before goes with last"), ('last: 1, after: "x"', "after goes with"),
    ('after: "nobody"', "is not in the list"), ("offset: -1", "negative"),
    ('filter: "name =="', "Query filter parsing error"), ('order: "odd"', "order"),
))
def test_what_is_no_page_is_refused(user, words, error):
    refuse(user, f"{{ compute_session_nodes({words}) {{ count }} }}", error)
    if "filter" not in words and "order" not in words:
        refuse(user, f"{{ image_nodes({words}) {{ count }} }}", error)


def test_a_cursor_of_somebody_else_says_nothing(user, admin, waiting):
    mine = waiting[1][0]
    stranger = admin.post("/session", batch("nodes-stranger", "true", **WAITS)).json["sessionId"]
    refuse(user, f'{{ compute_session_nodes(after: "{stranger}") {{ count }} }}',
           "is not in the list")
    found, _ = nodes_of(user, "compute_session_nodes", f'after: "{mine}", first: 1')
    assert found["count"] >= 5
    admin.delete("/session/" + stranger)


# ---- scopes ----

def test_scopes_narrow(user, admin, domain_admin, waiting):
    prefix, made = waiting
    shown = ask(admin, f'{{ compute_session_node(id: "{made[0]}") {{ project_id user_id }} }}')
    project, owner = shown["compute_session_node"].values()
    none = "00000000-0000-4000-8000-000000000000"
    words = f'filter: "name like \\"{prefix}%\\""'
    for scope, count in (("system", 5), ("domain:default", 5), ("domain:nowhere", 0),
                         (f"project:{project}", 5), (f"project:{none}", 0), (f"user:{owner}", 5),
                         (f"user:{none}", 0)):
        for client in (user, domain_admin, admin):
            found, _ = nodes_of(client, "compute_session_nodes", f'scope_id: "{scope}", {words}')
            assert found["count"] == count, scope
    found, _ = nodes_of(user, "compute_session_nodes", f'project_id: "{project}", {words}')
    assert found["count"] == 5
    found, _ = nodes_of(user, "group_nodes", f'scope: "user:{owner}"')
    assert found["count"] == 1
    found, _ = nodes_of(user, "group_nodes", f'scope: "user:{none}"')
    assert found["count"] == 0
    refuse(user, '{ compute_session_nodes(scope_id: "planet:mars") { count } }', "scope: 'planet")
    refuse(user, '{ compute_session_nodes(scope_id: "user:me") { count } }', "is not a UUID")
    refuse(admin, '{ agent_nodes(scope: "domain:default") { count } }', "is not system")
    assert user.gql("{ compute_session_nodes(scope_id: 5) { count } }").json["errors"]


# ---- what hangs on a session ----

def test_a_session_of_the_web_ui(user, name):
    """The selection of its list and of its drawer."""
    first = user.post("/session", batch(name[:30] + "-1", "true", **WAITS)).json["sessionId"]
    second = user.post("/session", batch(name[:30] + "-2", "true", dependencies=[first])).json
    query = """query($scope: ScopeField, $first: Int = 20, $filter: String) {
      computeSessionNodeResult: compute_session_nodes(scope_id: $scope, first: $first,
          filter: $filter, order: "name") {
        edges { node { id name row_id type status status_info status_data access_key service_ports
          commit_status user_id project_id agent_ids cluster_mode cluster_size vfolder_mounts
          created_at terminated_at starts_at scaling_group requested_slots occupied_slots tag
          startup_command resource_opts priority idle_checks
          kernel_nodes { edges { node { id row_id image { base_image_name version architecture name
            tags { key value } labels { key value } registry namespace tag id } cluster_hostname
            cluster_idx cluster_role status status_info agent_id container_id } } }
          dependees { edges { node { id row_id name status } } count }
          dependents { edges { node { id row_id name status } } count } } }
        count }
      all: compute_session_nodes(first: 0, offset: 0, filter: "type == \\"interactive\\"") { count } }"""
    data = ask(user, query, {"scope": "system", "filter": f'name like "{name[:30]}%"'})
    one, two = [edge["node"] for edge in data["computeSessionNodeResult"]["edges"]]
    assert [node["row_id"] for node in (one, two)] == [first, second["sessionId"]]
    assert one["dependees"] == {"edges": [], "count": 0}
    assert two["dependents"] == {"edges": [], "count": 0}
    assert one["dependents"] == {"count": 1, "edges": [{"node": {
        key: two[key] for key in ("id", "row_id", "name", "status")}}]}
    assert two["dependees"]["edges"] == [{"node": {
        key: one[key] for key in ("id", "row_id", "name", "status")}}]
    [kernel] = [edge["node"] for edge in one["kernel_nodes"]["edges"]]
    assert decode(kernel["id"]) == ["KernelNode", kernel["row_id"]]
    assert kernel["cluster_hostname"] == "main1" and kernel["image"] is None
    seen = ask(user, f'{{ node(id: "{kernel["id"]}") {{ ... on KernelNode {{ row_id status }} }} }}')
    assert seen["node"] == {"row_id": kernel["row_id"], "status": "PENDING"}
    for session in (second["sessionId"], first):
        user.delete("/session/" + session)


@pytest.mark.parametrize("more, shown", [
    ({}, [1, 1, None, None, None]),
    ({"cluster_size": 3}, [3, 3, "end", None, None]),
    ({"cluster_size": 4, "cluster_size_min": 2}, [4, 2, "continue", "restart-kernel", None]),
    ({"on_failure": "continue", "on_node_loss": "end",
      "roles": [{"role": "ps", "image": "sh", "resources": {"cpu": "2", "mem": "64m"}},
                {"role": "worker", "count": 2, "image": "sh", "resources": {"cpu": "1", "mem": "32m"},
                 "startupCommand": "sleep 9", "environ": {"SECRET": "x"}}]},
     [4, 4, "continue", "end",
      [{"role": "ps", "count": 1, "image": "sh", "resources": {"cpu": "2", "mem": "67108864"}},
       {"role": "worker", "count": 2, "image": "sh", "resources": {"cpu": "1", "mem": "33554432"}}]])])
def test_a_session_of_several_kernels(user, name, more, shown):
    """The same in its row, and in both of its types."""
    session = user.post("/session", batch(name, "true", **WAITS, **more)).json["sessionId"]
    members = ("cluster_size", "cluster_size_min", "on_failure", "on_node_loss", "roles")
    row = user.get("/aliquot/v1/sessions/" + session).json
    assert [row[member] for member in members] == shown
    listed = user.get(f"/aliquot/v1/sessions?status=PENDING&fields=name,{','.join(members)}").json
    assert [[one[member] for member in members] for one in listed["items"]
            if one["name"] == name] == [shown]
    for root in (f'compute_session(id: "{session}")',
                 f'compute_session_node(id: "{encode("compute_session_node", session)}")'):
        seen, = ask(user, f"{{ {root} {{ {' '.join(members)} }} }}").values()
        seen["roles"] = seen["roles"] and json.loads(seen["roles"])
        assert [seen[member] for member in members] == shown
    user.delete("/session/" + session)


def test_a_session_in_the_words_of_the_newest_sdk(user, name):
    session = user.post("/session", batch(name, "exit 4")).json["sessionId"]
    wait_status(user, session, "TERMINATED")
    data = ask(user, """query($id: GlobalIDField!) { compute_session_node(id: $id) { id tag name type
        priority cluster_mode domain_name user_id status created_at terminated_at resource_opts
        scaling_group vfolder_mounts image_references kernel_nodes { edges { node { row_id
        image_reference status created_at agent_id } } } } }""",
               {"id": encode("compute_session_node", session)})["compute_session_node"]
    assert (data["name"], data["status"], data["type"]) == (name, "TERMINATED", "batch")
    assert data["image_references"] == ["sh"] and data["vfolder_mounts"] == []
    [edge] = data["kernel_nodes"]["edges"]
    assert edge["node"]["image_reference"] == "sh" and edge["node"]["agent_id"]


def test_the_policies_of_users_and_projects(user):
    groups = ask(user, "{ groups { resource_policy } user { resource_policy } }")
    assert groups == {"groups": [{"resource_policy": "default"}],
                      "user": {"resource_policy": "default"}}
