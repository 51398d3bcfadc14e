# SPDX-License-Identifier: Apache-2.0
"""Container registries by GraphQL: what 'aliquot admin registry' has, in two forms of clients."""

import base64
import json

import pytest

V1 = "/aliquot/v1"
NODE = "id row_id name registry_name url type project username password ssl_verify is_global extra"
OLD = "id hostname config { url type project username password ssl_verify is_global }"
FULL = {"url": "https://r.example:5000", "type": "harbor2", "project": "a,b", "username": "robot",
        "password": "hush-hush", "ssl_verify": False, "is_global": True, "extra": None}


def mutate(client, field, selection, types, **variables):
    head = ", ".join(f"${name}: {types[name]}" for name in variables)
    given = ", ".join(f"{name}: ${name}" for name in variables)
    reply = client.gql(f"mutation({head}) {{ {field}({given}) {{ container_registry {{ {selection} }}"
                       " } }", variables)
    assert reply.status == 200, reply
    assert "hush" not in json.dumps(reply.json)
    return reply.json


def node(client, verb, id=None, props=None):
    """The newest form."""
    types = {"id": "String!", "props": f"{verb.capitalize()}ContainerRegistryNodeInputV2!"}
    given = {key: value for key, value in (("id", id), ("props", props)) if value is not None}
    return mutate(client, f"{verb}_container_registry_node_v2", NODE, types, **given)


def made_of(reply):
    assert not reply.get("errors"), reply
    [result] = reply["data"].values()
    return result["container_registry"]


def refusal(reply):
    assert set(reply["data"].values()) == {None}
    return reply["errors"][0]["message"]


def ask(client, query):
    reply = client.gql(query).json
    assert not reply.get("errors"), reply
    [value] = reply["data"].values()
    return value


@pytest.fixture
def host(admin, request):
    name = f"{request.node.originalname[5:].replace('_', '-')[:40]}.example:5000"
    yield name
    admin.send("DELETE", f"{V1}/registries/{name}")


def listed(admin, host):
    items = admin.get(V1 + "/registries").json["items"]
    return next((row for row in items if row["name"] == host), None)


def test_a_node_from_its_creation_to_its_end(admin, host):
    made = made_of(node(admin, "create", props={"registry_name": host, **FULL}))
    assert base64.b64decode(made["id"]).decode() == "ContainerRegistryNode:" + host
    assert {key: made[key] for key in FULL} == {**FULL, "password": None, "extra": "{}"}
    assert (made["name"], made["registry_name"]) == (host, host)
    assert listed(admin, host) == {"name": host, "url": FULL["url"], "username": "robot",
                                   "has_password": True}
    assert host in ask(admin, '{domain(name: "default") {allowed_docker_registries}}')[
        "allowed_docker_registries"]
    stored = admin.post("/config/get", {"key": "config/docker/registry", "prefix": True}).json
    assert "hush" not in json.dumps(stored)
    for text in (made["id"], made["row_id"], host):
        assert ask(admin, f'{{ container_registry_node(id: "{text}") {{ {NODE} }} }}') == made
    assert ask(admin, f'{{ node(id: "{made["id"]}") {{ __typename id }} }}') == {
        "__typename": "ContainerRegistryNode", "id": made["id"]}
    found = ask(admin, f"{{ container_registry_nodes {{ edges {{ node {{ {NODE} }} }} count }} }}")
    assert made in [edge["node"] for edge in found["edges"]] and found["count"] >= 1
    changed = made_of(node(admin, "modify", id=made["row_id"], props={
        "url": "https://new.example", "password": "", "username": None, "registry_name": host}))
    assert changed == {**made, "url": "https://new.example"}
    assert listed(admin, host)["has_password"] is True, "an empty form changes nothing"
    assert made_of(node(admin, "modify", id=host, props={"project": ""}))["project"] == ""
    assert made_of(node(admin, "delete", id=made["id"]))["name"] == host
    assert listed(admin, host) is None
    assert ask(admin, f'{{ container_registry_node(id: "{host}") {{ id }} }}') is None
    assert refusal(node(admin, "delete", id=host)) == f"there is no registry '{host}'"


def test_the_form_before(admin, host):
    types = {"hostname": "String!", "props": "CreateContainerRegistryInput!"}
    made = made_of(mutate(admin, "create_container_registry", OLD, types, hostname=host, props={
        "url": "https://" + host, "type": "docker", "project": ["x", "y"], "username": "u",
        "password": "hush"}))
    config = made["config"]
    assert (made["hostname"], config["project"], config["password"]) == (host, ["x", "y"], None)
    assert made in ask(admin, f"{{ container_registries {{ {OLD} }} }}")
    assert ask(admin, f'{{ container_registry(hostname: "{host}") {{ {OLD} }} }}') == made
    types["props"] = "ModifyContainerRegistryInput!"
    changed = made_of(mutate(admin, "modify_container_registry", OLD, types, hostname=host,
                             props={"project": [], "ssl_verify": False}))
    assert changed["config"] == {**config, "project": [], "ssl_verify": False}
    gone = made_of(mutate(admin, "delete_container_registry", "hostname", types, hostname=host))
    assert gone == {"hostname": host} and listed(admin, host) is None


def test_the_form_between(admin, host):
    types = {"registry_name": "String!", "url": "String!", "type": "ContainerRegistryTypeField!",
             "id": "String!"}
    types["type"] = "ContainerRegistryTypeField!"
    made = made_of(mutate(admin, "create_container_registry_node", NODE,
                          {**types, "registry_name": "String!"}, registry_name=host,
                          url="https://" + host, type="docker"))
    assert (made["username"], made["project"], made["ssl_verify"]) == (None, None, True)
    changed = made_of(mutate(admin, "modify_container_registry_node", NODE, types, id=made["id"],
                             url="http://" + host))
    assert changed == {**made, "url": "http://" + host}
    assert made_of(mutate(admin, "delete_container_registry_node", "name", types, id=host)) == {
        "name": host}


@pytest.mark.parametrize("props, words", (
    ({"registry_name": "no registry"}, "is no registry"), ({"registry_name": ""}, "is no registry"),
    ({"type": "odd"}, "type: 'odd' is none of docker"),
    ({"username": "a:b"}, "username: has a ':'"),
    ({"is_global": False}, "is_global: not supported"),
    ({"extra": '{"a": 1}'}, "extra: not supported"),
    ({"allowed_groups": {"add": ["x"]}}, "allowed_groups: not supported"),
    ({"url": "x" * 1025}, "url: is longer than 1024 bytes"),
))
def test_what_cannot_be_is_refused(admin, host, props, words):
    given = {"registry_name": host, "url": "https://x", "type": "docker", **props}
    assert words in refusal(node(admin, "create", props=given))
    assert listed(admin, host) is None


def test_names_are_unique_and_stay(admin, host):
    given = {"registry_name": host, "url": "https://x", "type": "docker"}
    made_of(node(admin, "create", props=given))
    assert "already" in refusal(node(admin, "create", props=given))
    assert "cannot be changed" in refusal(node(admin, "modify", id=host,
                                               props={"registry_name": "other.example"}))
    done = admin.send("PUT", f"{V1}/registries/{host}", {"username": "u", "password": "p"})
    assert done.status == 204
    assert ask(admin, f'{{ container_registry_node(id: "{host}") {{ username url }} }}') == {
        "username": "u", "url": "https://" + host}, "REST and GraphQL are one"


def test_registries_are_of_superadmins(admin, domain_admin, user, host):
    made_of(node(admin, "create", props={"registry_name": host, "url": "https://x",
                                         "type": "docker"}))
    for client in (domain_admin, user):
        for query in ("{ container_registries { hostname } }",
                      f'{{ container_registry(hostname: "{host}") {{ hostname }} }}',
                      f'{{ container_registry_node(id: "{host}") {{ name }} }}',
                      "{ container_registry_nodes { count } }"):
            reply = client.gql(query).json
            assert "privilege required" in reply["errors"][0]["message"], query
        for verb, given in (("create", {"props": {"registry_name": "new.example", "url": "x",
                                                  "type": "docker"}}),
                            ("modify", {"id": host, "props": {"url": "x"}}), ("delete", {"id": host})):
            assert refusal(node(client, verb, **given)) == (
                f"no permission to execute {verb}_container_registry_node_v2")
    assert listed(admin, host)["url"] == "https://x" and listed(admin, "new.example") is None
