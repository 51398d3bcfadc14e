# SPDX-License-Identifier: Apache-2.0
"""What Backend.AI's administrators ask from 26 on: histories of scheduling, days of use."""

import pytest

from cluster import WAITS, batch, wait_for, wait_status

HISTORY = "/scheduling-history/sessions/search"


def history(admin, **body):
    reply = admin.post(HISTORY, body)
    assert reply.status == 200, reply
    return reply.json["items"]


def test_history_of_a_session(admin, user, name):
    assert user.post("/session", batch(name, "exit 3")).status == 201
    session = wait_status(user, name, "TERMINATED")["id"]
    own = {"session_id": {"equals": session}}
    items = history(admin, filter=own, order=[{"field": "created_at", "direction": "asc"}])
    assert [item["phase"] for item in items][0] == "schedule-sessions"
    assert items[-1]["to_status"] == "TERMINATED" and items[-1]["attempts"] == 1
    assert len({item["id"] for item in items}) == len(items)
    latest = admin.post(HISTORY, {"filter": own, "limit": 2, "offset": 1}).json
    assert latest["items"] == items[-2:-4:-1]
    assert latest["pagination"] == {"offset": 1, "limit": 2, "total": len(items)}
    assert history(admin, filter=dict(own, phase={"i_contains": "SCHEDULE"})) == items[:1]
    assert history(admin, filter=dict(own, to_status=["running"], result=["FAILURE"])) == []


def test_history_of_one_that_waits(admin, user, name):
    assert user.post("/session", batch(name, "true", **WAITS)).status == 201
    session = user.get(f"/aliquot/v1/sessions/{name}").json["id"]
    own = {"session_id": {"equals": session}}
    [item] = wait_for(lambda: history(admin, filter=own), 30, "an attempt")
    assert (item["result"], item["error_code"], item["to_status"]) == ("FAILURE", "no-capacity", None)
    assert user.delete(f"/session/{name}").status == 200
    after = wait_for(lambda: history(admin, filter=dict(own, to_status=["CANCELLED"])), 30, "the end")
    assert (after[0]["result"], after[0]["from_status"]) == ("FAILURE", "PENDING")
    assert after[0]["error_code"] == after[0]["message"]


@pytest.mark.parametrize("body, field", (
    ({"filter": []}, "filter"), ({"filter": {"colour": {"equals": "red"}}}, "filter.colour"),
    ({"filter": {"phase": "a"}}, "filter.phase"), ({"filter": {"phase": {"near": "a"}}},
                                                   "filter.phase.near"),
    ({"filter": {"session_id": {"equals": "x"}}}, "filter"),
    ({"filter": {"result": "FAILURE"}}, "filter.result"),
    ({"order": [{"field": "phase"}]}, "order"), ({"order": {"field": "created_at"}}, "order"),
    ({"limit": 0}, "limit"), ({"limit": 1001}, "limit"), ({"offset": -1}, "offset"),
    ({"page": 1}, "page")))
def test_history_refuses(admin, body, field):
    reply = admin.post(HISTORY, body)
    assert (reply.status, reply.slug) == (400, "invalid-api-params"), reply
    assert field in reply.json["data"], reply


def test_history_is_for_superadmins(domain_admin, user, nobody):
    for client in (domain_admin, user, nobody):
        assert client.post(HISTORY, {}).status in (401, 403)


DAYS = {level: f"/fair-share/usage-buckets/{level}/search" for level in ("domains", "projects", "users")}


def test_days_of_use(admin, user, name):
    assert user.post("/session", batch(name, "true")).status == 201
    day = wait_status(user, name, "TERMINATED")["created_at"][:10]
    found = {}
    for level, path in DAYS.items():
        reply = admin.post(path, {"filter": {"period_start": {"after": day}}})
        assert reply.status == 200, reply
        assert reply.json["pagination"] == {"offset": 0, "limit": 50,
                                            "total": len(reply.json["items"])}
        found[level] = reply.json["items"]
    own = next(item for item in found["users"] if item["metadata"]["period_start"] == day)
    assert {item["project_id"] for item in found["projects"]} >= {own["project_id"]}
    scope = f"/fair-share/rg/default/domains/default/projects/{own['project_id']}"
    narrowed = admin.post(f"{scope}/usage-buckets/users/search",
                          {"filter": {"user_uuid": {"equals": own["user_uuid"]}}}).json["items"]
    assert own["id"] in [item["id"] for item in narrowed]
    assert admin.post("/fair-share/rg/other/usage-buckets/domains/search", {}).json["items"] == []
    before = {"filter": {"period_start": {"before": "2001-01-01"}}}
    assert admin.post(DAYS["domains"], before).json["pagination"]["total"] == 0
    assert admin.post(DAYS["domains"], {"limit": 1, "offset": 1000}).json["items"] == []


@pytest.mark.parametrize("body, field", (
    ({"filter": {"colour": {"equals": "red"}}}, "filter.colour"),
    ({"filter": {"project_id": {"equals": "a"}}}, "filter.project_id"),
    ({"filter": {"domain_name": {"contains": "a"}}}, "filter.domain_name.contains"),
    ({"filter": {"period_start": {"after": "yesterday"}}}, "filter.period_start.after"),
    ({"filter": {"period_start": {"after": "2020-01-01"}}}, "filter.period_start"),
    ({"order": [{"field": "created_at"}]}, "order"), ({"limit": 1001}, "limit")))
def test_days_of_use_refuse(admin, body, field):
    reply = admin.post(DAYS["domains"], body)
    assert (reply.status, reply.slug) == (400, "invalid-api-params"), reply
    assert field in reply.json["data"], reply


def test_the_path_says_whose(admin):
    body = {"filter": {"resource_group": {"equals": "other"}}}
    reply = admin.post("/fair-share/rg/default/usage-buckets/domains/search", body)
    assert "filter" in reply.json["data"], reply
    reply = admin.post("/fair-share/rg/default/domains/default/projects/x/usage-buckets/users/search", {})
    assert "project" in reply.json["data"], reply


def test_days_are_for_superadmins(domain_admin, user):
    for client in (domain_admin, user):
        for path in (*DAYS.values(), "/fair-share/rg/default/usage-buckets/domains/search"):
            assert client.post(path, {}).status == 401
