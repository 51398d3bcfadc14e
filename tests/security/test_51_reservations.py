# SPDX-License-Identifier: Apache-2.0
"""Reservations of one domain and the people of another: nobody sees, joins, changes or cancels what is
not theirs, or keeps amounts of agents that their domain may not use."""

import pytest

from cluster import Cluster, batch
from two_domains import OTHER, TwoDomains

PATH = "/aliquot/v1/reservations"
SMALL = {"resources": {"cpu": "1"}, "duration": "1h", "start": "1h"}


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield TwoDomains(cluster)
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(name="exam")
def exam_fixture(there):
    made = there.boss.post(PATH, {"name": "exam", "for": ["project:default"], **SMALL})
    assert made.status == 201, made
    yield made.json
    there.admin.post(f"{PATH}/exam/cancel")


def names(client):
    return [r["name"] for r in client.get(PATH + "?all=true").json["items"]]


def test_strangers_see_nothing(there, exam):
    for client in (there.stranger, there.strange_boss):
        assert names(client) == []
        for name in ("exam", exam["id"]):
            assert client.get(f"{PATH}/{name}").status == 404
    assert "exam" in names(there.user) and "exam" in names(there.admin)
    assert there.user.get(f"{PATH}/exam").json["created_by"] is None


def test_strangers_change_nothing(there, exam):
    for client in (there.stranger, there.user):
        assert client.post(PATH, {"name": "mine", "for": ["project:default"], **SMALL}).status == 401
        assert client.send("PATCH", f"{PATH}/exam", {"duration": "2h"}).status == 401
        assert client.post(f"{PATH}/exam/cancel").status == 401
    assert there.strange_boss.send("PATCH", f"{PATH}/exam", {"duration": "2h"}).status == 404
    assert there.strange_boss.post(f"{PATH}/exam/cancel").status == 404
    assert there.boss.get(f"{PATH}/exam").json["duration"] == exam["duration"]


def test_strangers_do_not_join(there, exam):
    reply = there.stranger.post("/session", {**batch("stray", "true"), "reservation": "exam"})
    assert reply.status in (403, 404), reply
    assert [s for s in there.admin.get("/aliquot/v1/sessions?all=true").json["items"]
            if s["name"] == "stray"] == []
    assert there.boss.get(f"{PATH}/exam").json["sessions"] == []
    assert exam["sessions"] == []


def test_an_administrator_keeps_amounts_for_the_own_domain_alone(there):
    for member in ("user:stranger@lablup.com", "user:user@lablup.com"):
        reply = there.strange_boss.post(PATH, {"name": "mixed", "for": ["project:default", member],
                                               **SMALL})
        assert reply.status == (201 if "stranger" in member else 400), reply
    assert there.admin.post(f"{PATH}/mixed/cancel").status == 204
    for client in (there.boss, there.admin):
        reply = client.post(PATH, {"name": "far", "for": ["user:stranger@lablup.com"], **SMALL})
        assert reply.status == (400 if client is there.boss else 201), reply
    assert there.strange_boss.get(f"{PATH}/far").status == 200
    assert there.admin.post(f"{PATH}/far/cancel").status == 204


def test_an_administrator_keeps_amounts_of_allowed_groups_alone(there):
    path = "/aliquot/v1/resource-groups/default"
    assert there.admin.post(path + "/disallow", {"domain": OTHER}).status == 204
    body = {"name": "denied", "for": ["project:default"], **SMALL}
    reply = there.strange_boss.post(PATH, body)
    assert reply.status == 400 and "may not use the resource group" in reply.body.decode(), reply
    assert there.admin.post(path + "/allow", {"domain": OTHER}).status == 204
    assert there.strange_boss.post(PATH, body).status == 201
    assert there.admin.post(f"{PATH}/denied/cancel").status == 204


@pytest.mark.parametrize("body", [
    {"name": "x" * 65}, {"name": "a b"}, {"for": []}, {"for": ["everybody"]}, {"for": ["project:"]},
    {"for": ["user:" + "x" * 5000]}, {"for": ["user:user@lablup.com"] * 65}, {"nodes": 0},
    {"nodes": 257}, {"nodes": 10**12}, {"duration": "59s"}, {"duration": 10**12}, {"start": "soon"},
    {"start": "1960-01-01"}, {"start": "9999-12-31T23:59:59Z"}, {"end": "x"},
    {"end": "2000-01-01", "duration": None}, {"resources": {}}, {"resources": {"cpu": "-1"}},
    {"resources": {"cpu": "1e9"}}, {"resources": {"moon.shares": "1"}}, {"resources": {"cpu": "inf"}},
    {"agents": ["nowhere"]}, {"agents": ["agent", "agent"], "nodes": 2}, {"release_unused": -1},
    {"resource_group": "nowhere"}, {"surprise": 1},
])
def test_refused(there, body):
    reply = there.admin.post(PATH, {"name": "bad", "for": ["project:default"], **SMALL, **body})
    assert reply.status == 400, reply
    assert next(iter(body)).split("_")[0] in reply.body.decode(), reply
    assert "bad" not in names(there.admin)
