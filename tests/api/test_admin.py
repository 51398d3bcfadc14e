# SPDX-License-Identifier: Apache-2.0
"""Agents, accounts, resources and the audit."""

import subprocess

import pytest

from client import Client
from cluster import batch, wait_status
from world import BUILD


def only_agent(admin):
    items = admin.get("/aliquot/v1/agents").json["items"]
    assert len(items) == 1
    return items[0]


def test_agents(admin, domain_admin):
    agent = only_agent(admin)
    assert agent["status"] == "ALIVE" and agent["connected"] and agent["schedulable"]
    assert "cpu" in agent["available_slots"] and "mem" in agent["available_slots"]
    assert domain_admin.get("/aliquot/v1/agents/" + agent["id"]).json["id"] == agent["id"]
    missing = admin.get("/aliquot/v1/agents/i-nobody")
    assert (missing.status, missing.json["title"]) == (404, "No such agent instance.")
    assert admin.get("/aliquot/v1/agents?status=LOST").json["total"] == 0
    assert admin.get("/aliquot/v1/agents?status=odd").slug == "invalid-api-params"


def test_drain(admin, user, name):
    agent = only_agent(admin)["id"]
    assert admin.post(f"/aliquot/v1/agents/{agent}/drain", {"reason": "new disks"}).status == 204
    try:
        shown = admin.get("/aliquot/v1/agents/" + agent).json
        assert shown["schedulable"] is False and shown["drain_reason"] == "new disks"
        session = user.post("/session", batch(name, "true")).json["sessionId"]
        why = user.get(f"/aliquot/v1/sessions/{session}/why").json
        assert why["status"] == "PENDING", why
    finally:
        assert admin.post(f"/aliquot/v1/agents/{agent}/undrain").status == 204
    assert only_agent(admin)["schedulable"]
    assert wait_status(user, session, "TERMINATED")["result"] == "SUCCESS"


def test_tokens(admin, cluster, tmp_path):
    reply = admin.post("/aliquot/v1/join-tokens", {"agent_id": "i-other", "expires_sec": 60})
    assert reply.status == 201 and reply.json["token"].startswith("aq1.")
    assert reply.json["expires_at"]
    join = [BUILD / "aliquot-agent", "join", "--state"]
    done = subprocess.run([*join, tmp_path / "a", cluster.link, reply.json["token"][:-4] + "AAAA"],
                          capture_output=True, timeout=60)
    assert done.returncode != 0
    assert admin.post("/aliquot/v1/join-tokens", {"expires_sec": 0}).slug == "invalid-api-params"
    assert admin.post("/aliquot/v1/join-tokens", {"agent_id": "../x"}).slug == "invalid-api-params"


def test_busy_agent_is_not_removed(admin, user, name):
    agent = only_agent(admin)["id"]
    session = user.post("/session", batch(name, "sleep 60", enqueueOnly=False)).json["sessionId"]
    assert admin.delete("/aliquot/v1/agents/" + agent).status == 503
    assert user.delete("/session/" + session).status == 200
    wait_status(user, session, "TERMINATED")


def test_users(admin, nobody):
    made = admin.post("/aliquot/v1/users", {
        "email": "new@lablup.com", "domain": "default", "full_name": "New One",
        "password": "very secret", "groups": ["default"]})
    assert made.status == 201, made
    assert made.json["role"] == "user" and made.json["username"] == "new@lablup.com"
    assert len(made.json["groups"]) == 1
    same = admin.post("/aliquot/v1/users", {"email": "newer@lablup.com", "domain": "default",
                                            "username": "new@lablup.com"})
    assert same.slug == "invalid-api-params" and "username" in same.json["data"], same
    again = admin.post("/aliquot/v1/users", {"email": "new@lablup.com", "domain": "default"})
    assert again.status == 400, again
    changed = admin.send("PATCH", "/aliquot/v1/users/new@lablup.com",
                         {"full_name": "Newer", "groups": []})
    assert changed.status == 200 and changed.json["full_name"] == "Newer"
    assert changed.json["groups"] == []
    for bad in ({"role": "king"}, {"status": "odd"}, {"groups": ["nobody"]}, {"password": "short"}):
        reply = admin.send("PATCH", "/aliquot/v1/users/new@lablup.com", bad)
        assert reply.slug == "invalid-api-params" and list(bad) == list(reply.json["data"]), reply
    assert admin.send("PATCH", "/aliquot/v1/users/who@lablup.com", {"role": "user"}).status == 404
    login = {"type": "keypair", "domain": "default", "username": "new@lablup.com",
             "password": "very secret"}
    key = nobody.post("/auth/authorize", login).json["data"]
    theirs = Client(admin.address, (key["access_key"], key["secret_key"]))
    assert theirs.get("/auth?echo=x").status == 200
    admin.send("PATCH", "/aliquot/v1/users/new@lablup.com", {"status": "inactive"})
    assert theirs.get("/auth?echo=x").json["msg"] == "Access key not found"
    assert nobody.post("/auth/authorize", login).status == 401


def keypairs(admin, email):
    return [row for row in admin.get("/aliquot/v1/keypairs?limit=1000").json["items"]
            if row["user"] == email]


@pytest.mark.parametrize("role, is_admin", (("user", False), ("admin", True)))
def test_a_new_user_has_one_keypair_and_logs_in(admin, nobody, role, is_admin):
    email = f"first-{role}@lablup.com"
    made = admin.post("/aliquot/v1/users", {"email": email, "domain": "default", "role": role,
                                            "password": "very secret"})
    assert made.status == 201, made
    [key] = keypairs(admin, email)
    assert (key["policy"], key["is_active"], key["is_admin"]) == ("default", True, is_admin)
    login = nobody.post("/auth/authorize", {"type": "keypair", "domain": "default",
                                            "username": email, "password": "very secret"})
    assert login.status == 200 and login.json["data"]["access_key"] == key["access_key"]
    theirs = Client(admin.address, (key["access_key"], login.json["data"]["secret_key"]))
    assert theirs.get("/auth?echo=x").status == 200


def test_a_login_without_a_keypair_names_the_remedy_after_the_right_password(cluster, admin, nobody):
    email = "keyless@lablup.com"
    login = {"type": "keypair", "domain": "default", "username": email, "password": "very secret"}
    admin.post("/aliquot/v1/users", {"email": email, "domain": "default", "password": "very secret"})
    [key] = keypairs(admin, email)
    assert admin.delete("/aliquot/v1/keypairs/" + key["access_key"]).status == 204
    refused = nobody.post("/auth/authorize", login)
    assert (refused.status, refused.slug) == (401, "auth-failed")
    assert "No API keypairs found" in refused.json["msg"], refused.json
    assert "aliquot admin keypair create" in refused.json["msg"]
    wrong = nobody.post("/auth/authorize", {**login, "password": "wrong"})
    assert wrong.json["msg"] == "User credential mismatch."
    assert f"aliquot admin keypair create {email}" in cluster.log_of("manager")


@pytest.mark.parametrize("email", ("ann@lab_one.example", "b.o'b+1=x/y%z@labs-2.example"))
def test_addresses_of_users(admin, email):
    assert admin.post("/aliquot/v1/users", {"email": email, "domain": "default"}).status == 201


@pytest.mark.parametrize("email", ("ann@lab one.example", "ann@lab;one", "-ann@lab", "ann@", "a$b@lab"))
def test_addresses_that_no_user_has(admin, email):
    refused = admin.post("/aliquot/v1/users", {"email": email, "domain": "default"})
    assert refused.slug == "invalid-api-params" and list(refused.json["data"]) == ["email"], refused


def test_keypairs(admin, user):
    made = admin.post("/aliquot/v1/keypairs", {"user": "user@lablup.com"})
    assert made.status == 201
    key = made.json
    assert len(key["access_key"]) == 20 and len(key["secret_key"]) == 40
    listed = admin.get("/aliquot/v1/keypairs").json["items"]
    assert [{**k, "secret_key": key["secret_key"]} for k in listed
            if k["access_key"] == key["access_key"]] == [key]
    assert key["created_at"] and key["last_used"] is None
    theirs = Client(user.address, (key["access_key"], key["secret_key"]))
    assert theirs.get("/auth?echo=x").status == 200
    assert not any("secret_key" in k for k in listed)
    path = "/aliquot/v1/keypairs/" + key["access_key"]
    assert admin.send("PATCH", path, {"is_active": False}).json["is_active"] is False
    assert theirs.get("/auth?echo=x").status == 401
    assert admin.send("PATCH", path, {"is_active": True}).status == 200
    assert theirs.get("/auth?echo=x").status == 200
    assert admin.send("PATCH", path, {"policy": "nothing"}).status == 404
    assert admin.delete(path).status == 204
    assert admin.delete(path).status == 404
    assert admin.post("/aliquot/v1/keypairs", {"user": "who@lablup.com"}).status == 404


def test_domains_groups_policies_resource_groups(admin, domain_admin):
    made = admin.post("/aliquot/v1/domains", {"name": "physics", "total_slots": {"cpu": "8"}})
    assert made.status == 201 and made.json["total_slots"] == {"cpu": "8"}
    assert admin.post("/aliquot/v1/domains", {"name": "physics"}).status == 400
    assert admin.send("PATCH", "/aliquot/v1/domains/physics",
                      {"is_active": False}).json["is_active"] is False
    assert "physics" not in [d["name"] for d in
                             domain_admin.get("/aliquot/v1/domains").json["items"]]
    assert admin.send("PATCH", "/aliquot/v1/domains/physics", {"is_active": True}).status == 200
    group = admin.post("/aliquot/v1/groups", {"name": "optics", "domain": "physics"})
    assert group.status == 201
    path = "/aliquot/v1/groups/" + group.json["id"]
    assert admin.send("PATCH", path, {"description": "light"}).json["description"] == "light"
    assert admin.post("/aliquot/v1/groups", {"name": "x", "domain": "nowhere"}).status == 404
    policy = admin.post("/aliquot/v1/keypair-policies", {
        "name": "small", "total_slots": {"cpu": "2", "mem": "1g"}, "max_concurrent_sessions": 3})
    assert policy.status == 201 and policy.json["total_slots"]["mem"] == "1073741824"
    assert admin.send("PATCH", "/aliquot/v1/keypair-policies/small",
                      {"max_priority": 50}).json["max_priority"] == 50
    reply = admin.send("PATCH", "/aliquot/v1/keypair-policies/small",
                       {"total_slots": {"cpu": "-1"}})
    assert reply.slug == "invalid-api-params" and list(reply.json["data"]) == ["total_slots.cpu"]
    made = admin.post("/aliquot/v1/resource-groups", {"name": "night", "selection": "dispersed"})
    assert made.status == 201 and made.json["scheduler"] == "fifo"
    assert admin.post("/aliquot/v1/resource-groups/night/allow", {}).slug == "invalid-api-params"
    assert admin.post("/aliquot/v1/resource-groups/night/allow",
                      {"domain": "default"}).status == 204
    assert {"name": "night"} in admin.get("/scaling-groups").json["scaling_groups"]
    assert admin.post("/aliquot/v1/resource-groups/night/allow", {"domain": "none"}).status == 404
    assert admin.post("/aliquot/v1/resource-groups/night/disallow",
                      {"domain": "default"}).status == 204
    assert {"name": "night"} not in admin.get("/scaling-groups").json["scaling_groups"]
    assert admin.post("/aliquot/v1/resource-groups/night/allow",
                      {"domain": "default"}).status == 204
    assert admin.send("PATCH", "/aliquot/v1/resource-groups/night",
                      {"selection": "odd"}).slug == "invalid-api-params"
    changed = admin.send("PATCH", "/aliquot/v1/resource-groups/night", {
        "scheduler": "drf", "selection": "round-robin",
        "scheduler_opts": {"config": {"num_retries_to_skip": 3}, "backfill": True}})
    assert changed.status == 200 and changed.json["scheduler"] == "drf"
    for key, value in {"num_retries_to_skip": {"config": {"num_retries_to_skip": -1}},
                       "backfill": {"backfill": "yes"},
                       "agent_selection_strategy": {"agent_selection_strategy": "NEAREST"}}.items():
        reply = admin.send("PATCH", "/aliquot/v1/resource-groups/night", {"scheduler_opts": value})
        assert reply.slug == "invalid-api-params" and key in str(reply.json), key
    reply = admin.send("PATCH", "/aliquot/v1/resource-groups/night", {"scheduler": "mof"})
    assert reply.slug == "invalid-api-params" and "scheduler" in str(reply.json)
    assert admin.send("PATCH", "/aliquot/v1/resource-groups/night",
                      {"is_active": False}).status == 200


def test_quota(admin, user, name):
    admin.post("/aliquot/v1/keypair-policies", {
        "name": "tiny", "total_slots": {"cpu": "1", "mem": "64m"}})
    key = admin.post("/aliquot/v1/keypairs", {"user": "user@lablup.com", "policy": "tiny"}).json
    small = Client(user.address, (key["access_key"], key["secret_key"]))
    limits = small.post("/resource/check-presets", {"group": "default"}).json
    assert limits["keypair_limits"]["cpu"] == "1" and limits["presets"] == []
    assert limits["group_limits"]["cpu"] == "Infinity"
    assert "default" in limits["scaling_groups"]


def test_resources(user):
    slots = user.get("/config/resource-slots").json
    assert slots["cpu"] == "count" and slots["mem"] == "bytes"
    assert user.get("/scaling-groups?group=default").json == {"scaling_groups": [
        {"name": "default"}]}
    assert user.get("/scaling-groups?group=nobody").status == 404
    assert user.get("/resource/presets").json == {"presets": []}
    limits = user.post("/resource/check-presets", {"group": "default"}).json
    assert set(limits) >= {"keypair_limits", "keypair_using", "keypair_remaining", "group_limits",
                           "group_using", "group_remaining", "scaling_group_remaining",
                           "scaling_groups", "presets"}
    assert user.post("/resource/check-presets", {"group": "nobody"}).status == 404
    status = user.get("/manager/status").json
    assert status["status"] == "running" and status["nodes"][0]["api_version"] == [9, "20250722"]


def test_audit(admin):
    assert admin.get("/aliquot/v1/audit").json == {"clean": True, "findings": []}


def test_who_takes_the_own_right_is_answered(admin):
    """The change is done, and said to be; the next request is refused."""
    email = "steps-down@lablup.com"
    admin.post("/aliquot/v1/users", {"email": email, "domain": "default", "role": "superadmin"})
    key = admin.post("/aliquot/v1/keypairs", {"user": email}).json
    own = Client(admin.address, (key["access_key"], key["secret_key"]))
    reply = own.send("PATCH", "/aliquot/v1/users/" + email, {"role": "user"})
    assert reply.status == 200 and reply.json["role"] == "user", reply
    assert own.send("PATCH", "/aliquot/v1/users/" + email, {"role": "superadmin"}).status == 401
