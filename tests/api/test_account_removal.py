# SPDX-License-Identifier: Apache-2.0
"""Users, projects, domains, policies and resource groups: remove, restore, purge, members."""

import pytest

from client import ADMIN, Client
from cluster import batch

V1 = "/aliquot/v1"


def names(client, path, key="name"):
    joint = "&" if "?" in path else "?"
    return [row[key] for row in client.get(f"{V1}{path}{joint}limit=1000").json["items"]]


def make_user(admin, email, **members):
    made = admin.post(V1 + "/users", {"email": email, "domain": "default", **members})
    assert made.status == 201, made
    key = admin.post(V1 + "/keypairs", {"user": email}).json
    return made.json, Client(admin.address, (key["access_key"], key["secret_key"]))


def waiting(client, name, **members):
    """A session that waits for tomorrow."""
    reply = client.post("/session", batch(name, "true", starts_at="1d", **members))
    assert reply.status in (200, 201), reply
    return reply.json["sessionId"]


def ended(admin, session):
    [row] = admin.get(f"{V1}/sessions?all=true&filter=id==\"{session}\"").json["items"]
    return row


def remove(admin, path, **members):
    return admin.send("DELETE", V1 + path, members)


def purge(admin, path, **members):
    return remove(admin, path, purge=True, **members)


def audit_is_clean(admin):
    return admin.get(V1 + "/audit").json["findings"] == []


# ---- projects of users ----

def projects_of_users(admin):
    rows = admin.get(V1 + "/users?limit=1000").json["items"]
    return {row["email"]: row["projects"] for row in rows}


def test_a_new_user_is_in_the_default_project(admin):
    made, _ = make_user(admin, "joins@lablup.com")
    assert made["projects"] == ["default"] and len(made["groups"]) == 1
    made, _ = make_user(admin, "joins-not@lablup.com", groups=[])
    assert made["projects"] == []
    admin.post(V1 + "/domains", {"name": "bare"})
    made = admin.post(V1 + "/users", {"email": "bare@lablup.com", "domain": "bare"}).json
    assert made["projects"] == [], "the domain has no project"


def test_members_of_a_project(admin, domain_admin):
    project = admin.post(V1 + "/groups", {"name": "lasers", "domain": "default"}).json
    path = f"{V1}/groups/{project['id']}"
    for email in ("m1@lablup.com", "m2@lablup.com"):
        make_user(admin, email)
    users = {"users": ["m1@lablup.com", "m2@lablup.com"]}
    assert admin.post(path + "/add-users", users).status == 204
    assert admin.post(path + "/add-users", users).status == 204, "they are in it already"
    shown = projects_of_users(admin)
    assert sorted(shown["m1@lablup.com"]) == sorted(shown["m2@lablup.com"]) == ["default", "lasers"]
    assert admin.post(path + "/remove-users", {"users": ["m1@lablup.com"]}).status == 204
    shown = projects_of_users(admin)
    assert shown["m1@lablup.com"] == ["default"] and "lasers" in shown["m2@lablup.com"]
    assert admin.post(path + "/add-users", {"users": []}).slug == "invalid-api-params"
    assert admin.post(path + "/add-users", {"users": ["who@lablup.com"]}).status == 404
    admin.post(V1 + "/domains", {"name": "afar"})
    admin.post(V1 + "/users", {"email": "afar@lablup.com", "domain": "afar"})
    reply = admin.post(path + "/add-users", {"users": ["m1@lablup.com", "afar@lablup.com"]})
    assert reply.slug == "invalid-api-params" and "'afar'" in str(reply.json), reply
    assert projects_of_users(admin)["m1@lablup.com"] == ["default"], "all or none"
    assert domain_admin.post(path + "/add-users", users).status == 401
    assert admin.post(V1 + "/groups/nothing/add-users", users).status == 404


# ---- removed and restored ----

@pytest.mark.parametrize("path, list_path, body, key", [
    ("/users/r@lablup.com", "/users", {"email": "r@lablup.com", "domain": "default"}, "email"),
    ("/domains/r-domain", "/domains", {"name": "r-domain"}, "name"),
    ("/groups/{id}", "/groups", {"name": "r-project", "domain": "default"}, "name"),
    ("/keypair-policies/r-policy", "/keypair-policies", {"name": "r-policy"}, "name"),
    ("/resource-groups/r-group", "/resource-groups", {"name": "r-group"}, "name"),
])
def test_removed_restored_purged(admin, domain_admin, path, list_path, body, key):
    made = admin.post(V1 + list_path, body)
    assert made.status == 201, made
    path, name = path.format(**made.json), body[key]
    assert remove(domain_admin, path).status == 401
    assert remove(admin, path, dry_run=True).json["dry_run"] is True
    assert name in names(admin, list_path, key)
    assert remove(admin, path).json["status"] == "removed"
    assert remove(admin, path).status == 200, "it is removed already"
    assert name not in names(admin, list_path, key)
    assert name in names(admin, list_path + "?all=true", key)
    again = admin.post(V1 + list_path, body)
    assert again.status == 400 and "restore or purge it" in again.json["msg"], again
    restored = admin.post(f"{V1}{path}/restore")
    assert restored.status == 200 and restored.json[key] == name, restored
    assert name in names(admin, list_path, key)
    assert purge(admin, path, dry_run=True).json["status"] == "purged"
    assert name in names(admin, list_path, key)
    assert purge(admin, path).status == 200
    assert name not in names(admin, list_path + "?all=true", key)
    assert purge(admin, path).status == 404
    assert admin.post(f"{V1}{path}/restore").status == 404
    assert admin.post(V1 + list_path, body).status == 201, "its name is free"
    assert audit_is_clean(admin)


def test_a_removed_user_is_out_until_restored(admin):
    _, theirs = make_user(admin, "out@lablup.com")
    assert theirs.get("/auth?echo=x").status == 200
    assert remove(admin, "/users/out@lablup.com").status == 200
    assert theirs.get("/auth?echo=x").status == 401
    assert admin.post(V1 + "/users/out@lablup.com/restore").json["status"] == "active"
    assert theirs.get("/auth?echo=x").status == 200


def test_live_sessions_are_in_the_way(admin, name):
    _, theirs = make_user(admin, "busy@lablup.com")
    session = waiting(theirs, name)
    for members in ({}, {"purge": True}, {"purge": True, "force": True}):
        reply = remove(admin, "/users/busy@lablup.com", **members)
        assert reply.status == 400 and name in reply.json["msg"], reply
    assert theirs.get("/auth?echo=x").status == 200, "nothing was changed"
    assert remove(admin, "/users/busy@lablup.com", force=True).json["live_sessions"] == 1
    assert ended(admin, session)["status"] == "CANCELLED"
    assert purge(admin, "/users/busy@lablup.com").json["ended_sessions"] == 1
    assert ended(admin, session)["user"] == "busy@lablup.com", "history keeps its name"
    assert audit_is_clean(admin)


def test_a_purge_takes_along_what_is_attached(admin, name):
    admin.post(V1 + "/domains", {"name": "whole"})
    project = admin.post(V1 + "/groups", {"name": "part", "domain": "whole"}).json
    admin.post(V1 + "/users", {"email": "whole@lablup.com", "domain": "whole", "groups": ["part"]})
    key = admin.post(V1 + "/keypairs", {"user": "whole@lablup.com"}).json["access_key"]
    for leave in ({"domain": "whole"}, {"group": project["id"]}, {"access_key": key}):
        assert admin.post(V1 + "/resource-groups/default/allow", leave).status == 204
    reply = purge(admin, "/domains/whole")
    assert reply.status == 400 and "whole@lablup.com" in reply.json["msg"], reply
    gone = purge(admin, "/users/whole@lablup.com").json
    assert (gone["keypairs"], gone["memberships"], gone["resource_group_access"]) == (2, 1, 1)
    assert key not in names(admin, "/keypairs", "access_key")
    gone = purge(admin, "/domains/whole").json
    assert (gone["projects"], gone["resource_group_access"]) == (1, 2)
    assert "part" not in names(admin, "/groups?all=true")
    assert audit_is_clean(admin)


def test_what_stays(admin):
    own = admin.get(f"{V1}/keypairs?filter=access_key==\"{ADMIN[0]}\"").json["items"][0]["user"]
    for path, word in ((f"/users/{own}", "own account"), ("/domains/default", "'default'"),
                       ("/keypair-policies/default", "'default'")):
        reply = remove(admin, path)
        assert reply.status == 403 and word in reply.json["msg"], reply


def test_a_policy_in_use(admin):
    admin.post(V1 + "/keypair-policies", {"name": "used"})
    made, _ = make_user(admin, "policy@lablup.com")
    key = admin.post(V1 + "/keypairs", {"user": made["email"], "policy": "used"}).json["access_key"]
    reply = remove(admin, "/keypair-policies/used")
    assert reply.status == 400 and made["email"] in reply.json["msg"], reply
    assert admin.send("PATCH", f"{V1}/keypairs/{key}", {"policy": "default"}).status == 200
    assert remove(admin, "/keypair-policies/used").status == 200
    reply = admin.send("PATCH", f"{V1}/keypairs/{key}", {"policy": "used"})
    assert reply.slug == "invalid-api-params" and "removed" in str(reply.json), reply


def test_agents_keep_their_resource_group(admin):
    agent = admin.get(V1 + "/agents").json["items"][0]["id"]
    reply = purge(admin, "/resource-groups/default")
    assert reply.status == 400 and agent in reply.json["msg"], reply


def test_nothing_new_in_a_removed_domain(admin):
    admin.post(V1 + "/domains", {"name": "shut"})
    assert remove(admin, "/domains/shut").status == 200
    for path, body in (("/users", {"email": "shut@lablup.com"}), ("/groups", {"name": "shut"})):
        reply = admin.post(V1 + path, {**body, "domain": "shut"})
        assert reply.slug == "invalid-api-params" and "not in use" in str(reply.json), reply


def test_a_keypair_outlives_its_sessions(admin, name):
    """Sessions are found by their keypair: none is left that nobody can name."""
    made = admin.post(f"{V1}/keypairs", {"user": "user@lablup.com"}).json
    path = f"{V1}/keypairs/{made['access_key']}"
    theirs = Client(admin.address, (made["access_key"], made["secret_key"]))
    session = waiting(theirs, name)
    refused = admin.delete(path)
    assert refused.status == 400 and f"live sessions such as {name}" in refused.json["msg"], refused
    reply = admin.gql("mutation($key: String!) { delete_keypair(access_key: $key) { ok msg } }",
                      {"key": made["access_key"]})
    answer = reply.json["data"]["delete_keypair"]
    assert answer["ok"] is False and "end them first, or deactivate" in answer["msg"], answer
    assert theirs.delete(f"/session/{session}").status == 200
    assert admin.delete(path).status == 204
    assert admin.delete(path).status == 404
