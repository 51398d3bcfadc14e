# SPDX-License-Identifier: Apache-2.0
"""Short names of images: set, used and taken away, by REST and GraphQL."""

import pytest

from cluster import WAITS, batch, wait_for

PATH = "/aliquot/v1/image-aliases"


def items(client):
    return {each["alias"]: each["image"] for each in client.get(PATH).json["items"]}


def mutate(client, text):
    reply = client.gql("mutation { result: " + text + " { ok msg } }")
    return reply.json["data"]["result"]


def image_of(client, name):
    return client.get("/aliquot/v1/sessions/" + name).json["image"]


def test_alias(admin):
    """It stands for its image wherever a session is made."""
    client = admin
    assert client.send("PUT", PATH + "/py311",
                       {"image": "registry.example/team/python:3.11"}).status == 204
    assert client.send("PUT", PATH + "/a.b:c-d_e", {"image": "sh"}).status == 204
    assert items(client)["py311"] == "registry.example/team/python:3.11"
    assert client.get(PATH).json["total"] == len(items(client))
    body = {**batch("aliased-one", "true", **WAITS), "image": "py311"}
    assert client.post("/session", body).status == 201
    assert image_of(client, "aliased-one") == "registry.example/team/python:3.11"
    again = client.post("/session", {**body, "image": "registry.example/team/python:3.11"})
    assert again.status == 200 and not again.json["created"]  # the same image
    assert client.post("/aliquot/v1/sessions", [{**body, "name": "aliased-two"}]).status == 201
    assert image_of(client, "aliased-two") == "registry.example/team/python:3.11"

    assert client.send("PUT", PATH + "/py311", {"image": "python:3.12"}).status == 204
    assert items(client)["py311"] == "python:3.12"
    assert client.delete(PATH + "/py311").status == 204
    assert "py311" not in items(client)
    gone = client.delete(PATH + "/py311")
    assert gone.status == 404 and "is no alias" in str(gone.json), gone
    assert client.delete(PATH + "/a.b:c-d_e").status == 204


@pytest.mark.parametrize("alias, image, field", (
    ("a b", "sh", "alias"), ("x" * 65, "sh", "alias"), ("host", "sh", "alias"),
    ("process", "sh", "alias"), ("fine", "No Image", "image"), ("fine", "", "image")))
def test_refused(admin, alias, image, field):
    reply = admin.send("PUT", PATH + "/" + alias.replace(" ", "%20"), {"image": image})
    assert reply.status == 400 and field in reply.json["data"], reply


def test_only_administrators_change_them(user):
    client = user
    assert client.get(PATH).status == 200
    assert client.send("PUT", PATH + "/mine", {"image": "sh"}).status == 401
    assert client.delete(PATH + "/mine").status == 401
    denied = mutate(client, 'alias_image(alias: "mine", target: "sh")')
    assert denied == {"ok": False, "msg": "no permission to execute alias_image"}


def test_mutations(admin):
    client = admin
    assert mutate(client, 'alias_image(alias: "gql", target: "python:3.11")') == {
        "ok": True, "msg": "success"}
    assert items(client)["gql"] == "python:3.11"
    bad = mutate(client, 'alias_image(alias: "gql", target: "No Image")')
    assert not bad["ok"] and bad["msg"]
    assert mutate(client, 'dealias_image(alias: "gql")')["ok"]
    again = mutate(client, 'dealias_image(alias: "gql")')
    assert not again["ok"] and "is no alias" in again["msg"]
    assert items(client).get("gql") is None


def test_orders_that_cannot_be(admin):
    """What cannot be done says why."""
    client = admin
    for text, word in (
            ('rescan_images(registry: "docker.io", project: "team")', "project"),
            ('forget_image(reference: "no.example/such:1")', "No such environment image."),
            ('forget_image(reference: "No Image")', ""),
            ('forget_image_by_id(image_id: "no.example/such:1@x86_64")', "No such environment image."),
            ('clear_images', "name the registry"),
            ('preload_image(references: ["No Image"], target_agents: [])', ""),
            ('preload_image(references: [], target_agents: [])', "no image is named"),
            ('unload_image(references: ["sh"], target_agents: ["nobody"])',
             "No such agent instance.")):
        result = mutate(client, text)
        assert result["ok"] is False and result["msg"] and word in result["msg"], (text, result)


def test_they_outlive_the_manager(cluster, admin):
    """Many at once are all kept."""
    client = admin
    names = [f"kept-{i}" for i in range(20)]
    query = " ".join(f'a{i}: alias_image(alias: "{name}", target: "sh:{i}") {{ ok }}'
                     for i, name in enumerate(names))
    data = client.gql("mutation { " + query + " }").json["data"]
    assert all(each["ok"] for each in data.values())
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 30, "the manager")
    wait_for(lambda: cluster.agent().get("connected"), 30, "the agent")
    assert {name: f"sh:{i}" for i, name in enumerate(names)}.items() <= items(client).items()
    for name in names:
        assert client.delete(PATH + "/" + name).status == 204
