# SPDX-License-Identifier: Apache-2.0
"""/resource: presets, usage of projects, statistics of a month; operations on agents."""

import datetime

import pytest

from client import ADMIN, Client
from cluster import WAITS, Cluster, batch, wait_status

TODAY = "%Y%m%d"


@pytest.fixture
def preset(admin):
    """Makes presets of this test's own, and removes them."""
    made = []

    def make(name, **body):
        made.append(name)
        return admin.send("PUT", "/aliquot/v1/resource-presets/" + name, body)
    yield make
    for name in made:
        admin.delete("/aliquot/v1/resource-presets/" + name)


def test_presets(admin, user, preset):
    assert preset("small", resource_slots={"cpu": 1, "mem": "64m"}).status == 204
    assert preset("huge", resource_slots={"cpu": "1000"}, shared_memory="1g").status == 204
    want = [{"name": "huge", "resource_slots": {"cpu": "1000"}, "shared_memory": "1073741824"},
            {"name": "small", "resource_slots": {"cpu": "1", "mem": "67108864"},
             "shared_memory": None}]
    assert user.get("/resource/presets").json == {"presets": want}
    own = [{**want[0], "shared_memory": 1 << 30}, want[1]]
    assert user.get("/aliquot/v1/resource-presets").json == {"items": own, "total": 2}
    checked = user.post("/resource/check-presets", {"group": "default"}).json["presets"]
    assert [(one["name"], one["allocatable"]) for one in checked] == [("huge", False),
                                                                      ("small", True)]
    assert preset("small", resource_slots={"cpu": 2}).status == 204
    assert user.get("/resource/presets").json["presets"][1]["resource_slots"] == {"cpu": "2"}
    assert admin.delete("/aliquot/v1/resource-presets/small").status == 204
    assert admin.delete("/aliquot/v1/resource-presets/small").status == 404


def test_presets_of_the_command_line(cluster, admin, preset):
    def aliquot(*words):
        return cluster.cli("admin", "preset", *words)
    made = aliquot("set", "by-hand", "-r", "cpu=1,mem=64m", "--shared-memory", "1g")
    assert made.returncode == 0, made
    try:
        shown = aliquot("ls", "--no-header")
        assert shown.returncode == 0, shown
        assert shown.stdout.split(None, 1)[0] == "by-hand" and "64 MiB" in shown.stdout
        assert "1 GiB" in shown.stdout
        assert aliquot("ls", "-o", "name").stdout.split() == ["by-hand"]
        assert aliquot("set", "by-hand").returncode == 2
    finally:
        assert aliquot("rm", "by-hand").returncode == 0
    assert aliquot("rm", "by-hand").returncode == 5


def test_presets_of_an_agent_that_takes_nothing(cluster, admin, user, preset):
    preset("any", resource_slots={"cpu": "1"})
    [agent] = [one["id"] for one in admin.get("/aliquot/v1/agents").json["items"]]
    operation = "/manager/scheduler/operation"
    try:
        assert admin.post(operation, {"op": "exclude-agents", "args": [agent]}).status == 204
        assert admin.get("/aliquot/v1/agents/" + agent).json["schedulable"] is False
        [checked] = user.post("/resource/check-presets", {}).json["presets"]
        assert checked["allocatable"] is False
    finally:
        assert admin.post(operation, {"op": "include-agents", "args": [agent]}).status == 204
    assert admin.get("/aliquot/v1/agents/" + agent).json["schedulable"] is True


@pytest.mark.parametrize("name, body, field", [
    ("a b", {"resource_slots": {"cpu": 1}}, "name"),
    ("x" * 65, {"resource_slots": {"cpu": 1}}, "name"),
    ("p", {}, "resource_slots"), ("p", {"resource_slots": {}}, "resource_slots"),
    ("p", {"resource_slots": {"cpu": "much"}}, "resource_slots"),
    ("p", {"resource_slots": {"unknown.slot": 1}}, "resource_slots"),
    ("p", {"resource_slots": {"cpu": -1}}, "resource_slots"),
    ("p", {"resource_slots": "cpu"}, "resource_slots"),
    ("p", {"resource_slots": {"cpu": 1}, "shared_memory": "many"}, "shared_memory")])
def test_a_bad_preset(admin, name, body, field):
    reply = admin.send("PUT", "/aliquot/v1/resource-presets/" + name.replace(" ", "%20"), body)
    assert (reply.slug, list(reply.json["data"])) == ("invalid-api-params", [field]), reply


def test_presets_are_there_after_a_restart():
    with Cluster() as cluster:
        cluster.start_manager()
        assert cluster.client().send("PUT", "/aliquot/v1/resource-presets/kept",
                                     {"resource_slots": {"cpu": 1}}).status == 204
        cluster.programs["manager"].kill()
        cluster.start_manager()
        assert cluster.client().get("/resource/presets").json["presets"][0]["name"] == "kept"
        cluster.stop()


def test_operations_of_no_sense(admin, user):
    operation = "/manager/scheduler/operation"
    assert admin.post(operation, {"op": "include-agents", "args": []}).status == 204
    missing = admin.post(operation, {"op": "exclude-agents", "args": ["i-nobody"]})
    assert (missing.status, missing.json["title"]) == (404, "No such agent instance.")
    odd = admin.post(operation, {"op": "destroy-agents", "args": []})
    assert list(odd.json["data"]) == ["op"]
    assert user.post(operation, {"op": "include-agents", "args": []}).status == 401


@pytest.mark.parametrize("method, path", [
    ("GET", "/resource/watcher"), ("POST", "/resource/watcher/agent/stop"),
    ("POST", "/resource/watcher/agent/restart")])
def test_agents_that_systemd_does_not_run(admin, method, path):
    reply = admin.send(method, path, {"agent_id": "agent"})
    assert (reply.status, reply.slug) == (503, "service-unavailable"), reply
    assert "systemd does not run it" in reply.json["msg"]
    assert admin.send(method, path, {"agent_id": "nobody"}).status == 404
    assert list(admin.send(method, path, {}).json["data"]) == ["agent_id"]


def test_an_agent_that_runs_need_not_be_started(admin, user):
    start = "/resource/watcher/agent/start"
    assert admin.post(start, {"agent_id": "agent"}).json["message"] == "agent agent runs"
    assert admin.post(start, {"agent_id": "nobody"}).status == 404
    assert user.post(start, {"agent_id": "agent"}).status == 401


def test_recalculation(admin):
    assert (admin.post("/resource/recalculate-usage").status,
            admin.post("/resource/recalculate-usage").json) == (200, {})


# ---- usage ----

def project_of(user):
    return user.get("/auth/role?group=default") and user.gql(
        '{ groups_by_name(name: "default") { id } }').json["data"]["groups_by_name"][0]["id"]


@pytest.fixture(scope="module", name="used")
def used_fixture(user):
    """A session that has ended, and one that never ran."""
    ended = user.post("/session", batch("usage-ended", "echo x")).json["sessionId"]
    never = user.post("/session", batch("usage-never", "true", **WAITS)).json["sessionId"]
    wait_status(user, ended, "TERMINATED")
    return ended, never


def usage(admin, **params):
    reply = admin.send("GET", "/resource/usage/period", params)  # 22.03: a body
    assert reply.status == 200, reply
    return reply.json


def day(shift=0):
    return (datetime.datetime.now(datetime.timezone.utc)
            + datetime.timedelta(days=shift)).strftime(TODAY)


def test_usage_of_a_period(admin, user, used):
    project = project_of(user)
    [item] = usage(admin, group_id=project, start_date=day(-1), end_date=day(1))
    assert (item["g_id"], item["g_name"], item["domain_name"]) == (project, "default", "default")
    assert (item["project_id"], item["project_name"]) == (project, "default")
    named = {one["name"]: one for one in item["c_infos"]}
    assert "usage-never" not in named, "it held nothing"
    assert usage(admin, group_id=project, start_date=day(-9), end_date=day(-2)) == []
    info = named["usage-ended"]
    assert (info["cpu_allocated"], info["smp"], info["mem_allocated"]) == (1, 1, 64 << 20)
    assert (info["status"], info["image_name"], info["email"]) == ("TERMINATED", "sh",
                                                                    "user@lablup.com")
    assert info["used_days"] in (1, 2) and info["used_time"].startswith("0:0")
    assert info["device_type"] == [] and info["nfs"] == [] and info["gpu_allocated"] == 0
    for time in ("created_at", "terminated_at", "status_changed"):
        datetime.datetime.fromisoformat(info[time])
    assert item["g_smp"] == sum(one["smp"] for one in item["c_infos"])
    assert item["g_mem_allocated"] == sum(one["mem_allocated"] for one in item["c_infos"])
    assert item["total_usage"]["cpu_allocated"] == item["g_cpu_allocated"]
    query = f"group_id={project}&start_date={day(-1)}&end_date={day(1)}"  # 26: a query
    assert [one["g_id"] for one in admin.get("/resource/usage/period?" + query).json] == [project]


def test_usage_of_a_month(admin, user, used):
    now = datetime.datetime.now(datetime.timezone.utc)
    months = {(now + datetime.timedelta(hours=hours)).strftime("%Y%m") for hours in (-1, 1)}
    project = project_of(user)
    seen = []
    for one in months:
        for ids in ([], [project]):
            reply = admin.send("GET", "/resource/usage/month", {"month": one, "group_ids": ids})
            assert reply.status == 200, reply
            seen += [info["name"] for item in reply.json for info in item["c_infos"]]
    assert seen.count("usage-ended") in (2, 4)
    whole = admin.get(f"/resource/usage/month?month={min(months)}&group_ids=")  # as client 26 does
    assert whole.status == 200, whole
    nothing = "/resource/usage/month?month=200001&group_ids=" + ",".join([project] * 3)
    assert admin.get(nothing).json == []


@pytest.mark.parametrize("params, field", [
    ({"start_date": "20260101"}, "end_date"),
    ({"start_date": "20260101", "end_date": "20251231"}, "end_date"),
    ({"start_date": "20260101", "end_date": "20260411"}, "end_date"),
    ({"start_date": "2026-1-1", "end_date": "20260102"}, "start_date"),
    ({"start_date": "20260230", "end_date": "20260301"}, "start_date"),
    ({"start_date": "20260101", "end_date": "20260102", "group_id": "default"}, "group_ids"),
    ({"month": "202613"}, "month"), ({"month": "2026"}, "month"), ({}, "month"),
    ({"month": "202601", "group_ids": ["x"]}, "group_ids")])
def test_usage_of_no_time(admin, params, field):
    what = "period" if "start_date" in params else "month"
    reply = admin.send("GET", "/resource/usage/" + what, params)
    assert (reply.slug, list(reply.json["data"])) == ("invalid-api-params", [field]), reply


def test_usage_is_for_administrators(admin, user, domain_admin, used):
    paths = (f"usage/month?month={day()[:6]}", "stats/admin/month",
             f"usage/period?start_date={day(-1)}&end_date={day(1)}")
    for path in paths:
        assert user.get("/resource/" + path).status == 401
        assert domain_admin.get("/resource/" + path).status == 200
    shown = [item for item in domain_admin.get("/resource/" + paths[2]).json]
    assert shown and {item["domain_name"] for item in shown} == {"default"}


def test_administrators_of_a_domain_see_that_domain(admin, domain_admin, used):
    made = [admin.post("/aliquot/v1/domains", {"name": "far"}),
            admin.post("/aliquot/v1/users", {"email": "far@lablup.com", "domain": "far",
                                             "role": "admin"})]
    assert [one.status for one in made] == [201, 201], made
    key = admin.post("/aliquot/v1/keypairs", {"user": "far@lablup.com"}).json
    far = Client(admin.address, (key["access_key"], key["secret_key"]))
    query = f"/resource/usage/period?start_date={day(-1)}&end_date={day(1)}"
    assert far.get(query).json == []
    assert all(one["num_sessions"]["value"] == 0
               for one in far.get("/resource/stats/admin/month").json)
    named = far.get(query + "&user=user@lablup.com")
    assert list(named.json["data"]) == ["user"], "as if there were no such user"


def test_usage_of_one_user(admin, used):
    query = f"/resource/usage/period?start_date={day(-1)}&end_date={day(1)}&user="
    for user in ("user@lablup.com", "dfa9da54-4b28-432f-be29-c0d680c7a412"):
        items = admin.get(query + user).json
        assert {info["email"] for item in items for info in item["c_infos"]} == {"user@lablup.com"}
    assert admin.get(query + "00000000-0000-4000-8000-000000000001").json == []
    assert list(admin.get(query + "nobody@lablup.com").json["data"]) == ["user"]


def test_statistics_of_a_month(admin, user, domain_admin, used):
    bins = user.get("/resource/stats/user/month").json
    assert len(bins) == 2880
    assert [b["date"] - a["date"] for a, b in zip(bins, bins[1:])] == [900] * 2879
    assert bins[0]["num_sessions"] == {"value": 0, "unit_hint": "count"}
    held = [one for one in bins if one["num_sessions"]["value"]]
    assert held and all(one["cpu_allocated"]["value"] >= 1 for one in held)
    assert all(one["mem_allocated"]["value"] >= 64 << 20 for one in held)
    assert set(bins[0]) == {"date", "num_sessions", "cpu_allocated", "mem_allocated",
                            "gpu_allocated", "io_read_bytes", "io_write_bytes", "disk_used"}
    everybody = admin.get("/resource/stats/admin/month").json
    total = [sum(one["num_sessions"]["value"] for one in list) for list in (bins, everybody)]
    assert total[1] >= total[0]


def test_freeze_by_force():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        admin = cluster.client(ADMIN)
        made = [admin.post("/session", batch("forced-run", "sleep 600")).json["sessionId"],
                admin.post("/session", batch("forced-wait", "true", **WAITS)).json["sessionId"]]
        wait_status(admin, made[0], "RUNNING")
        refused = admin.send("PUT", "/manager/status", {"status": "running", "force_kill": True})
        assert list(refused.json["data"]) == ["force_kill"]
        assert admin.send("PUT", "/manager/status",
                          {"status": "frozen", "force_kill": True}).status == 204
        assert wait_status(admin, made[0], "TERMINATED")["reason"] == "force-terminated"
        wait_status(admin, made[1], "CANCELLED")
        assert admin.post("/session", batch("later", "true")).slug == "server-frozen"
        assert admin.send("PUT", "/manager/status",
                          {"status": "running", "force_kill": False}).status == 204
        cluster.stop()


# ---- what is left, and who is told ----

def left(client, **asked):
    reply = client.post("/resource/check-presets", asked)
    assert reply.status == 200, reply
    return reply.json


def test_the_least_that_any_limit_leaves(admin, user, preset):
    """Of keypair, user, project and domain, as sessions are refused by all of them."""
    preset("two", resource_slots={"cpu": "2"})
    project, groups = project_of(user), "/aliquot/v1/groups/"
    assert left(user)["keypair_remaining"]["cpu"] == "Infinity"
    before = left(user)["presets"]
    for path in (groups + project, "/aliquot/v1/users/user@lablup.com",
                 "/aliquot/v1/domains/default"):
        assert admin.send("PATCH", path, {"total_slots": {"cpu": "1"}}).status == 200
        try:
            seen = left(user)
            assert seen["keypair_remaining"]["cpu"] == "1", path
            assert seen["keypair_limits"]["cpu"] == "Infinity"
            assert [one["allocatable"] for one in seen["presets"]] == [False]
            assert (seen["group_limits"]["cpu"] == "1") == path.startswith(groups)
        finally:
            assert admin.send("PATCH", path, {"total_slots": {}}).status == 200
    assert left(user)["presets"] == before


def test_foreign_projects_and_resource_groups_are_as_if_not_there(admin, user, domain_admin):
    other = admin.post("/aliquot/v1/groups", {"name": "unseen", "domain": "default"}).json["id"]
    assert admin.post("/aliquot/v1/resource-groups", {"name": "unseen-group"}).status == 201
    try:
        for group in (other, "unseen"):
            for ask in (lambda g: user.post("/resource/check-presets", {"group": g}),
                        lambda g: user.get("/scaling-groups?group=" + g)):
                assert ask(group).status == 404
            assert "scaling_groups" in left(domain_admin, group=group)
        assert list(left(user)["scaling_groups"]) == ["default"]
        refused = user.post("/resource/check-presets", {"scaling_group": "unseen-group"})
        assert (refused.status, refused.json["title"]) == (404, "No such scaling group.")
        allow = {"group": project_of(user)}
        assert admin.post("/aliquot/v1/resource-groups/unseen-group/allow", allow).status == 204
        assert list(left(user)["scaling_groups"]) == ["default", "unseen-group"]
        assert list(left(user, scaling_group="unseen-group")["scaling_groups"]) == ["unseen-group"]
    finally:
        admin.delete("/aliquot/v1/groups/" + other)
        admin.delete("/aliquot/v1/resource-groups/unseen-group")


def test_a_client_that_names_no_project_and_sends_nothing(user):
    assert user.send("POST", "/resource/check-presets", None).status == 200  # as 22.03 does


def test_the_license(user, nobody):
    shown = user.get("/license").json
    assert shown["status"] == "valid" and shown["certificate"]["license"] == "Apache-2.0"
    assert nobody.get("/license").status == 401


def test_registries_by_the_newer_name(admin, user):
    key = "config/docker/registry/registry.example.com"
    made = admin.post("/config/set", {"key": key, "value": "https://registry.example.com"})
    assert made.status == 200, made
    try:
        seen = [admin.get(path).json for path in ("/config/docker-registries",
                                                  "/resource/container-registries")]
        assert seen[0] == seen[1] == {"registry.example.com": "https://registry.example.com"}
    finally:
        admin.post("/config/delete", {"key": key, "prefix": True})
    assert user.get("/resource/container-registries").status == 401


def test_presets_by_graphql(admin, user):
    def mutate(client, field, **variables):
        kinds = {"name": "String!", "props": f"{field.split('_')[0].title()}ResourcePresetInput!"}
        given = ", ".join(f"${key}: {kinds[key]}" for key in variables)
        passed = ", ".join(f"{key}: ${key}" for key in variables)
        made = "resource_preset { name }" if field.startswith("create") else ""
        reply = client.gql(f"mutation({given}) {{ r: {field}({passed}) {{ ok msg {made} }} }}",
                           variables)
        return reply.json["data"]["r"]

    def shown(name="by-gql"):
        return user.gql("query($n: String!) { resource_preset(name: $n) {"
                        " name resource_slots shared_memory } }",
                        {"n": name}).json["data"]["resource_preset"]
    create, modify = "create_resource_preset", "modify_resource_preset"
    slots = {"resource_slots": '{"cpu": 2, "mem": "1g"}'}
    made = mutate(admin, create, name="by-gql", props={**slots, "shared_memory": "64m"})
    assert made == {"ok": True, "msg": "success", "resource_preset": {"name": "by-gql"}}
    want = {"name": "by-gql", "resource_slots": '{"cpu":"2","mem":"1073741824"}',
            "shared_memory": 1 << 26}
    assert shown() == want and shown("none") is None
    assert want in user.gql("{ resource_presets { name resource_slots shared_memory } }").json[
        "data"]["resource_presets"]
    assert "already" in mutate(admin, create, name="by-gql", props=slots)["msg"]
    assert mutate(admin, modify, name="by-gql", props={"resource_slots": '{"cpu": 1}'})["ok"]
    assert shown() == {**want, "resource_slots": '{"cpu":"1"}'}
    assert "no preset" in mutate(admin, modify, name="none", props=slots)["msg"]
    for props in ({}, {"resource_slots": "[]"}, {"resource_slots": '{"cpu": -1}'}):
        assert mutate(admin, create, name="bad", props=props)["ok"] is False, props
    refused = mutate(user, create, name="mine", props=slots)
    assert refused["msg"] == "no permission to execute create_resource_preset"
    assert mutate(admin, "delete_resource_preset", name="by-gql")["ok"] and shown() is None
    assert "no preset" in mutate(admin, "delete_resource_preset", name="by-gql")["msg"]
