# SPDX-License-Identifier: Apache-2.0
"""What administrators set as the least and the most that containers of an image get."""

import pytest

from cluster import WAITS, batch

PATH = "/aliquot/v1/image-limits"
IMAGE = "registry.example/team/limited:1"


@pytest.fixture(autouse=True)
def nothing_set(admin):
    yield
    for item in admin.get(PATH).json["items"]:
        assert put(admin, item["image"]).status == 204


def put(client, image, **limits):
    return client.send("PUT", PATH, {"image": image, **limits})


def create(client, name, **resources):
    body = {**batch(name, "true", **WAITS), "image": IMAGE}
    return client.post("/session", {**body, "config": {"resources": resources}})


def modify(client, target, **props):
    return client.gql("mutation($t: String!, $p: ModifyImageInput!) {"
                      " modify_image(target: $t, props: $p) { ok msg } }",
                      {"t": target, "p": props}).json["data"]["modify_image"]


def test_they_are_checked_when_sessions_are_made(admin, user, name):
    assert put(admin, IMAGE, min={"cpu": 2, "mem": "64m"}, max={"mem": "1g"}).status == 204
    assert user.get(PATH).json == {"total": 1, "items": [
        {"image": IMAGE, "min": {"cpu": "2", "mem": "67108864"}, "max": {"mem": "1073741824"}}]}
    little = create(user, name, cpu="1")
    assert little.status == 400 and "at least cpu=2, not 1" in little.json["data"]["cpu"], little
    much = create(user, name, cpu="1000", mem="2g")
    assert much.status == 400 and "at most mem=1 GiB, not 2 GiB" in much.json["data"]["mem"], much
    assert create(user, name, cpu="1000", mem="128m").status == 201
    assert put(admin, IMAGE).status == 204, "nothing is set any more"
    assert user.get(PATH).json == {"total": 0, "items": []}


def test_they_last(cluster, admin, user, name):
    assert put(admin, IMAGE, max={"cpu": "1"}).status == 204
    cluster.programs["manager"].kill()
    cluster.start_manager()
    refused = create(user, name, cpu="1000")
    assert refused.status == 400 and "at most cpu=1" in refused.json["data"]["cpu"], refused


@pytest.mark.parametrize("body, field", (
    ({"image": "No Image"}, "image"), ({}, "image"), ({"image": "a", "min": []}, "min"),
    ({"image": "a", "min": {"nothing.known": 1}}, None), ({"image": "a", "max": {"cpu": -1}}, None),
    ({"image": "a", "min": {"cpu": 3}, "max": {"cpu": 2}}, "cpu"),
    ({"image": "a", "min": {"cpu": "much"}}, None)))
def test_what_is_refused(admin, body, field):
    reply = admin.send("PUT", PATH, body)
    assert reply.status == 400, reply
    assert field is None or field in reply.json["data"], reply
    assert admin.get(PATH).json["total"] == 0


def test_only_superadmins_set_them(user, domain_admin, nobody):
    for client in (user, domain_admin, nobody):
        assert put(client, IMAGE, max={"cpu": 1}).status == 401
    assert modify(user, IMAGE, resource_limits=[])["msg"] == "no permission to execute modify_image"


def test_by_graphql(admin, user):
    limits = [{"key": "cpu", "min": "1", "max": "4"}, {"key": "mem", "min": "1g", "max": "Infinity"}]
    assert modify(admin, IMAGE, resource_limits=limits) == {"ok": True, "msg": "success"}
    assert user.get(PATH).json["items"] == [
        {"image": IMAGE, "min": {"cpu": "1", "mem": "1073741824"}, "max": {"cpu": "4"}}]
    assert "labels" in modify(admin, IMAGE, resource_limits=[], labels=[])["msg"]
    assert "resource_limits" in modify(admin, IMAGE)["msg"]
    assert modify(admin, IMAGE, resource_limits=[{"key": "cpu", "max": "-1"}])["ok"] is False
    assert user.get(PATH).json["total"] == 1
    assert modify(admin, IMAGE, resource_limits=[])["ok"]
    assert user.get(PATH).json["total"] == 0


def test_from_the_command_line(cluster, user):
    done = cluster.cli("image", "set", "--min", "cpu=2,mem=64m", "--max", "cpu=8", IMAGE)
    assert done.returncode == 0, done
    assert user.get(PATH).json["items"][0]["max"] == {"cpu": "8"}
    assert cluster.cli("image", "set", IMAGE).returncode == 0
    assert user.get(PATH).json["total"] == 0
    missing = cluster.cli("image", "info", IMAGE)
    assert missing.returncode == 5 and "no agent has the image" in missing.stderr, missing
