# SPDX-License-Identifier: Apache-2.0
"""What nodes say that a caller may do is what it may do, and what hangs on them is not of others."""

import base64
import json
import pathlib

import pytest

from client import Client
from cluster import WAITS, Cluster, batch, wait_status
from two_domains import OTHER, V1, TwoDomains, make_user

pytestmark = pytest.mark.gate

HERE = pathlib.Path(__file__).parent
# Which request does what a permission is of: method, path, and what a refusal of the role is.
REQUESTS = {
    "AgentNode": {"update_attribute": ("PATCH", V1 + "/agents/none"),
                  "create_compute_session": ("POST", "/session")},
    "DomainNode": {"read_sensitive_attribute": ("GET", "/domain-config/dotfiles"),
                   "update_attribute": ("PATCH", V1 + "/domains/none"),
                   "create_user": ("POST", V1 + "/users"),
                   "create_project": ("POST", V1 + "/groups")},
    "GroupNode": {"read_sensitive_attribute": ("GET", "/group-config/dotfiles"),
                  "update_attribute": ("PATCH", V1 + "/groups/none"),
                  "delete_project": ("DELETE", V1 + "/groups/none"),
                  "associate_with_user": ("POST", V1 + "/groups/none/add-users")},
}
ROOTS = {"AgentNode": "agent_nodes", "DomainNode": "domain_nodes", "GroupNode": "group_nodes",
         "ComputeSessionNode": "compute_session_nodes"}
NONE = "00000000-0000-4000-8000-000000000000"


class People:
    """Each role and its client, and a session of each of the development domain and of another."""

    def __init__(self, cluster):
        self.there = there = TwoDomains(cluster)
        self.admin = there.admin
        self.monitor = make_user(there.admin, "monitor@lablup.com", "default", "monitor")
        self.clients = {"user": there.user, "monitor": self.monitor, "admin": there.boss,
                        "superadmin": there.admin}
        self.sessions = {}
        for word, client, domain in (("user", there.user, "default"), ("admin", there.boss, "default"),
                                     ("superadmin", there.admin, "default"),
                                     ("other", there.stranger, OTHER)):
            made = client.post("/session", batch("kept-" + word, "true", domain=domain, **WAITS))
            assert made.status == 201, made
            self.sessions[word] = (made.json["sessionId"], client.keypair[0])


@pytest.fixture(scope="module")
def people():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield People(cluster)
        cluster.stop()


def nodes(client, root, selection, words=""):
    """The nodes, and the errors' texts."""
    args = f"({words})" if words else ""
    reply = client.gql(f"{{ {root}{args} {{ edges {{ node {{ {selection} }} }} }} }}").json
    found = (reply.get("data") or {}).get(root) or {"edges": []}
    return ([edge["node"] for edge in found["edges"]],
            [error["message"] for error in reply.get("errors", [])])


def test_permissions_are_those_that_were_reviewed(people):
    lines = []
    for role, client in people.clients.items():
        for kind, root in ROOTS.items():
            found, _ = nodes(client, root, "id permissions")
            said = {" ".join(node["permissions"]) for node in found}
            lines += [f"{role:<10} {kind:<18} {words}" for words in sorted(said)] or [
                f"{role:<10} {kind:<18} -"]
    reviewed = (HERE / "permissions.txt").read_text().splitlines()
    assert lines == [line for line in reviewed if not line.startswith("#")], "\n" + "\n".join(lines)


def test_what_a_role_is_said_to_do_its_requests_may(people):
    """An empty request: refused for its role, or for what is missing in it."""
    for role, client in people.clients.items():
        for kind, requests in REQUESTS.items():
            found, _ = nodes(client, ROOTS[kind], "id permissions")
            for node in found:
                for name, (method, path) in requests.items():
                    reply = client.send(method, path)
                    may = reply.status != 401
                    assert (name in node["permissions"]) == may, (role, kind, name, reply)


def test_what_is_said_of_a_session_may_be_done_with_it(people):
    for role, client in people.clients.items():
        found, _ = nodes(client, "compute_session_nodes", "row_id permissions")
        said = {node["row_id"]: node["permissions"] for node in found}
        for word, (session, owner) in people.sessions.items():
            whose = {"owner_access_key": owner} if owner != client.keypair[0] else {}
            runs = client.post(f"/session/{session}", {"mode": "query", "code": "", "runId": "1", **whose})
            starts = client.post(f"/session/{session}/start-service", {"app": "sshd", **whose})
            changed = client.gql("mutation($i: ModifyComputeSessionInput!) { modify_compute_session("
                                 "input: $i) { item { name } } }",
                                 {"i": {"id": session, "name": "kept-" + word}}).json
            may = said.get(session, [])
            for name, reply in (("execute", runs), ("start_app", starts)):
                refused = reply.slug in ("generic-forbidden", "object-not-found", "invalid-api-params")
                assert (name in may) == (not refused), (role, word, name, reply)
            assert ("update_attribute" in may) == (not changed.get("errors")), (role, word, changed)
            assert ("delete_session" in may) == ("execute" in may)
            assert ("read_attribute" in may) == (session in said)


def test_the_argument_narrows_to_what_a_role_may(people):
    for role, client in people.clients.items():
        for kind, root in ROOTS.items():
            every, errors = nodes(client, root, "id permissions")
            for name in ("read_attribute", "update_attribute"):
                found, same = nodes(client, root, "id permissions", f'permission: "{name}"')
                assert same == errors
                assert [node["id"] for node in found] == [
                    node["id"] for node in every if name in node["permissions"]], (role, kind, name)
            _, errors = nodes(client, root, "id", 'permission: "fly"')
            assert any("is no permission of these" in text or "privilege" in text for text in errors)
    mine = people.sessions["user"][0]
    for name, found in (("delete_session", {"row_id": mine}), ("convert_to_image", None)):
        reply = people.there.user.gql(f'{{ compute_session_node(id: "{mine}", permission: "{name}") '
                                      "{ row_id } }")
        assert reply.json["data"]["compute_session_node"] == found


def test_an_agent_of_a_group_that_is_not_allowed_takes_no_sessions(people):
    admin = people.admin
    refused = admin.post(V1 + "/resource-groups/default/disallow", {"domain": "default"})
    assert refused.status == 204, refused
    said = [nodes(client, "agent_nodes", "permissions")[0] for client in (admin, people.there.boss,
                                                                           people.there.strange_boss)]
    assert admin.post(V1 + "/resource-groups/default/allow", {"domain": "default"}).status == 204
    assert ["create_compute_session" in found[0]["permissions"] for found in said] == [
        False, False, True]


# ---- what hangs on nodes ----

PEOPLE = "name user_nodes(order: \"email\") { count edges { node { email } } }"
GROUPS = "name scaling_groups { count edges { node { id name } } }"
KERNELS = "id kernel_nodes { count edges { node { row_id session_id image_reference created_at } } }"


def test_users_see_no_others_by_their_projects(people):
    user = people.there.user
    found, errors = nodes(user, "group_nodes", PEOPLE)
    assert [node["user_nodes"] for node in found] == [None] and "privilege" in errors[0]
    found, errors = nodes(user, "domain_nodes", GROUPS)
    assert [node["scaling_groups"] for node in found] == [None] and "privilege" in errors[0]
    shown = user.gql("{ viewer { user { email project_nodes { count edges { node { name domain_name } } "
                     "} } } }").json["data"]["viewer"]["user"]["project_nodes"]
    assert shown == {"count": 1, "edges": [{"node": {"name": "default", "domain_name": "default"}}]}


def test_administrators_of_a_domain_see_what_is_of_it(people):
    boss, strange, admin = people.there.boss, people.there.strange_boss, people.admin
    for client, domain, foreign in ((boss, "default", "stranger@"), (strange, OTHER, "user@lablup")):
        [project], errors = nodes(client, "group_nodes", PEOPLE)
        assert not errors and project["user_nodes"]["count"] == len(project["user_nodes"]["edges"]) > 0
        assert foreign not in json.dumps(project)
        [shown], errors = nodes(client, "domain_nodes", GROUPS)
        assert not errors and shown["name"] == domain
        assert [edge["node"]["name"] for edge in shown["scaling_groups"]["edges"]] == ["default"]
        found, errors = nodes(client, "user_nodes", "email project_nodes { edges { node { domain_name } } }")
        assert not errors and {edge["node"]["domain_name"] for node in found
                               for edge in node["project_nodes"]["edges"]} == {domain}
    found, errors = nodes(admin, "group_nodes", PEOPLE)
    assert not errors and {json.dumps(node["user_nodes"]) for node in found} >= {
        json.dumps({"count": 2, "edges": [{"node": {"email": "strange-boss@lablup.com"}},
                                          {"node": {"email": "stranger@lablup.com"}}]})}


def test_pages_filters_and_names_of_what_hangs_on_a_node(people):
    admin = people.admin
    words = 'filter: "name == \\"default\\" & domain_name == \\"other\\""'
    page = 'user_nodes(first: 1, order: "-email"%s) { count edges { node { email } cursor } pageInfo { hasNextPage } }'
    [one], _ = nodes(admin, "group_nodes", page % "", words)
    assert [edge["node"]["email"] for edge in one["user_nodes"]["edges"]] == ["stranger@lablup.com"]
    assert one["user_nodes"]["count"] == 2 and one["user_nodes"]["pageInfo"]["hasNextPage"]
    after = f', after: "{one["user_nodes"]["edges"][0]["cursor"]}"'
    [one], _ = nodes(admin, "group_nodes", page % after, words)
    assert [edge["node"]["email"] for edge in one["user_nodes"]["edges"]] == ["strange-boss@lablup.com"]
    [one], _ = nodes(admin, "group_nodes",
                     'user_nodes(filter: "role == \\"admin\\"") { edges { node { email } } }', words)
    assert one["user_nodes"]["edges"] == [{"node": {"email": "strange-boss@lablup.com"}}]
    for wrong in ("first: 101", 'filter: "odd == 1"', 'order: "odd"', 'after: "nobody"'):
        _, errors = nodes(admin, "group_nodes", f"user_nodes({wrong}) {{ count }}", words)
        assert errors, wrong
    group = base64.b64encode(b"ScalingGroupNode:default").decode()
    query = f'{{ node(id: "{group}") {{ id ... on ScalingGroupNode {{ name is_active }} }} }}'
    assert admin.gql(query).json["data"]["node"] == {"id": group, "name": "default", "is_active": True}
    assert people.there.user.gql(query).json["errors"]


def test_kernels_on_an_agent_are_of_the_callers_domain(people):
    made = people.there.stranger.post("/session", batch(
        "runs-other", "sleep 600", domain=OTHER, config={"resources": {"cpu": "1", "mem": "64m"}}))
    assert made.status == 201, made
    wait_status(people.there.stranger, made.json["sessionId"], "RUNNING")
    for client, count in ((people.there.boss, 0), (people.there.strange_boss, 1), (people.admin, 1)):
        [agent], errors = nodes(client, "agent_nodes", KERNELS)
        assert not errors and agent["kernel_nodes"]["count"] == count
        for edge in agent["kernel_nodes"]["edges"]:
            assert edge["node"]["session_id"] == made.json["sessionId"]
            assert edge["node"]["image_reference"] == "sh" and edge["node"]["created_at"]
    assert nodes(people.there.user, "agent_nodes", KERNELS)[1]
    people.there.stranger.delete("/session/" + made.json["sessionId"])
