# SPDX-License-Identifier: Apache-2.0
"""Who may call what: the program's own tables against the reviewed ones of this folder.

A new route or field changes a line of a reviewed file, which somebody reads.
"""

import base64
import contextlib
import json
import pathlib
import re
import uuid

import pytest

from client import Client
from cluster import WAITS, Cluster, batch, wait_for
from link_storage import LinkStorage
from link_storage import LinkStorage
from two_domains import OTHER, V1, TwoDomains, make_user

pytestmark = pytest.mark.gate

HERE = pathlib.Path(__file__).parent


def test_every_route_asks_for_the_role_that_was_reviewed():
    with Cluster() as cluster:
        cluster.start_manager()
        routes = cluster.client(None).get("/aliquot/v1/routes").json["routes"]
        cluster.stop()
    there = [f"{route['access']:<10} {route['method']:<6} {route['path']}" for route in routes]
    reviewed = (HERE / "routes.txt").read_text().splitlines()
    assert there == [line for line in reviewed if not line.startswith("#")]


# ---- GraphQL: the objects of whom a caller sees by each root field ----

def read_schema():
    """{type: {field: (arguments, type of the value)}} of the schema's object types."""
    text = (HERE.parents[1] / "src/manager/call/graphql/schema.graphql").read_text()
    types = {}
    for name, body in re.findall(r"^type (\w+)[\w ]* \{(.*?)\}", text, re.S | re.M):
        body = re.sub(r'"(\\.|[^"\\])*"', "", body)
        types[name] = {field: (args or "", kind) for field, args, kind in
                       re.findall(r"(\w+)(?:\(([^)]*)\))?\s*:\s*([\[\]\w!]+)", body)}
    return types


def selection(types, kind, depth=3):
    """All that can be read of this type, objects in it included."""
    parts = []
    for name, (_, value) in types[kind].items():
        inner = value.strip("[]!")
        if inner not in types:
            parts.append(name)
        elif depth > 1:
            parts.append(f"{name} {{ {selection(types, inner, depth - 1)} }}")
    return " ".join(parts) or "__typename"


def callers(there, colleague):
    """Who is whom in the tables: each role and its client."""
    monitor = make_user(there.admin, "monitor@lablup.com", "default", "monitor")
    return (("anonymous", Client(there.admin.address, None)), ("user", there.user),
            ("member", colleague), ("monitor", monitor), ("admin", there.boss),
            ("superadmin", there.admin))


def make_colleague(there):
    """Another user of the project of the user."""
    client = make_user(there.admin, "colleague@lablup.com", "default")
    [project] = [one["id"] for one in there.admin.get(V1 + "/groups?limit=1000").json["items"]
                 if (one["name"], one["domain"]) == ("default", "default")]
    added = there.admin.post(f"{V1}/groups/{project}/add-users", {"users": ["colleague@lablup.com"]})
    assert added.status == 204, added
    return client


def ask(types, client, field, about):
    """The data of a root field, asked for the objects of somebody, and its text."""
    args, kind = types["Queries"][field]
    given, inner = [], kind.strip("[]!")
    of_id = {"group": "project", "group_node": "project", "user_node": "user_id",
             "domain_node": "domain_name", "node": "global_id", "vfolder_node": "folder"}
    for name, value in re.findall(r"(\w+): (\[?\w+\]?!?)", args):
        known = {"limit": 100, "offset": 0, **about, "session_id": about["session"],
                 "project_id": about["project"], "vfolderId": about["folder_id"],
                 "id": about[of_id.get(field, "session")]}.get(name)
        if name == "name" and field not in ("domain", "groups_by_name"):
            known = "default"
        if known is not None and (value.endswith("!") or not field.endswith(("s", "_list"))):
            given.append(f"{name}: {json.dumps(known)}")
    words = f"({', '.join(given)})" if given else ""
    shown = "... on ComputeSessionNode { row_id }" if inner == "Node" else selection(
        types, inner, 4 if "V2" in field else 3)
    query = f"{{ {field}{words} {{ {shown} }} }}"
    reply = client.gql(query)
    assert client.keypair or reply.status == 401, reply
    return json.dumps((reply.json.get("data") or {}).get(field))


def node_id(kind, one):
    return base64.b64encode(f"{kind}:{one}".encode()).decode()


def marks_of(admin, client, domain, session):
    """What tells somebody's objects: ids, e-mail, keys."""
    [key] = [row for row in admin.get(V1 + "/keypairs?limit=1000").json["items"]
             if row["access_key"] == client.keypair[0]]
    shown = admin.get(f"{V1}/sessions?all=true&filter=id==\"{session}\"").json["items"][0]
    project = shown.get("project_id") or shown.get("group_id")
    kernel = admin.gql(f'{{ compute_session(id: "{session}") {{ main_kernel_id user_id group_id }} }}')
    ids = kernel.json["data"]["compute_session"]
    return {"global_id": node_id("ComputeSessionNode", session), "access_key": client.keypair[0], "secret": client.keypair[1], "email": key["user"],
            "session": session, "container_id": ids["main_kernel_id"], "user_id": ids["user_id"],
            "project": ids["group_id"] or project, "domain_name": domain,
            "name": domain if domain != "default" else "default", "agent_id": "none",
            "reference": "none"}


def test_every_root_field_shows_what_was_reviewed():
    types, lines = read_schema(), []
    with Cluster() as cluster, contextlib.ExitStack() as closing:
        cluster.start_manager()
        there = TwoDomains(cluster)
        colleague = make_colleague(there)
        closing.enter_context(LinkStorage(cluster))
        wait_for(lambda: there.admin.get("/folders/_/hosts").json["allowed"], what="the storage host")
        people = {}
        for word, client, domain in (("self", there.user, "default"), ("domain", colleague, "default"),
                                     ("other", there.stranger, OTHER)):
            body = batch("probe-" + word, "true", domain=domain, **WAITS)
            made = client.post("/session", body)
            assert made.status in (200, 201), made
            people[word] = marks_of(there.admin, client, domain, made.json["sessionId"])
            folder = client.post("/folders", {"name": "probe-" + word, "host": "local:volume1"})
            assert folder.status == 201, folder
            people[word]["folder_id"] = str(uuid.UUID(folder.json["id"]))
            people[word]["folder"] = node_id("VirtualFolderNode", people[word]["folder_id"])
        for role, client in callers(there, colleague):
            for field in types["Queries"]:
                seen = []
                for word, about in people.items():
                    data = ask(types, client, field, about)
                    marks = {about[k] for k in ("access_key", "email", "session", "user_id")}
                    if word != "self" and about["domain_name"] == OTHER:
                        marks |= {about["project"], '"name": "' + OTHER + '"'}
                    if any(mark in data for mark in marks):
                        seen.append(word)
                    if any(one["secret"] in data for one in people.values()):
                        seen.append("secret")
                lines.append(f"{role:<10} {field:<28} {' '.join(dict.fromkeys(seen)) or '-'}")
        cluster.stop()
    reviewed = (HERE / "fields.txt").read_text().splitlines()
    assert lines == [line for line in reviewed if not line.startswith("#")], "\n" + "\n".join(lines)


# ---- GraphQL: who may send which mutation ----

def inputs_of(text):
    """{input type: its required members, with values}"""
    bodies = dict(re.findall(r"^input (\w+) \{(.*?)^\}", text, re.S | re.M))
    return {name: "{%s}" % ", ".join(f'{member}: "none"' for member in
                                     re.findall(r"(\w+): String!", body))
            for name, body in bodies.items()}


def test_every_mutation_is_refused_to_whom_was_reviewed():
    text = (HERE.parents[1] / "src/manager/call/graphql/schema.graphql").read_text()
    values = {"String": '"none"', "UUID": '"00000000-0000-0000-0000-000000000001"',
              "[String]": '["none"]', "JSONString": '"{}"',
              "Boolean": "true", "ContainerRegistryTypeField": '"none"', **inputs_of(text),
              "CreateUserV2Input": '{email: "none", username: "none", password: "none", domainName: '
                                   '"none", needPasswordChange: false, status: ACTIVE, role: USER}',
              "BulkUpdateUserV2Input": "{users: []}", "BulkPurgeUsersV2Input": "{userIds: []}",
              "UpdateKeypairResourcePolicyInput": "{allowedVfolderHosts: []}",
              "EndpointAutoScalingRuleInput": '{metric_source: "kernel", metric_name: "none", threshold: '
                                              '"1", comparator: "less_than", step_size: 1, '
                                              "cooldown_seconds: 1}",
              "CreateDeploymentInput": '{metadata: {projectId: "none", name: "none"}, networkAccess: {}, '
                                       "defaultDeploymentStrategy: {type: ROLLING}, replicaCount: 1}",
              "AddRevisionInput": '{deploymentId: "none", clusterConfig: {mode: SINGLE_NODE, size: 1}, '
                                  "resourceConfig: {resourceSlots: {entries: []}}, image: {id: "
                                  '"none"}, modelRuntimeConfig: {runtimeVariantId: "none"}}',
              "ActivateRevisionInput": '{deploymentId: "none", revisionId: "none"}',
              "CreateAccessTokenInput": '{modelDeploymentId: "none"}',
              "CreateAutoScalingRuleInput": '{modelDeploymentId: "none", metricSource: "KERNEL", '
                                            'metricName: "none", stepSize: 1, timeWindow: 1}',
              **{f"{name}Input": '{id: "none"}' for name in (
                  "UpdateDeployment", "DeleteDeployment", "DeleteAccessToken",
                  "UpdateAutoScalingRule", "DeleteAutoScalingRule")}}
    types, lines = read_schema(), []
    with Cluster() as cluster, contextlib.ExitStack() as closing:
        cluster.start_manager()
        there = TwoDomains(cluster)
        for role, client in callers(there, make_colleague(there)):
            for field, (args, kind) in types["Mutations"].items():
                given = ", ".join(f"{name}: {values[kind]}" for name, kind in
                                  re.findall(r"(\w+): (\[?\w+\]?)", args))
                shown = "ok msg" if "ok" in types[kind] else "__typename"
                reply = client.gql(f"mutation {{ {field}({given}) {{ {shown} }} }}")
                answer = (reply.json.get("data") or {}).get(field) or {"ok": False}
                errors = reply.json.get("errors") or [{"message": answer.get("msg")}]
                is_refused = (reply.status == 401
                              or errors[0]["message"] == f"no permission to execute {field}")
                assert answer.get("ok") is False or not is_refused
                lines.append(f"{role:<10} {field:<44} {'refused' if is_refused else 'may'}")
        cluster.stop()
    reviewed = (HERE / "mutations.txt").read_text().splitlines()
    assert lines == [line for line in reviewed if not line.startswith("#")], "\n" + "\n".join(lines)
