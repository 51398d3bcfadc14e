# SPDX-License-Identifier: Apache-2.0
"""Arrays, dependencies and extensions: what they are to others than their owner, and to an owner who
has lost a right since they were made.
"""

import pytest

from cluster import WAITS, Cluster, batch, interactive, wait_for
from two_domains import TwoDomains, make_user

V1 = "/aliquot/v1"


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        there = TwoDomains(cluster)
        there.colleague = make_user(there.admin, "colleague@lablup.com", "default")
        there.monitor = make_user(there.admin, "monitor@lablup.com", "default", "monitor")
        [there.project] = [
            one["id"] for one in there.admin.get(V1 + "/groups?limit=1000").json["items"]
            if (one["name"], one["domain"]) == ("default", "default")]
        change_members(there, "add")
        yield there
        cluster.stop()


def change_members(there, verb):
    path = f"{V1}/groups/{there.project}/{verb}-users"
    assert there.admin.post(path, {"users": ["colleague@lablup.com"]}).status == 204


def test_an_array_makes_nothing_for_a_project_that_its_owner_has_left(there):
    client = there.colleague

    def made():
        return client.get(f"{V1}/arrays/long").json["made"]

    def why():
        return client.get(f"{V1}/arrays/long/why").json["text"]

    body = {**batch("long", "sleep 0.2"), "array": "0-9999%1"}
    assert client.post("/session", body).status == 201
    wait_for(lambda: made() > 2)
    change_members(there, "remove")
    wait_for(lambda: "0 of 10000 elements run" in why() and "has left the project" in why())
    before = made()
    assert client.post("/session", batch("single", "true")).status == 400
    assert made() == before
    change_members(there, "add")
    wait_for(lambda: made() > before)
    assert client.delete(f"{V1}/arrays/long").status == 204


def test_others_neither_see_nor_touch_an_array(there):
    body = {**batch("mine", "sleep 100", **WAITS), "array": "0-9"}
    array = there.user.post("/session", body).json["sessionId"]
    key = there.user.keypair[0]
    for client in (there.colleague, there.monitor, there.stranger, there.strange_boss, there.boss):
        assert array not in client.get(V1 + "/arrays").body.decode()
        for path in (f"/arrays/{array}", "/arrays/mine", f"/arrays/{array}/why"):
            assert client.get(V1 + path).status == 404, path
        for elements in ({}, {"elements": "1"}):
            assert client.delete(f"{V1}/arrays/{array}", elements).status == 404
    for client in (there.colleague, there.monitor, there.stranger, there.strange_boss):
        assert client.get(f"{V1}/arrays/{array}?owner_access_key={key}").status == 403
        assert client.delete(f"{V1}/arrays/{array}", {"owner_access_key": key}).status == 403
    assert there.user.delete(f"{V1}/arrays/{array}", {"forced": True}).status == 403
    assert there.user.get(f"{V1}/arrays/{array}").json["cancelled"] == 0
    assert there.boss.delete(f"{V1}/arrays/{array}", {"owner_access_key": key}).status == 204


def test_nobody_waits_for_sessions_of_others(there):
    """A dependency would tell when and how they end."""
    session = there.user.post("/session", batch("awaited", "sleep 100", **WAITS)).json["sessionId"]
    for number, client in enumerate((there.colleague, there.stranger, there.boss)):
        for name in (session, "awaited", "any:" + session):
            body = batch(f"waits-{number}", "true", dependencies=[name])
            assert client.post("/session", body).status in (400, 404), name
    assert there.user.post("/session", batch("waits", "true", dependencies=[session])).status == 201


def test_nobody_keeps_sessions_of_others(there):
    session = there.user.post("/session", interactive("kept", **WAITS)).json["sessionId"]
    key = {"owner_access_key": there.user.keypair[0]}
    for client in (there.colleague, there.monitor, there.stranger, there.strange_boss):
        for verb in ("extend", "exempt"):
            path = f"{V1}/sessions/{session}/{verb}"
            assert client.post(path, {}).status in (401, 404)
            assert client.post(path, key).status in (401, 403)
    assert there.user.post(f"{V1}/sessions/{session}/exempt", {}).status == 401
