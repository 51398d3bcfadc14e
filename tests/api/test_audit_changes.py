# SPDX-License-Identifier: Apache-2.0
"""Each change that was acknowledged has one entry in the audit log: who, what, before and after."""

import json
import uuid

import pytest

from client import ADMIN, USER, Client
from cluster import batch, interactive, wait_for, wait_status

V1 = "/aliquot/v1"
LOG = V1 + "/audit-log"


def rows(client, **query):
    query = {"limit": 1000, **query}
    reply = client.get(LOG + "?" + "&".join(f"{key}={value}" for key, value in query.items()))
    assert reply.status == 200, reply
    return list(reversed(reply.json["items"]))


def short(row):
    """What was done to what, and how that changed."""
    detail = row["detail"] or {"before": None, "after": None}
    return row["action"], row["object_name"], detail["before"], detail["after"]


@pytest.fixture
def audited(admin):
    """What was written since the last time it was asked, the oldest first."""
    last = rows(admin)[-1]["seq"]

    def news():
        nonlocal last
        fresh = [row for row in rows(admin) if row["seq"] > last and row["action"] != "login"]
        last = fresh[-1]["seq"] if fresh else last
        return fresh
    return news


def fine(reply, *good):
    assert reply.status in (good or (200, 201, 202, 204)), reply
    return reply


# ---- people ----

def test_who_asks_from_where_and_by_which_request(admin, audited):
    reply = fine(admin.post(V1 + "/domains", {"name": "who-asks"}))
    [row] = audited()
    assert (row["user"], row["access_key"], row["address"], row["domain"]) == (
        "admin@lablup.com", ADMIN[0], "127.0.0.1", "default")
    assert (row["action"], row["object_kind"], row["object_name"], row["object_domain"]) == (
        "create-domain", "domain", "who-asks", "who-asks")
    assert (row["outcome"], row["times"]) == ("ok", 1) and row["user_id"] and row["at"]
    assert uuid.UUID(row["request_id"]) and reply.headers["X-Request-ID"] == row["request_id"]
    for n, request_id in enumerate(("from:the-client", "bad id")):
        path = V1 + "/domains/who-asks"
        headers = {**admin.headers("PATCH", path, "application/json"), "X-Request-ID": request_id}
        fine(admin.raw("PATCH", path, json.dumps({"description": str(n)}).encode(), headers))
    given, made = (row["request_id"] for row in audited())
    assert given == "from:the-client" and uuid.UUID(made)


def test_domains_and_projects(admin, audited):
    fine(admin.post(V1 + "/domains", {"name": "au-d"}))
    fine(admin.send("PATCH", V1 + "/domains/au-d", {"description": "second"}))
    fine(admin.send("PATCH", V1 + "/domains/au-d", {"description": "second"}))  # as it is
    project = fine(admin.post(V1 + "/groups", {"name": "au-p", "domain": "au-d"})).json["id"]
    fine(admin.send("PATCH", f"{V1}/groups/{project}", {"total_slots": {"cpu": "4"}}))
    fine(admin.send("DELETE", f"{V1}/groups/{project}", {}))
    fine(admin.post(f"{V1}/groups/{project}/restore", {}))
    fine(admin.send("DELETE", f"{V1}/groups/{project}", {"purge": True}))
    news = audited()
    assert [short(row) for row in news[1:2] + news[3:6]] == [
        ("modify-domain", "au-d", {"description": None}, {"description": "second"}),
        ("modify-project", "au-p", {"total_slots": {}}, {"total_slots": {"cpu": "4"}}),
        ("delete-project", "au-p", {"is_active": True}, {"is_active": False}),
        ("restore-project", "au-p", {"is_active": False}, {"is_active": True})]
    assert [row["action"] for row in news] == [
        "create-domain", "modify-domain", "create-project", "modify-project", "delete-project",
        "restore-project", "delete-project", "purge-project"]
    created, purged = news[2]["detail"], news[-1]["detail"]
    assert created["before"] is None and created["after"]["name"] == "au-p"
    assert purged["after"] is None and purged["before"]["domain"] == "au-d"
    assert {row["object_domain"] for row in news} == {"au-d"}
    assert {row["object_id"] for row in news[2:]} == {project}


def test_users_keypairs_and_passwords(admin, audited):
    email = "au-user@lablup.com"
    fine(admin.post(V1 + "/users", {"email": email, "domain": "default", "password": "Hush-12345"}))
    key = fine(admin.post(V1 + "/keypairs", {"user": email})).json
    own = Client(admin.address, (key["access_key"], key["secret_key"]))
    fine(admin.send("PATCH", f"{V1}/users/{email}", {"role": "admin", "password": "Hush-23456"}))
    fine(own.post("/auth/update-password", {"old_password": "Hush-23456",
                                            "new_password": "Hush-34567",
                                            "new_password2": "Hush-34567"}))
    fine(own.send("PATCH", "/auth/ssh-keypair"))
    fine(admin.send("PATCH", f"{V1}/keypairs/{key['access_key']}", {"rate_limit": 77}))
    fine(admin.send("DELETE", f"{V1}/keypairs/{key['access_key']}"))
    fine(admin.send("DELETE", f"{V1}/users/{email}", {}))
    news = audited()
    created, first, keypair, modified, password, ssh, limit, removed, deleted = news
    assert first["action"] == "create-keypair"
    assert first["object_id"] != keypair["object_id"]
    assert created["detail"]["after"] == {
        "email": email, "username": email, "full_name": None, "description": None,
        "domain": "default", "role": "user", "status": "active", "projects": ["default"],
        "total_slots": {},
        "max_concurrent_sessions": 0, "allowed_client_ip": None, "need_password_change": False,
        "password": "set"}
    assert keypair["action"] == "create-keypair" and keypair["object_id"] == key["access_key"]
    assert short(modified) == ("modify-user", email, {"role": "user"},
                               {"role": "admin", "password": "changed"})
    assert short(password) == ("update-password", email, {}, {"password": "changed"})
    assert (password["user"], password["access_key"]) == (email, key["access_key"])
    assert ssh["action"] == "update-ssh-key"
    assert ssh["detail"]["after"]["ssh_key"].startswith("SHA256:")
    assert short(limit) == ("modify-keypair", email, {"rate_limit": 10000}, {"rate_limit": 77})
    assert (removed["action"], deleted["action"]) == ("delete-keypair", "delete-user")
    text = json.dumps(news)
    assert "Hush" not in text and key["secret_key"] not in text and "AAAA" not in text


def test_members_of_projects(admin, audited):
    project = fine(admin.post(V1 + "/groups", {"name": "au-team",
                                                     "domain": "default"})).json["id"]
    for what in ("add", "remove"):
        fine(admin.post(f"{V1}/groups/{project}/{what}-users", {"users": ["user@lablup.com"]}))
    _, joined, left = audited()
    assert joined["object_name"] == left["object_name"] == "user@lablup.com"
    assert sorted(joined["detail"]["after"]["projects"]) == ["au-team", "default"]
    assert joined["detail"]["before"] == {"projects": ["default"]} == left["detail"]["after"]


def test_mutations_are_as_routes(admin, audited):
    def mutate(text):
        reply = admin.gql("mutation { " + text + " }")
        assert all(one["ok"] for one in reply.json["data"].values()), reply.json

    mutate('create_domain(name: "au-gql", props: {description: "x"}) { ok }')
    mutate('create_user(email: "au-gql@lablup.com", props: {username: "au-gql", password: '
           '"Hush-12345", need_password_change: false, full_name: "", description: "", '
           'domain_name: "au-gql", role: "user"}) { ok }')
    mutate('modify_user(email: "au-gql@lablup.com", props: {full_name: "Au"}) { ok }')
    mutate('delete_user(email: "au-gql@lablup.com") { ok } '
           'purge_user(email: "au-gql@lablup.com", props: {}) { ok }')
    mutate('delete_domain(name: "au-gql") { ok }')
    news = audited()
    assert [row["action"] for row in news] == [
        "create-domain", "create-user", "create-keypair", "modify-user", "delete-user",
        "purge-user", "delete-domain"]
    assert news[3]["detail"] == {"before": {"full_name": ""}, "after": {"full_name": "Au"}}
    assert news[4]["request_id"] == news[5]["request_id"], "one request"
    assert {row["object_domain"] for row in news} == {"au-gql"}


# ---- what sessions may use ----

def test_policies_groups_presets_and_aliases(admin, audited):
    fine(admin.post(V1 + "/keypair-policies", {"name": "au-policy"}))
    fine(admin.send("PATCH", V1 + "/keypair-policies/au-policy", {"max_concurrent_sessions": 3}))
    fine(admin.post(V1 + "/resource-groups", {"name": "au-group"}))
    fine(admin.post(V1 + "/resource-groups/au-group/allow", {"domain": "default"}))
    assert admin.gql('mutation { disassociate_scaling_group_with_domain(scaling_group: "au-group", '
                     'domain: "default") { ok } }').json["data"]
    fine(admin.send("DELETE", V1 + "/keypair-policies/au-policy", {"purge": True}))
    fine(admin.send("PUT", V1 + "/resource-presets/au-small", {"resource_slots": {"cpu": "1"}}))
    fine(admin.send("PUT", V1 + "/resource-presets/au-small", {"resource_slots": {"cpu": "2"}}))
    fine(admin.send("DELETE", V1 + "/resource-presets/au-small"))
    fine(admin.send("PUT", V1 + "/image-aliases/au-alias", {"image": "debian:12"}))
    fine(admin.send("DELETE", V1 + "/image-aliases/au-alias"))
    news = {row["action"]: row for row in audited()}
    assert list(news) == [
        "create-keypair-policy", "modify-keypair-policy", "create-resource-group",
        "allow-resource-group", "disallow-resource-group", "delete-keypair-policy",
        "purge-keypair-policy", "create-preset", "modify-preset", "delete-preset",
        "create-image-alias", "delete-image-alias"]
    assert short(news["modify-keypair-policy"])[2:] == (
        {"max_concurrent_sessions": 0}, {"max_concurrent_sessions": 3})
    assert short(news["allow-resource-group"]) == (
        "allow-resource-group", "au-group", None, {"domain": "default"})
    assert short(news["disallow-resource-group"])[2:] == ({"domain": "default"}, None)
    assert short(news["modify-preset"])[2:] == (
        {"resource_slots": {"cpu": "1"}, "shared_memory": None},
        {"resource_slots": {"cpu": "2"}, "shared_memory": None})
    assert short(news["delete-image-alias"])[2:] == ({"image": "debian:12"}, None)
    assert {row["object_domain"] for row in news.values()} == {None}


def test_of_files_only_names_and_sizes(user, audited):
    file = {"path": ".netrc", "permission": "600", "data": "password hush"}
    fine(user.post("/user-config/dotfiles", file))
    fine(user.send("PATCH", "/user-config/dotfiles", {**file, "data": "hush"}))
    fine(user.delete("/user-config/dotfiles?path=.netrc"))
    fine(user.post("/user-config/bootstrap-script", {"script": "hush"}))
    fine(user.post("/user-config/bootstrap-script", {"script": ""}))
    news = audited()
    assert "hush" not in json.dumps(news)
    assert [short(row) for row in news[:4]] == [
        ("create-dotfile", ".netrc", None, {"size": 13, "permission": "600"}),
        ("modify-dotfile", ".netrc", {"size": 13, "permission": "600"},
         {"size": 4, "permission": "600"}),
        ("delete-dotfile", ".netrc", {"size": 4, "permission": "600"}, None),
        ("set-bootstrap-script", None, None, {"size": 4})]
    assert {(row["user"], row["object_id"], row["object_domain"]) for row in news} == {
        ("user@lablup.com", f"keypair {USER[0]}", "default")}


# ---- sessions ----

def test_the_life_of_a_session(admin, user, audited, name):
    made = fine(user.post("/session", interactive(name))).json["sessionId"]
    wait_status(user, made, "RUNNING")
    fine(user.send("PATCH", f"/session/{name}"))
    wait_status(user, made, "RUNNING")
    fine(user.post(f"/session/{name}/rename", {"name": name + "-2"}))
    fine(user.delete(f"/session/{name}-2"))
    wait_for(lambda: user.get(f"{V1}/sessions/{made}").json["status"] == "TERMINATED", 30, "the end")
    news = [row for row in audited() if row["object_id"] == made]
    created, restarted, renamed, ended = news
    assert [row["action"] for row in news] == [
        "create-session", "restart-session", "rename-session", "end-session"]
    after = created["detail"]["after"]
    assert after["image"] and after["type"] == "interactive" and after["resources"]["cpu"]
    assert short(restarted)[2:] == ({"status": "RUNNING"}, {"status": "RESTARTING"})
    assert short(renamed) == ("rename-session", name, {"name": name}, {"name": name + "-2"})
    assert short(ended) == ("end-session", name + "-2", {"status": "RUNNING"},
                            {"status": "TERMINATING"})
    assert {(row["user"], row["object_domain"]) for row in news} == {("user@lablup.com", "default")}


def test_sessions_that_wait(admin, user, audited, name):
    made = [fine(user.post("/session", batch(f"{name}-{n}", "true", starts_at="1d"))).json["sessionId"]
            for n in range(2)]
    fine(user.send("PATCH", f"{V1}/sessions/{name}-0", {"priority": 20}))
    fine(admin.delete(f"/session/{name}-0?owner_access_key={USER[0]}"))
    fine(user.send("DELETE", f"{V1}/sessions", {"sessions": made}))
    news = audited()
    assert [row["action"] for row in news] == [
        "create-session", "create-session", "set-session-priority", "end-session", "end-session"]
    assert short(news[2])[2:] == ({"priority": 10}, {"priority": 20})
    assert short(news[3])[2:] == ({"status": "PENDING"}, {"status": "CANCELLED"})
    assert (news[3]["user"], news[3]["object_id"]) == ("admin@lablup.com", made[0])
    assert news[4]["object_id"] == made[1], "the other had ended before"


def test_a_request_for_several_is_an_entry_for_each(user, audited, name):
    bodies = [batch(f"{name}-{n}", "true", starts_at="1d") for n in range(3)]
    fine(user.post(V1 + "/sessions", bodies))
    last = batch(f"{name}-9", "true", starts_at="1d")
    fine(user.post(V1 + "/sessions", [bodies[0], last]))  # the first is there
    news = audited()
    assert [(row["action"], row["object_name"]) for row in news] == [
        ("create-session", body["name"]) for body in [*bodies, last]]
    assert len({row["request_id"] for row in news}) == 2


# ---- the cluster ----

def test_presets_by_graphql(admin, audited):
    def mutate(mutation):
        reply = admin.gql(f"mutation {{ {mutation} {{ ok msg }} }}").json["data"]
        assert all(result["ok"] for result in reply.values()), reply

    mutate(r'create_resource_preset(name: "au-gql", props: {resource_slots: "{\"cpu\": 1}"})')
    mutate('modify_resource_preset(name: "au-gql", props: {shared_memory: "64m"})')
    mutate('delete_resource_preset(name: "au-gql")')
    slots = {"cpu": "1"}
    made = {"resource_slots": slots, "shared_memory": None}
    changed = {"resource_slots": slots, "shared_memory": "67108864"}
    assert [short(row) for row in audited()] == [
        ("create-preset", "au-gql", None, made), ("modify-preset", "au-gql", made, changed),
        ("delete-preset", "au-gql", changed, None)]


def test_image_limits(admin, audited):
    image = "registry.example/au/limited:1"

    def put(**limits):
        return fine(admin.send("PUT", V1 + "/image-limits", {"image": image, **limits}))

    put()  # as it is
    put(min={"cpu": 1})
    put(min={"cpu": "1"})  # as it is
    reply = admin.gql("mutation($t: String!, $p: ModifyImageInput!) {"
                      " modify_image(target: $t, props: $p) { ok msg } }", {
                          "t": image, "p": {"resource_limits": [{"key": "cpu", "max": "4"}]}})
    assert reply.json["data"]["modify_image"]["ok"], reply.json
    put()
    news = audited()
    least, most = {"min": {"cpu": "1"}, "max": {}}, {"min": {}, "max": {"cpu": "4"}}
    assert [short(row) for row in news] == [
        ("create-image-limits", image, None, least), ("modify-image-limits", image, least, most),
        ("delete-image-limits", image, most, None)]
    assert {(row["object_kind"], row["object_domain"]) for row in news} == {("image-limits", None)}


def test_agents_and_join_tokens(admin, cluster, audited):
    agent = admin.get(V1 + "/agents").json["items"][0]["id"]
    fine(admin.post(f"{V1}/agents/{agent}/drain", {"reason": "new disk"}))
    fine(admin.post(f"{V1}/agents/{agent}/drain", {"reason": "new disk"}))  # as it is
    fine(admin.post(f"{V1}/agents/{agent}/undrain"))
    token = fine(admin.post(V1 + "/join-tokens", {"agent_id": "i-new"})).json["token"]
    fine(admin.post(V1 + "/agents/" + agent + "/drain", {}))
    assert admin.gql(f'mutation {{ modify_agent(id: "{agent}", props: {{schedulable: true}}) '
                     "{ ok } }").json["data"]["modify_agent"]["ok"]
    news = audited()
    assert [short(row) for row in news[:2]] == [
        ("drain-agent", agent, {"schedulable": True},
         {"schedulable": False, "drain_reason": "new disk"}),
        ("undrain-agent", agent, {"schedulable": False, "drain_reason": "new disk"},
         {"schedulable": True})]
    assert [row["action"] for row in news[2:]] == [
        "create-join-token", "drain-agent", "undrain-agent"]
    assert news[2]["object_name"] == "i-new" and news[2]["detail"]["after"]["expires_at"]
    assert token not in json.dumps(news)


def test_agents_that_move(admin, cluster, audited, name):
    agent = admin.get(V1 + "/agents").json["items"][0]["id"]
    fine(admin.post(V1 + "/resource-groups", {"name": name}))

    def move(group):
        return fine(admin.send("PATCH", f"{V1}/agents/{agent}", {"resource_group": group}))

    def modify(props):
        reply = admin.gql(f'mutation {{ modify_agent(id: "{agent}", props: {props}) {{ ok msg }} }}')
        assert reply.json["data"]["modify_agent"]["ok"], reply.json

    move("")
    audited()
    move(name)
    move(name)  # as it is
    modify(f'{{schedulable: false, scaling_group: "{name}"}}')  # one of them is new
    modify('{schedulable: true, scaling_group: ""}')
    assert [short(row) for row in audited()] == [
        ("move-agent", agent, {"assigned_group": None}, {"assigned_group": name}),
        ("drain-agent", agent, {"schedulable": True}, {"schedulable": False}),
        ("undrain-agent", agent, {"schedulable": False}, {"schedulable": True}),
        ("move-agent", agent, {"assigned_group": name}, {"assigned_group": None})]


def test_the_manager(admin, audited):
    fine(admin.send("PUT", "/manager/status", {"status": "frozen"}))
    fine(admin.send("PUT", "/manager/status", {"status": "running"}))
    fine(admin.post("/manager/announcement", {"enabled": True, "message": "soon"}))
    fine(admin.post("/manager/announcement", {"enabled": False}))
    fine(admin.post(V1 + "/retention/run", {"entities": ["series"]}))
    news = audited()
    assert [(row["action"], row["object_name"]) for row in news] == [
        ("set-config", "manager/status"), ("set-config", "manager/status"),
        ("set-config", "manager/announcement"), ("set-config", "manager/announcement"),
        ("run-retention", None)]
    assert news[2]["detail"]["keys"][0]["after"] == "soon"
    assert news[4]["detail"]["after"] == {"entities": ["series"]}


# ---- what can be asked ----

def test_it_is_narrowed_by_object_domain_and_time(admin, domain_admin):
    fine(admin.post(V1 + "/domains", {"name": "au-narrow"}))
    fine(admin.send("PATCH", V1 + "/domains/au-narrow", {"description": "x"}))
    mine = rows(admin, object="au-narrow")
    assert [row["action"] for row in mine] == ["create-domain", "modify-domain"]
    assert rows(admin, domain="au-narrow") == mine
    assert all(row in rows(admin, object="domain") for row in mine)
    assert rows(admin, object="au-narrow", until="1h") == []
    assert rows(admin, object="au-narrow", until="2100-01-01") == mine
    assert rows(domain_admin, object="au-narrow") == []
    assert domain_admin.get(LOG + "?domain=au-narrow").status == 403
    assert rows(domain_admin, domain="default")
    assert admin.get(LOG + "?until=later").status == 400


def test_what_somebody_may_not_do_is_counted(admin, user):
    def denied(**more):
        return rows(admin, action="denied", user="user@lablup.com", **more)

    seen = len(denied())
    for _ in range(20):
        assert user.post(V1 + "/domains", {"name": "au-no"}).status == 401
    assert user.get(LOG).status == 401, "what only reads is not noted"
    assert not user.gql('mutation { delete_domain(name: "default") { ok } }'
                        ).json["data"]["delete_domain"]["ok"]
    news = wait_for(lambda: denied() if len(denied()) > seen or seen else None, 30, "an entry")
    assert len(news) <= seen + 2 and {row["outcome"] for row in news} == {"failed"}
    assert news[0]["object_domain"] == "default" and news[0]["access_key"] == USER[0]
    assert news[0]["object_kind"] in ("route", "mutation") and news[0]["object_name"]


def test_what_is_refused_has_no_entry(admin, user, audited):
    assert user.post(V1 + "/domains", {"name": "au-no"}).status == 401
    assert admin.post(V1 + "/users", {"email": "no-at", "domain": "default"}).status == 400
    assert admin.send("DELETE", "/session/no-such-session").status == 404
    assert admin.post(V1 + "/domains", {"name": "default"}).status == 400
    assert [row for row in audited() if row["outcome"] == "ok"] == []
