# SPDX-License-Identifier: Apache-2.0
"""What Backend.AI's administrators ask from 26 on: histories of scheduling, days of use,
shares.
"""

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


@pytest.fixture
def fair(admin):
    """A resource group that schedules by fair share."""
    admin.post("/aliquot/v1/resource-groups", {"name": "fair", "scheduler": "fair-share"})
    wait_for(lambda: admin.get("/aliquot/v1/resource-groups/fair/fair-share").status == 200, 30,
             "its shares")
    project = next(item["id"] for item in admin.get("/aliquot/v1/groups").json["items"]
                   if (item["name"], item["domain"]) == ("default", "default"))
    users = {item["email"]: item["id"] for item in admin.get("/aliquot/v1/users").json["items"]}
    return project, users["user@lablup.com"]


def test_weights_of_those_who_used_nothing(admin, fair):
    project, user = fair
    of_user = f"/fair-share/users/fair/{project}/{user}"
    weigh = {"domain_name": "default", "weight": "0.5"}
    assert admin.get(of_user).json["item"]["spec"]["weight"] == 1
    item = admin.send("PUT", of_user + "/weight", weigh).json["item"]
    assert (item["spec"]["weight"], item["calculation_snapshot"]["fair_share_factor"]) == (0.5, 1)
    assert admin.send("PUT", f"/fair-share/projects/fair/{project}/weight",
                      dict(weigh, weight=3)).json["item"]["spec"]["weight"] == 3
    shares = admin.post("/fair-share/users/search", {"filter": {"resource_group": {"equals": "fair"}}})
    assert [share["id"] for share in shares.json["items"]] == [item["id"]]
    shares = admin.post("/fair-share/rg/fair/domains/default/projects/search", {}).json
    assert [share["spec"]["weight"] for share in shares["items"]] == [3]
    everywhere = admin.send("PATCH", "/aliquot/v1/resource-groups/fair",
                            {"fair_share": {f"user:{user}": 4}})
    assert everywhere.status == 200
    assert admin.get(of_user).json["item"]["spec"]["weight"] == 0.5, "that of the project first"
    assert admin.send("PUT", of_user + "/weight", dict(weigh, weight=None)).status == 200
    assert admin.get(of_user).json["item"]["spec"]["weight"] == 4
    left = admin.send("PATCH", "/aliquot/v1/resource-groups/fair", {
        "fair_share": {f"user:{user}": None, f"project:{project}": None}}).json["scheduler_opts"]
    assert left["fair_share"] == {}, "what is null goes"


def test_settings_of_fair_share(admin, fair):
    path = "/fair-share/resource-groups/fair/spec"
    changed = admin.send("PATCH", path, {"half_life_days": 3, "default_weight": "1.5",
                                         "resource_weights": [{"resource_type": "cpu", "weight": 2}]})
    assert changed.json == admin.get(path).json, changed
    spec = changed.json["fair_share_spec"]
    assert (spec["half_life_days"], spec["lookback_days"], spec["default_weight"]) == (3, 28, 1.5)
    assert {"resource_type": "cpu", "quantity": "2"} in spec["resource_weights"]["entries"]
    specs = admin.get("/fair-share/resource-groups/specs").json
    assert changed.json in specs["items"] and specs["total_count"] == len(specs["items"]) > 1
    taken_back = {"resource_weights": [{"resource_type": "cpu", "weight": None}]}
    spec = admin.send("PATCH", path, taken_back).json["fair_share_spec"]
    assert {"resource_type": "cpu", "quantity": "1"} in spec["resource_weights"]["entries"]
    assert spec["half_life_days"] == 3, "the others stay"


@pytest.mark.parametrize("body, field", (
    ({"decay_unit_days": 2}, "decay_unit_days"), ({"half_life_days": 0}, "half_life_days"),
    ({"lookback_days": 367}, "lookback_days"), ({"default_weight": "much"}, "default_weight"),
    ({"default_weight": "nan"}, "default_weight"), ({"default_weight": 0}, "fair_share"),
    ({"default_weight": True}, "default_weight"), ({"resource_weights": {}}, "resource_weights"),
    ({"resource_weights": [7]}, "resource_weights"),
    ({"resource_weights": [{"resource_type": "coffee", "weight": 1}]}, "resource_weights"),
    ({"resource_weights": [{"resource_type": "cpu", "weight": "-1"}]}, "fair_share"),
    ({"colour": 1}, "colour")))
def test_settings_that_cannot_be(admin, fair, body, field):
    reply = admin.send("PATCH", "/fair-share/resource-groups/fair/spec", body)
    assert (reply.status, reply.slug) == (400, "invalid-api-params"), reply
    assert field in reply.json["data"], reply


def test_weights_that_cannot_be(admin, fair):
    project, user = fair
    nobody = "00000000-0000-4000-8000-000000000001"
    body = {"domain_name": "default", "weight": "2"}
    for path, given, status in (
            (f"users/fair/{project}/{user}", {"weight": 1}, 400),
            (f"users/fair/{project}/{user}", dict(body, domain_name="none"), 404),
            (f"users/fair/{project}/{user}", dict(body, weight={}), 400),
            (f"users/fair/{project}/{user}", dict(body, weight="1e9"), 400),
            (f"users/fair/{project}/{user}", dict(body, weight="1e-400"), 400),
            (f"users/fair/{project}/{user}", dict(body, weight="0x1p-1"), 400),
            (f"users/fair/{project}/{nobody}", body, 404), (f"users/fair/{nobody}/{user}", body, 404),
            (f"users/fair/{project}/me", body, 400), (f"projects/fair/{nobody}", body, 404),
            ("domains/fair/none", {"weight": 2}, 404), ("domains/fair/default", body, 400),
            ("domains/none/default", {"weight": 2}, 404),
            ("domains/default/default", {"weight": 2}, 400)):
        reply = admin.send("PUT", f"/fair-share/{path}/weight", given)
        assert reply.status == status, (path, given, reply)
    assert admin.get("/fair-share/domains/default/default").json["data"].keys() == {"scheduler"}


@pytest.mark.parametrize("body, field", (
    ({"filter": {"user_uuid": {"equals": "x"}}}, "filter.user_uuid.equals"),
    ({"filter": {"period_start": {}}}, "filter.period_start"),
    ({"order": [{"field": "created_at"}]}, "order"), ({"limit": 1001}, "limit")))
def test_searches_of_shares_refuse(admin, body, field):
    reply = admin.post("/fair-share/users/search", body)
    assert reply.status == 400 and field in reply.json["data"], reply


def test_shares_are_for_superadmins(domain_admin, user):
    for client in (domain_admin, user):
        assert client.get("/fair-share/domains/fair/default").status == 401
        assert client.post("/fair-share/domains/search", {}).status == 401
        assert client.get("/fair-share/resource-groups/specs").status == 401
        assert client.send("PATCH", "/fair-share/resource-groups/default/spec", {}).status == 401
        assert client.send("PUT", "/fair-share/domains/fair/default/weight", {}).status == 401
