# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line 26: histories of scheduling, days of use, fair share."""

import json

import pytest

from client import ADMIN, USER
from cluster import WAITS, Cluster, batch, wait_for, wait_status
from real_client import RealClient

VERSIONS = ("26.9.6",)


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        made.start_manager()
        made.start_agent()
        yield made
        made.stop()


def listed(bai, *words):
    """The JSON that it prints after the line that it is older than the manager."""
    text = bai.does(*words, "--json")
    return json.loads(text[min(at for at in map(text.find, ("[\n", "[]", "{")) if at >= 0):])


@pytest.mark.backendai("scheduling-history session list")
def test_histories_of_sessions(cluster, bai):
    user, command = cluster.client(USER), ("scheduling-history", "session", "list")
    assert user.post("/session", batch("soon", "true")).status == 201
    ended = wait_status(user, "soon", "TERMINATED")["id"]
    assert user.post("/session", batch("never", "true", **WAITS)).status == 201
    waiting = user.get("/aliquot/v1/sessions/never").json["id"]
    steps = listed(bai, *command, "--session-id", ended, "--order", "ASC")
    assert (steps[0]["phase"], steps[0]["from_status"], steps[0]["to_status"]) == (
        "schedule-sessions", "PENDING", "SCHEDULED")
    assert steps[-1]["to_status"] == "TERMINATED" and {step["result"] for step in steps} == {"SUCCESS"}
    assert all(before["to_status"] == after["from_status"] for before, after in zip(steps, steps[1:]))
    [failed] = wait_for(lambda: listed(bai, *command, "--session-id", waiting), 30, "an attempt")
    assert (failed["result"], failed["error_code"]) == ("FAILURE", "no-capacity")
    assert failed["message"] and failed["attempts"] >= 1
    assert listed(bai, *command, "--result", "FAILURE", "--error-code", "capac", "--phase", "sched",
                  "--message", "cpu") == [failed]
    last = listed(bai, *command, "--to-status", "TERMINATED", "--from-status", "RUNNING",
                  "--from-status", "TERMINATING", "--limit", "1")
    assert last == steps[-1:]
    assert f"Session: {ended}" in bai.does(*command, "--group", "--order-by", "updated_at")
    assert "no-capacity" in bai.does(*command, "--session-id", waiting, "-v")
    assert "No session history" in bai.does(*command, "--result", "STALE")
    assert user.delete("/session/never").status == 200
    other = RealClient(bai.server, cluster.address, USER)
    assert "The role is not sufficient" in other.fails(*command)


def day_of(cluster, name, **more):
    """What a session that has ended held, which is known from its times."""
    user = cluster.client(USER)
    assert user.post("/session", batch(name, "true", **more)).status == 201
    return wait_status(user, name, "TERMINATED")


def owner_of(cluster, session):
    """Ids of its user and project."""
    client = cluster.client(ADMIN)
    users, groups = (client.get(f"/aliquot/v1/{kind}").json["items"] for kind in ("users", "groups"))
    return (next(user["id"] for user in users if user["email"] == session["user"]),
            next(group["id"] for group in groups if group["name"] == session["group"]))


@pytest.mark.backendai("resource-usage domain list", "resource-usage project list",
                       "resource-usage user list")
def test_days_of_use(cluster, bai):
    session = day_of(cluster, "used")
    user, project = owner_of(cluster, session)
    group = ("--resource-group", "default", "--domain-name", "default")
    narrowed = {"domain": group, "project": (*group, "--project-id", project),
                "user": (*group, "--project-id", project, "--user-uuid", user)}
    for level, words in narrowed.items():
        days = listed(bai, "resource-usage", level, "list", *words)
        assert len(days) == 1 and days[0]["resource_group"] == "default", days
        held = {entry["resource_type"]: float(entry["quantity"])
                for entry in days[0]["resource_usage"]["entries"]}
        assert 0 < held["cpu"] < 86400 and held["mem"] >= held["cpu"] * (64 << 20) * 0.99
        assert days[0]["metadata"]["period_start"] == session["created_at"][:10]
        [same] = listed(bai, "resource-usage", level, "list", "--order", "ASC")
        assert same["id"] == days[0]["id"]
        assert listed(bai, "resource-usage", level, "list", "--offset", "1") == []
        assert listed(bai, "resource-usage", level, "list", "--domain-name", "none") == []
        # of days it prints members that its own type lacks
        assert "period_start" in bai.fails("resource-usage", level, "list")
        assert "No " in bai.does("resource-usage", level, "list", "--resource-group", "none")
    # its library has no such function
    for words in (("rg-domain-usage", "list", "default"), ("rg-project-usage", "list", "default",
                  "default"), ("rg-user-usage", "list", "default", "default", project)):
        assert "has no attribute" in bai.fails("fair-share", *words)


USAGE = """
import json, sys
from ai.backend.client.session import Session
from ai.backend.common.dto.manager import fair_share as dto
group, domain, project, day = sys.argv[1:]
with Session() as session:
    usage = session.ResourceUsage
    for found in (
            usage.rg_search_domain_usage_buckets(group, dto.SearchDomainUsageBucketsRequest(
                filter=dto.DomainUsageBucketFilter(period_start={"after": day, "before": day}))),
            usage.rg_search_project_usage_buckets(
                group, domain, dto.SearchProjectUsageBucketsRequest()),
            usage.rg_search_user_usage_buckets(
                group, domain, project, dto.SearchUserUsageBucketsRequest())):
        print(json.dumps([found.pagination.total, *(str(item.metadata.period_start)
                          for item in found.items)]))
"""


def test_days_of_use_of_a_resource_group(cluster, bai):
    """Which the client's library can ask for."""
    session = day_of(cluster, "used-too")
    project = owner_of(cluster, session)[1]
    day = session["created_at"][:10]
    code, said = bai.python(USAGE, "default", "default", project, day)
    assert code == 0, said
    found = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    assert len(found) == 3 and all(total >= 1 and day in days for total, *days in found), said


@pytest.fixture
def fair(cluster):
    """Its group schedules by fair share; the ids of a user and a project that used something."""
    admin = cluster.client(ADMIN)
    set_to = {"scheduler": "fair-share"}
    assert admin.send("PATCH", "/aliquot/v1/resource-groups/default", set_to).status == 200
    yield owner_of(cluster, day_of(cluster, "shared"))
    set_to = {"scheduler": "fifo", "scheduler_opts": {}}
    assert admin.send("PATCH", "/aliquot/v1/resource-groups/default", set_to).status == 200


def own_view(cluster, level):
    """What Aliquot's own list says of a level."""
    path = "/aliquot/v1/resource-groups/default/fair-share"
    rows = wait_for(lambda: cluster.client(ADMIN).get(path).json.get("items"), 30, "shares")
    return [row for row in rows if row["level"] == level]


@pytest.mark.backendai("fair-share domain get", "fair-share project get", "fair-share user get",
                       "fair-share rg-domain get", "fair-share rg-project get",
                       "fair-share rg-user get", "fair-share domain list",
                       "fair-share project list", "fair-share user list",
                       "fair-share rg-domain list", "fair-share rg-project list",
                       "fair-share rg-user list")
def test_shares(cluster, bai, fair):
    user, project = fair
    for level, words in (("domain", ()), ("project", (project,)), ("user", (project, user))):
        [own] = own_view(cluster, level)
        names = ("default", *words) if words else ("default", "default")
        got = listed(bai, "fair-share", level, "get", *names)
        scoped = listed(bai, "fair-share", f"rg-{level}", "get", "default", "default", *words)
        options = ("--resource-group", "default", "--domain-name", "default")
        [found] = listed(bai, "fair-share", level, "list", *options)
        [found_there] = listed(bai, "fair-share", f"rg-{level}", "list", "default",
                               *("default", *words)[:{"domain": 0, "project": 1, "user": 2}[level]])
        for share in (got, scoped, found, found_there):
            now = share["calculation_snapshot"]
            assert share["id"] == got["id"] and share["resource_group"] == "default"
            assert abs(float(now["fair_share_factor"]) - own["factor"]) < 1e-6
            assert abs(float(now["normalized_usage"]) - own["usage"]) < 1e-6
            assert float(share["spec"]["weight"]) == own["weight"] == 1
        assert "Fair Share Factor: " in bai.does("fair-share", level, "get", *names)
        assert "Total: 1" in bai.does("fair-share", level, "list", "--order", "ASC")
        assert "No " in bai.does("fair-share", level, "list", "--domain-name", "none")
    assert "order" in bai.fails("fair-share", "user", "list", "--order-by", "created_at")
    assert "no resource group" in bai.fails("fair-share", "domain", "get", "none", "default")
    assert "no domain" in bai.fails("fair-share", "domain", "get", "default", "none")


@pytest.mark.backendai("fair-share domain set-weight", "fair-share project set-weight",
                       "fair-share user set-weight")
def test_weights(cluster, bai, fair):
    user, project = fair
    within = ("--domain", "default")
    for level, words in (("domain", ("default",)), ("project", (project, *within)),
                         ("user", (project, user, *within))):
        command = ("fair-share", level, "set-weight", "default", *words)
        assert listed(bai, *command, "--weight", "2.5")["spec"]["weight"] == "2.5"
        [own] = own_view(cluster, level)
        assert own["weight"] == 2.5 and abs(own["factor"] - 2 ** (-own["usage"] / 2.5)) < 1e-9
        assert "above 0" in bai.fails(*command, "--weight", "-1")
        bai.does(*command)
        assert own_view(cluster, level)[0]["weight"] == 1, "the default again"
    other = cluster.client(ADMIN).post("/aliquot/v1/groups", {"name": "other", "domain": "default"})
    assert "no member" in bai.fails("fair-share", "user", "set-weight", "default",
                                    other.json["id"], user, *within, "--weight", "2")


@pytest.mark.backendai("fair-share resource-group spec", "fair-share resource-group specs")
def test_settings_of_fair_share(cluster, bai, fair):
    # it changes them, and fails to print what they are then
    said = bai.fails("fair-share", "resource-group", "update-spec", "default", "--half-life-days",
                     "3", "--lookback-days", "14", "--default-weight", "2", "--resource-weight",
                     "cpu=4", "--resource-weight", "mem=null")
    assert "has no attribute" in said
    [own] = own_view(cluster, "domain")
    assert own["weight"] == 2
    shown = bai.does("fair-share", "resource-group", "spec", "default")
    for line in ("Half Life Days: 3", "Lookback Days: 14", "Default Weight: 2", "  cpu: 4",
                 "  mem: 0.001"):
        assert line in shown, shown
    assert "Resource Group: default" in bai.does("fair-share", "resource-group", "specs")
    assert "decay_unit_days" in bai.fails("fair-share", "resource-group", "update-spec", "default",
                                          "--decay-unit-days", "2")
    assert "no slot" in bai.fails("fair-share", "resource-group", "update-spec", "default",
                                  "--resource-weight", "coffee=2")


def test_without_fair_share_there_are_no_shares(cluster, bai):
    for words in (("domain", "get", "default", "default"),
                  ("domain", "set-weight", "default", "default", "--weight", "2"),
                  ("resource-group", "update-spec", "default", "--half-life-days", "3"),
                  ("rg-domain", "list", "default")):
        assert "does not schedule by fair share" in bai.fails("fair-share", *words)
    assert "No domain fair shares" in bai.does("fair-share", "domain", "list")
