# SPDX-License-Identifier: Apache-2.0
"""GraphQL mutations of users, keypairs, domains, projects, policies and resource groups."""

import itertools
import json

import pytest

from client import Client

V1 = "/aliquot/v1"
numbers = itertools.count(1)


def mutate(client, field, *, select="", path="/admin/gql", **args):
    """{ok msg ...} of one mutation, its arguments as the schema's types want them."""
    kinds = {"gid": "UUID!", "user_group": "UUID!", "scaling_groups": "[String]!"}
    words = field.split("_", 1)
    noun = "".join({"keypair": "KeyPair"}.get(word, word.capitalize())
                   for word in words[1].split("_"))
    prefix = {"create": "", "modify": "Modify", "purge": "Purge"}.get(words[0], "")
    if words[0] == "create" and noun in ("KeyPairResourcePolicy", "ScalingGroup"):
        prefix = "Create"
    kinds["props"] = f"{prefix}{noun}Input!"
    if field.startswith("disassociate_scaling_group_with"):
        kinds["user_group"] = "String!"
    head = ", ".join(f"${name}: {kinds.get(name, 'String!')}" for name in args)
    given = ", ".join(f"{name}: ${name}" for name in args)
    query = f"mutation({head}) {{ {field}({given}) {{ ok msg {select} }} }}"
    reply = client.post(path, {"query": query, "variables": args})
    assert reply.status == 200, reply
    body = reply.json if path.endswith("graphql") else reply.json.get("data")
    assert body and not reply.json.get("errors"), reply
    return body[field]


def accept(client, field, **args):
    done = mutate(client, field, **args)
    assert done["ok"] is True and done["msg"] == "success", done
    return done


def refuse(client, field, words, **args):
    done = mutate(client, field, **args)
    assert done["ok"] is False and words in done["msg"], done


def row(admin, kind, key, value, **query):
    """The row of our own list, removed ones included; None if there is none."""
    rows = admin.get(f"{V1}/{kind}?all=true&limit=1000").json["items"]
    return next((row for row in rows if row[key] == value), None)


@pytest.fixture
def fresh():
    return f"gqlm{next(numbers)}"


# ---- domains ----

def test_a_domain_from_its_creation_to_its_end(admin, fresh):
    made = accept(admin, "create_domain", name=fresh, select="domain { name description }",
                  props={"description": "Dept", "total_resource_slots": '{"cpu": "8"}',
                         "allowed_vfolder_hosts": "['local']", "allowed_docker_registries": [],
                         "integration_id": None})
    assert made["domain"] == {"name": fresh, "description": "Dept"}
    assert row(admin, "domains", "name", fresh)["total_slots"] == {"cpu": "8"}
    refuse(admin, "create_domain", "this domain exists already", name=fresh, props={})
    done = accept(admin, "modify_domain", name=fresh, select="domain { total_resource_slots }",
                  props={"name": fresh, "total_resource_slots": "{}", "description": None})
    assert done["domain"] == {"total_resource_slots": "{}"}
    assert row(admin, "domains", "name", fresh)["description"] == "Dept"
    refuse(admin, "modify_domain", "name: a domain 'default' exists already", name=fresh,
           props={"name": "default"})
    accept(admin, "delete_domain", name=fresh)
    assert row(admin, "domains", "name", fresh)["is_active"] is False
    refuse(admin, "create_domain", "restore or purge it", name=fresh, props={})
    accept(admin, "modify_domain", name=fresh, props={"is_active": True})
    assert row(admin, "domains", "name", fresh)["is_active"] is True
    accept(admin, "purge_domain", name=fresh)
    assert row(admin, "domains", "name", fresh) is None
    refuse(admin, "purge_domain", "there is no domain", name=fresh)
    refuse(admin, "delete_domain", "the domain 'default' stays", name="default")


def test_a_refusal_has_the_words_of_the_route(admin):
    by_route = admin.post(V1 + "/domains", {"name": "default"})
    refuse(admin, "create_domain", by_route.json["msg"], name="default", props={})
    by_route = admin.send("DELETE", V1 + "/domains/nowhere")
    refuse(admin, "delete_domain", by_route.json["msg"], name="nowhere")
    by_route = admin.post(V1 + "/users", {"email": "nobody", "domain": "default"})
    refuse(admin, "create_user", "email: " + by_route.json["data"]["email"], email="nobody",
           props={"domain_name": "default"})


@pytest.mark.parametrize("props, words", (
    ({"total_resource_slots": '["cpu"]'}, "total_resource_slots: must be the text of a JSON object"),
    ({"total_resource_slots": '{"cpu": "-1"}'}, "cpu"),
    ({"allowed_docker_registries": ["https://cr.example.com"]}, "allowed_docker_registries: "),
    ({"integration_id": "x"}, "integration_id: not supported"),
    ({"description": "x" * 513}, "description"),
))
def test_what_cannot_be_is_refused_by_name(admin, fresh, props, words):
    refuse(admin, "create_domain", words, name=fresh, props=props)
    assert row(admin, "domains", "name", fresh) is None


# ---- projects ----

def test_a_project_and_its_members(admin, fresh):
    made = accept(admin, "create_group", name=fresh, select="group { id name domain_name }",
                  props={"domain_name": "default", "description": "", "is_active": True,
                         "total_resource_slots": "{}", "allowed_vfolder_hosts": []})["group"]
    assert (made["name"], made["domain_name"]) == (fresh, "default")
    gid = made["id"]
    user = row(admin, "users", "email", "user@lablup.com")
    accept(admin, "modify_group", gid=gid, props={"user_update_mode": "add",
                                                  "user_uuids": [user["id"]]})
    assert fresh in row(admin, "users", "email", "user@lablup.com")["projects"]
    accept(admin, "modify_group", gid=gid, props={"user_update_mode": "remove",
                                                  "user_uuids": [user["id"]]})
    assert fresh not in row(admin, "users", "email", "user@lablup.com")["projects"]
    refuse(admin, "modify_group", "there is no user", gid=gid,
           props={"user_update_mode": "add", "user_uuids": ["u"]})
    refuse(admin, "modify_group", "must be add or remove", gid=gid,
           props={"user_update_mode": "set", "user_uuids": [user["id"]]})
    accept(admin, "create_domain", name=fresh, props={})
    stranger = accept(admin, "create_user", email=f"{fresh}@example.com", select="user { uuid }",
                      props={"domain_name": fresh, "password": "long enough"})["user"]["uuid"]
    refuse(admin, "modify_group", "is of domain", gid=gid,
           props={"user_update_mode": "add", "user_uuids": [stranger]})
    refuse(admin, "modify_group", "domain_name: is 'default'", gid=gid,
           props={"domain_name": fresh})
    accept(admin, "modify_group", gid=gid, props={"name": fresh + "b", "description": "x"})
    assert row(admin, "groups", "id", gid)["name"] == fresh + "b"
    accept(admin, "delete_group", gid=gid)
    assert row(admin, "groups", "id", gid)["is_active"] is False
    accept(admin, "purge_group", gid=gid)
    assert row(admin, "groups", "id", gid) is None
    refuse(admin, "delete_group", "there is no project", gid=gid)
    refuse(admin, "create_group", "there is no domain", name=fresh,
           props={"domain_name": "nowhere"})
    refuse(admin, "purge_domain", "purge them first", name=fresh)


# ---- users ----

def test_a_new_user_signs_with_the_keypair_that_comes_along(cluster, admin, fresh):
    email = f"{fresh}@example.com"
    made = accept(admin, "create_user", email=email,
                  select="user { domain_name email username uuid role status }",
                  props={"password": "long enough", "username": fresh, "full_name": "A B",
                         "role": "user", "status": "active", "need_password_change": False,
                         "description": "", "domain_name": "default", "group_ids": None,
                         "totp_activated": False, "sudo_session_enabled": False})["user"]
    assert made["email"] == email and made["username"] == fresh and made["role"] == "user"
    keys = [key for key in admin.get(V1 + "/keypairs?limit=1000").json["items"]
            if key["user"] == email]
    assert len(keys) == 1 and keys[0]["is_active"] and not keys[0]["is_admin"]
    logged = cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "default", "username": email, "password": "long enough"})
    data = logged.json["data"]
    assert data["access_key"] == keys[0]["access_key"]
    mine = Client(cluster.address, (data["access_key"], data["secret_key"]))
    assert mine.gql("{ user { email } }").json["data"]["user"]["email"] == email
    refuse(admin, "create_user", "username: ", email="other-" + email,
           props={"domain_name": "default", "username": fresh})
    accept(admin, "modify_user", email=email,
           props={"full_name": "C D", "domain_name": "default", "password": "another one",
                  "username": None, "role": "user", "need_password_change": False})
    assert row(admin, "users", "email", email)["full_name"] == "C D"
    refuse(admin, "modify_user", "domain_name: is 'default'", email=email,
           props={"domain_name": "elsewhere"})
    refuse(admin, "modify_user", "role: ", email=email, props={"role": "root"})
    changed = accept(admin, "modify_user", email=email, props={"need_password_change": True},
                     select="user { need_password_change }")["user"]
    assert changed["need_password_change"] is True
    assert mine.gql("{ user { need_password_change } }").json["data"]["user"] == changed
    refuse(admin, "modify_user", "container_uid: not supported", email=email,
           props={"container_uid": 1234})
    refuse(admin, "modify_user", "'10.0.0.0/99' is no network", email=email,
           props={"allowed_client_ip": ["10.0.0.0/99"]})
    refuse(admin, "modify_user", "password: shorter", email=email, props={"password": "pass"})
    accept(admin, "delete_user", email=email)
    assert row(admin, "users", "email", email)["status"] == "deleted"
    assert mine.gql("{ user { email } }").status == 401
    accept(admin, "purge_user", email=email, props={"purge_shared_vfolders": False})
    assert row(admin, "users", "email", email) is None
    refuse(admin, "purge_user", "there is no user", email=email, props={})
    refuse(admin, "delete_user", "your own account", email="admin@lablup.com")


def test_projects_of_a_new_user_are_of_the_domain(admin, fresh):
    refuse(admin, "create_user", "group_ids: ", email=f"{fresh}@example.com",
           props={"domain_name": "default", "password": "long enough",
                  "group_ids": ["2de2b969-1d04-48a6-af16-0bc8adb30000"]})
    assert row(admin, "users", "email", f"{fresh}@example.com") is None


# ---- keypairs ----

def test_a_keypair_shows_its_secret_once(cluster, admin):
    made = accept(admin, "create_keypair", user_id="user@lablup.com",
                  select="keypair { access_key secret_key rate_limit }",
                  props={"is_active": True, "is_admin": False, "resource_policy": "default",
                         "rate_limit": 5000})["keypair"]
    assert made["rate_limit"] == 5000
    mine = Client(cluster.address, (made["access_key"], made["secret_key"]))
    assert mine.gql("{ keypair { access_key } }").status == 200
    shown = admin.gql("query($a: String) { keypair(access_key: $a) { secret_key } }",
                      {"a": made["access_key"]})
    assert shown.json["data"]["keypair"]["secret_key"] is None
    accept(admin, "modify_keypair", access_key=made["access_key"],
           props={"is_active": False, "is_admin": None, "resource_policy": None,
                  "rate_limit": None})
    assert mine.gql("{ keypair { access_key } }").status == 401
    refuse(admin, "modify_keypair", "there is no keypair resource policy",
           access_key=made["access_key"], props={"resource_policy": "none"})
    accept(admin, "delete_keypair", access_key=made["access_key"])
    assert row(admin, "keypairs", "access_key", made["access_key"]) is None
    refuse(admin, "delete_keypair", "there is no keypair", access_key=made["access_key"])
    refuse(admin, "create_keypair", "there is no user", user_id="nobody@example.com", props={})


# ---- policies ----

def test_a_keypair_policy(admin, fresh):
    props = {"default_for_unspecified": "UNLIMITED", "total_resource_slots": '{"cpu": "4"}',
             "max_session_lifetime": 60, "max_concurrent_sessions": 30,
             "max_pending_session_count": 3, "max_concurrent_sftp_sessions": 1,
             "max_containers_per_session": 1, "idle_timeout": 1800, "max_vfolder_count": 10,
             "max_vfolder_size": 0, "allowed_vfolder_hosts": "['local']"}
    made = accept(admin, "create_keypair_resource_policy", name=fresh, props=props,
                  select="resource_policy { name default_for_unspecified total_resource_slots"
                         " idle_timeout max_session_lifetime max_pending_session_count }")
    assert made["resource_policy"] == {
        "name": fresh, "default_for_unspecified": "UNLIMITED", "total_resource_slots": '{"cpu":"4"}',
        "idle_timeout": 1800, "max_session_lifetime": 60, "max_pending_session_count": 3}
    accept(admin, "modify_keypair_resource_policy", name=fresh,
           props={"default_for_unspecified": "LIMITED", "max_concurrent_sessions": 5})
    saved = row(admin, "keypair-policies", "name", fresh)
    assert (saved["unlimited_unspecified"], saved["max_concurrent_sessions"],
            saved["idle_timeout_sec"]) == (False, 5, 1800)
    refuse(admin, "modify_keypair_resource_policy", "must be LIMITED or UNLIMITED", name=fresh,
           props={"default_for_unspecified": "MAYBE"})
    refuse(admin, "modify_keypair_resource_policy", "max_priority: ", name=fresh,
           props={"max_priority": 101})
    accept(admin, "delete_keypair_resource_policy", name=fresh)
    assert row(admin, "keypair-policies", "name", fresh)["is_active"] is False
    for name, more in ((fresh + "-2", {}), (fresh + "-3", {"max_pending_session_count": None})):
        accept(admin, "create_keypair_resource_policy", name=name,
               props={"default_for_unspecified": "UNLIMITED", **more})
        assert row(admin, "keypair-policies", "name", name)["max_pending_sessions"] == 0, "no limit"
    refuse(admin, "delete_keypair_resource_policy", "stays", name="default")
    refuse(admin, "modify_keypair_resource_policy", "there is no policy", name="none", props={})


def test_a_limit_beyond_32_bits_breaks_no_list(admin, fresh):
    """Int of GraphQL has 32 bits; our own routes show all of it."""
    assert admin.post(V1 + "/keypair-policies", {
        "name": fresh, "max_session_lifetime_sec": 36500 * 86400}).status == 201
    reply = admin.gql("{ keypair_resource_policies { name max_session_lifetime idle_timeout } }")
    assert not reply.json.get("errors"), reply
    rows = {row["name"]: row for row in reply.json["data"]["keypair_resource_policies"]}
    assert rows[fresh]["max_session_lifetime"] == 2**31 - 1
    assert row(admin, "keypair-policies", "name", fresh)["max_session_lifetime_sec"] == 36500 * 86400
    accept(admin, "delete_keypair_resource_policy", name=fresh)


# ---- resource groups, and who may use them ----

def test_a_resource_group_and_who_may_use_it(admin, fresh):
    made = accept(admin, "create_scaling_group", name=fresh,
                  select="scaling_group { name scheduler is_public use_host_network }",
                  props={"description": "", "is_active": True, "driver": "static",
                         "driver_opts": "{}", "scheduler": "fifo", "is_public": True,
                         "use_host_network": False, "wsproxy_addr": "", "wsproxy_api_token": None,
                         "scheduler_opts": '{"allowed_session_types": ["batch"]}'})
    assert made["scaling_group"] == {"name": fresh, "scheduler": "fifo", "is_public": True,
                                     "use_host_network": False}
    assert row(admin, "resource-groups", "name", fresh)["allowed_session_types"] == ["batch"]
    for props, words in (({"driver": "docker"}, "driver: "), ({"is_public": False}, "is_public: "),
                         ({"use_host_network": True}, "use_host_network: "),
                         ({"scheduler": "odd"}, "scheduler: "), ({"scheduler_opts": "1"}, "JSON"),
                         ({"wsproxy_addr": "http://x"}, "wsproxy_addr: ")):
        refuse(admin, "modify_scaling_group", words, name=fresh, props=props)
    accept(admin, "modify_scaling_group", name=fresh, props={"description": "night"})

    def usable():
        return {"name": fresh} in admin.get("/scaling-groups?group=default").json["scaling_groups"]
    project = row(admin, "groups", "name", "default")["id"]
    whom = {"domain": "default", "user_group": project, "access_key": admin.keypair[0]}
    words = {"domain": "domain", "user_group": "user_group", "access_key": "keypair"}
    for arg, value in whom.items():
        for give, take in (("associate_scaling_group_with_", "disassociate_scaling_group_with_"),
                           ("associate_scaling_groups_with_", "disassociate_scaling_groups_with_")):
            many = "groups" in give
            group = {"scaling_groups": [fresh]} if many else {"scaling_group": fresh}
            assert not usable()
            accept(admin, give + words[arg], **group, **{arg: value})
            assert usable()
            accept(admin, take + words[arg], **group, **{arg: value})
            assert not usable()
    refuse(admin, "associate_scaling_group_with_domain", "there is no domain", scaling_group=fresh,
           domain="nowhere")
    refuse(admin, "associate_scaling_groups_with_domain", "there is no resource group",
           scaling_groups=[fresh, "none"], domain="default")
    assert not usable()  # all or nothing
    refuse(admin, "associate_scaling_groups_with_domain", "name at least one", scaling_groups=[],
           domain="default")
    refuse(admin, "disassociate_scaling_group_with_user_group", "there is no project",
           scaling_group=fresh, user_group="g")
    accept(admin, "delete_scaling_group", name=fresh)
    assert row(admin, "resource-groups", "name", fresh)["is_active"] is False
    accept(admin, "delete_scaling_group", name=fresh)
    assert not row(admin, "resource-groups", "name", fresh)


def test_a_domain_loses_all_resource_groups(admin, fresh):
    accept(admin, "create_domain", name=fresh, props={})
    gid = accept(admin, "create_group", name=fresh, props={"domain_name": fresh},
                 select="group { id }")["group"]["id"]
    accept(admin, "create_scaling_group", name=fresh, props={"scheduler": "fifo"})
    for field, last, arg in (("domain", "domain", {"domain": fresh}),
                             ("user_group", "group", {"user_group": gid})):
        accept(admin, f"associate_scaling_groups_with_{field}", scaling_groups=["default", fresh],
               **arg)
        accept(admin, f"disassociate_all_scaling_groups_with_{last}", **arg)
    gone = admin.send("DELETE", f"{V1}/resource-groups/{fresh}", {"purge": True, "dry_run": True})
    assert gone.json["resource_group_access"] == 0, gone


def allowed(client, whom, **args):
    """What these may use by themselves, or the error."""
    [(name, value)] = args.items()
    reply = client.gql(f'{{ scaling_groups_for_{whom}({name}: "{value}") {{ name }} }}').json
    if reply.get("errors"):
        return reply["errors"][0]["message"]
    return [group["name"] for group in reply["data"]["scaling_groups_for_" + whom]]


def test_who_was_let_use_what_is_shown_to_administrators(admin, domain_admin, user, fresh):
    accept(admin, "create_domain", name=fresh, props={})
    gid = accept(admin, "create_group", name=fresh, props={"domain_name": fresh},
                 select="group { id }")["group"]["id"]
    email = f"{fresh}@example.com"
    accept(admin, "create_user", email=email, props={"domain_name": fresh, "password": "long enough"})
    key = row(admin, "keypairs", "user", email)["access_key"]
    whom = (("domain", {"domain": fresh}), ("user_group", {"user_group": gid}),
            ("keypair", {"access_key": key}))
    for word, args in whom:
        assert allowed(admin, word, **args) == []
        accept(admin, f"associate_scaling_group_with_{word}", scaling_group="default", **args)
        assert allowed(admin, word, **args) == ["default"]
        assert allowed(domain_admin, word, **args) == []  # of another domain
        assert "privilege required" in allowed(user, word, **args)
    assert allowed(domain_admin, "domain", domain="default") != []
    assert allowed(admin, "keypair", access_key="none") == []
    assert "not a UUID" in allowed(admin, "user_group", user_group="g")
    for word, args in whom:
        accept(admin, f"disassociate_scaling_group_with_{word}", scaling_group="default", **args)
    accept(admin, "purge_user", email=email, props={})
    accept(admin, "purge_domain", name=fresh)


# ---- agents ----

def test_an_agent_takes_sessions_or_none(admin):
    agent = admin.gql("{ agents { id scaling_group schedulable } }").json["data"]["agents"][0]

    def modify(agent_id, props):
        reply = admin.gql("mutation($id: String!, $props: ModifyAgentInput!) {"
                          " modify_agent(id: $id, props: $props) { ok msg } }",
                          {"id": agent_id, "props": props})
        return reply.json["data"]["modify_agent"]

    def schedulable():
        return admin.gql("query($id: String!) { agent(agent_id: $id) { schedulable } }",
                         {"id": agent["id"]}).json["data"]["agent"]["schedulable"]
    assert agent["schedulable"] is True
    assert modify(agent["id"], {"schedulable": False})["ok"] and schedulable() is False
    assert modify(agent["id"], {"schedulable": True})["ok"] and schedulable() is True
    assert modify(agent["id"], {"scaling_group": agent["scaling_group"]})["ok"]
    assert modify(agent["id"], {"scaling_group": "other", "schedulable": False}) == {
        "ok": False, "msg": "there is no resource group 'other'"}
    assert schedulable() is True, "all or nothing"
    assert modify("none", {})["msg"] == "there is no agent 'none'"


# ---- who may, and how much at once ----

def test_others_than_superadmins_are_refused_and_change_nothing(admin, domain_admin, user, fresh):
    for client in (domain_admin, user):
        refuse(client, "create_domain", "no permission to execute create_domain", name=fresh,
               props={})
        refuse(client, "delete_user", "no permission to execute delete_user",
               email="admin@lablup.com")
        refuse(client, "modify_user", "no permission", email="user@lablup.com",
               props={"role": "superadmin"})
    assert row(admin, "domains", "name", fresh) is None
    assert row(admin, "users", "email", "user@lablup.com")["role"] == "user"


def test_the_old_path_answers_bare_data(admin, fresh):
    accept(admin, "create_domain", path="/admin/graphql", name=fresh, props={})
    refuse(admin, "create_domain", "exists already", path="/admin/graphql", name=fresh, props={})
    accept(admin, "purge_domain", path="/admin/graphql", name=fresh)


def test_one_request_makes_so_many_changes(admin, fresh):
    fields = " ".join(f'a{i}: delete_domain(name: "none") {{ ok }}' for i in range(400))
    reply = admin.gql("mutation { " + fields + " }")
    assert "cost" in json.dumps(reply.json["errors"]), reply


def test_changes_of_one_request_follow_each_other(admin, fresh):
    reply = admin.gql(f'mutation {{ a: create_domain(name: "{fresh}", props: {{}}) {{ ok }}'
                      f' b: create_domain(name: "{fresh}", props: {{}}) {{ ok msg }}'
                      f' c: purge_domain(name: "{fresh}") {{ ok }} }}')
    data = reply.json["data"]
    assert data["a"]["ok"] and not data["b"]["ok"] and data["c"]["ok"], data
