# SPDX-License-Identifier: Apache-2.0
"""/template/session and /template/cluster: what is kept, for whom, and what sessions get of it."""

import json
import re

import pytest

from client import Client
from cluster import wait_for, wait_status
from test_repeats import is_again, post

TEMPLATE = """\
kind: task_template
metadata: {{name: {name}, tag: {name}}}
spec:
  type: batch
  kernel:
    image: process
    environ: {{A: one, B: 2}}
    run: {{startup: "echo $A $B $C", bootstrap: "echo first"}}
  resources: {{cpu: 1, mem: 64m}}
"""
CLUSTER = """\
kind: cluster_template
metadata: {name: %s}
spec:
  nodes:
  - {role: main, session_template: %s}
  - {role: worker, session_template: %s}
"""
SESSIONS, CLUSTERS, OURS = "/template/session", "/template/cluster", "/aliquot/v1/templates"


def text_of(name, **more):
    return TEMPLATE.format(name=name, **more)


def make(client, text, path=SESSIONS, **more):
    reply = client.post(path, {"payload": text, **more})
    assert reply.status in (200, 201), reply
    return reply.json["id"]


@pytest.fixture(autouse=True)
def none_left(admin):
    yield
    for one in admin.get(OURS + "?all=true").json["items"]:
        assert admin.delete(f"{OURS}/{one['id']}").status == 200


@pytest.fixture(name="other")
def other_fixture(admin, name):
    """Somebody of another domain."""
    email = re.sub("[^A-Za-z0-9-]", "-", name) + "@lablup.com"
    admin.post("/aliquot/v1/domains", {"name": name})
    admin.post("/aliquot/v1/users", {"email": email, "domain": name})
    key = admin.post("/aliquot/v1/keypairs", {"user": email}).json
    return Client(admin.address, (key["access_key"], key["secret_key"]))


def test_the_life_of_a_template(user, name):
    made = make(user, text_of(name), group_name=None, domain_name="default", owner_access_key=None)
    shown = user.get(SESSIONS).json
    assert [(each["name"], each["id"], each["is_owner"], each["type"], each["group"])
            for each in shown] == [(name, made, True, "user", None)], shown
    assert shown[0]["template"]["spec"]["kernel"]["environ"] == {"A": "one", "B": 2}
    for which in made, name:
        assert user.get(f"{SESSIONS}/{which}").body.decode() == text_of(name)
        got = user.get(f"{SESSIONS}/{which}?format=json").json
        assert got == {"template": shown[0]["template"], "name": name, "domain_name": "default",
                       "user_uuid": shown[0]["user"], "group_id": None}
    assert user.get(f"{CLUSTERS}/{made}").status == 404
    assert user.get(f"{SESSIONS}/{made}?format=toml").status == 400
    again = user.post(SESSIONS, {"payload": text_of(name)})
    assert (again.status, again.slug) == (400, "generic-bad-request"), again
    new = text_of(name + "-new")
    assert user.send("PUT", f"{SESSIONS}/{made}", {"payload": new}).json == {"success": True}
    assert user.get(f"{SESSIONS}/{name}-new").body.decode() == new
    listed = user.get(f'{OURS}?filter=name=="{name}-new"&order=-modified_at&limit=5').json
    assert (listed["total"], listed["items"][0]["kind"]) == (1, "session")
    assert user.delete(f"{SESSIONS}/{made}").json == {"success": True}
    for gone in (user.get(f"{SESSIONS}/{made}"), user.delete(f"{SESSIONS}/{made}"),
                 user.send("PUT", f"{SESSIONS}/{made}", {"payload": new})):
        assert (gone.status, gone.json["title"]) == (404, "No such task template.")


@pytest.mark.parametrize("text, why", [
    ("kind: task_template\nmetadata: {name: x}\nspec:\n  kernel:\n    imge: x\n",
     "line 5, column 5: unknown key 'imge'; did you mean 'image'?"),
    ("{", "not valid JSON"), ("a: *b", "line 1"), ("x" * 65537, "longer than 65536 bytes"),
    ("- a", "an entry is a mapping"), ("[]", "a list of 1 to 100"), ("17", "a template is a mapping"),
    ("- template: {kind: task_template, metadata: {name: x}, spec: {kernel: {imge: x}}}",
     "line 1, column 72: unknown key 'imge'; did you mean 'image'?"),
    ("session_templates: [{name: x, templat: {}}]",
     "line 1, column 31: unknown key 'templat'; did you mean 'template'?"),
    ('[{"name": "x"}]', "template: is required"), (text_of("x").replace("task", "cluster"), "task_template")])
def test_what_is_no_template(user, text, why):
    reply = user.post(SESSIONS, {"payload": text})
    assert (reply.slug, list(reply.json["data"])) == ("invalid-api-params", ["payload"]), reply
    assert why in reply.json["data"]["payload"], reply
    assert user.get(SESSIONS).json == []


def entry(name, **more):
    """One of a list as Backend.AI's clients send it, in which the outer name counts."""
    return {"is_active": True, "type": "TASK", "name": name, **more, "template": {
        "api_version": "6", "kind": "task_template", "metadata": {"name": "python", "tag": "3.9"},
        "spec": {"session_type": "batch", "mounts": {}, "resources": {"cpu": "1", "mem": "64m"},
                 "kernel": {"image": "process", "environ": {}, "run": {"startup": "echo hi"}}}}}


WRAPPINGS = (json.dumps, lambda one: "\n" + json.dumps(one, indent=4),
             lambda one: json.dumps({"session_templates": one}),
             lambda one: "session_templates:\n- " + json.dumps(one[0]) + "\n")


@pytest.fixture(name="newer")
def newer_fixture(user):
    """Clients from v7 on are told of all that they made, older ones of the last."""
    return Client(user.address, user.keypair, "v8.20240315")


@pytest.mark.parametrize("write", WRAPPINGS)
def test_a_list_of_one_as_backendai_has_it(user, newer, name, write):
    """What is kept is the template alone, by the name that the entry gives it."""
    made = newer.post(SESSIONS, {"payload": write([entry(name)])})
    assert made.status == 200 and [one["name"] for one in made.json] == [name], made
    path = f"{SESSIONS}/{made.json[0]['id']}"
    got = user.get(path + "?format=json").json
    assert (got["name"], got["template"]["metadata"]["name"]) == (name, name), got
    assert json.loads(user.get(path).body) == got["template"]
    session = user.post("/session/_/create-from-template", {
        "template_id": made.json[0]["id"], "name": name, "enqueueOnly": True})
    assert session.status == 201, session
    assert wait_status(user, name, "TERMINATED")["result"] == "SUCCESS"
    changed = entry(name + "-2")
    changed["template"]["metadata"]["tag"] = "new"
    assert user.send("PUT", path, {"payload": write([changed]), "group": "default",
                                   "domain": "default"}).json == {"success": True}
    got = user.get(path + "?format=json").json
    assert (got["name"], got["template"]["metadata"]) == (
        name + "-2", {"name": name + "-2", "tag": "new"}), got


def test_a_list_of_several_is_made_whole_or_not(user, newer, name):
    several = [entry(f"{name}-{i}") for i in range(3)]
    made = newer.post(SESSIONS, {"payload": json.dumps(several)})
    assert [one["name"] for one in made.json] == [one["name"] for one in several], made
    assert len({one["id"] for one in made.json}) == 3
    twice = user.post(SESSIONS, {"payload": json.dumps([entry(name), entry(name + "-1")])})
    assert (twice.status, twice.slug) == (400, "generic-bad-request"), twice
    assert {one["name"] for one in user.get(SESSIONS).json} == {one["name"] for one in several}
    more = user.post(SESSIONS, {"payload": json.dumps([entry(name + "-a"), entry(name + "-b")])})
    assert more.json["name"] == name + "-b", more
    refused = user.send("PUT", f"{SESSIONS}/{made.json[0]['id']}", {"payload": json.dumps(several)})
    assert "has 3 templates; send exactly one" in refused.json["data"]["payload"]


def test_an_entry_names_its_project_and_owner(user, admin, domain_admin, other, name):
    projects = {one["name"]: one["id"] for one in admin.get("/aliquot/v1/groups").json["items"]}
    me, them = (client.gql("{ user { uuid } }").json for client in (user, other))
    me, them = (got.get("data", got)["user"]["uuid"] for got in (me, them))
    made = user.post(SESSIONS, {"payload": json.dumps(
        [entry(name, group_id=projects["default"], user_uuid=me)])}).json
    shown = user.get(f"{SESSIONS}/{made['id']}?format=json").json
    assert (shown["group_id"], shown["user_uuid"]) == (projects["default"], me), shown
    for_them = {"payload": json.dumps([entry(name + "-2", user_uuid=them)])}
    for client in user, domain_admin:
        assert client.post(SESSIONS, for_them).slug == "generic-forbidden"
    assert admin.post(SESSIONS, for_them).status == 200
    assert [one["name"] for one in other.get(SESSIONS).json] == [name + "-2"]
    nobody = user.post(SESSIONS, {"payload": json.dumps([entry("z", group_id=name)])})
    assert nobody.status == 404, nobody
    for member in "group_id", "user_uuid":
        reply = user.send("PUT", f"{SESSIONS}/{made['id']}",
                          {"payload": json.dumps([entry(name, **{member: them})])})
        assert f"{member}: the " in reply.json["data"]["payload"], reply


def test_who_may(user, domain_admin, other, name):
    """Members of its project use it; only its owner and administrators change it."""
    own, shared = make(user, text_of(name)), make(user, text_of(name + "-ours"),
                                                  group_name="default")
    for path in f"{OURS}/{own}", f"{OURS}/{shared}", f"{OURS}/{name}-ours":
        for verb, body in ("GET", None), ("PUT", {"payload": text_of(name)}), ("DELETE", None):
            assert other.send(verb, path, body).status == 404, (verb, path)
    assert other.get(OURS).json == {"items": [], "total": 0}
    assert [each["name"] for each in domain_admin.get(OURS).json["items"]] in ([name + "-ours"], [])
    assert len(domain_admin.get(OURS + "?all=true").json["items"]) == 2
    assert other.post(SESSIONS, {"payload": text_of("z"), "group_name": "default"}).status == 404
    assert domain_admin.get(f"{OURS}/{own}").status == 200
    assert domain_admin.send("PUT", f"{OURS}/{shared}",
                             {"payload": text_of(name + "-ours")}).status == 200
    assert domain_admin.delete(f"{OURS}/{shared}").status == 200


@pytest.mark.parametrize("git", [
    {"repository": "https://git.example/x", "credential": {"username": "me", "password": "hush"}},
    {"repository": "https://me:hush@git.example/x"},
    {"repository": "https://me:hu@sh@git.example/x"}])
def test_a_password_is_shown_to_its_owner_alone(user, admin, domain_admin, name, git):
    text = text_of(name).replace("    environ:", f"    git: {json.dumps(git)}\n    environ:")
    made = make(user, text, group_name="default")
    assert user.get(f"{SESSIONS}/{made}").body.decode() == text
    assert user.get(f"{OURS}/{name}").json["text"] == text
    for other in admin, domain_admin:
        owner = "?owner_access_key=AKIANABBDUSEREXAMPLE"
        for path in (f"{OURS}?all=true", f"{OURS}/{made}", f"{SESSIONS}/{made}",
                     f"{SESSIONS}/{made}?format=json", f"{OURS}/{made}{owner}", f"{SESSIONS}?all=true"):
            shown = other.get(path)
            assert shown.status == 200 and b"hu" not in shown.body, (path, shown)
            assert b"********" in shown.body and b"git.example/x" in shown.body, (path, shown)
        hidden = other.get(f"{SESSIONS}/{made}").body.decode()
        refused = other.send("PUT", f"{OURS}/{made}", {"payload": hidden})
        assert refused.status == 400 and "write your own" in str(refused.json), refused
    assert user.get(f"{SESSIONS}/{made}").body.decode() == text


def test_the_audit_log_has_no_secrets(user, admin, name):
    text = text_of(name).replace("    environ: {A: one", "    environ: {A: hush")
    made = make(user, text)
    assert user.send("PUT", f"{SESSIONS}/{made}", {"payload": text + "# longer\n"}).status == 200
    assert user.delete(f"{SESSIONS}/{made}").status == 200
    entries = admin.get("/aliquot/v1/audit-log?limit=3")
    assert b"hush" not in entries.body
    assert [(each["action"], each["object_name"]) for each in entries.json["items"]] == [
        (verb + "-template", name) for verb in ("delete", "modify", "create")]
    assert entries.json["items"][0]["detail"] == {
        "before": {"kind": "session", "name": name, "size": len(text) + 9}, "after": None}


def log_of(client, name):
    wait_status(client, name, "TERMINATED")
    return client.get(f"/aliquot/v1/sessions/{name}/logs").body.decode().splitlines()


def test_a_session_says_what_it_wants_otherwise(user, name):
    made = make(user, text_of(name))
    for path, more, lines in (
            ("/session/_/create-from-template", {"template_id": made}, ["first", "one 2"]),
            ("/aliquot/v1/sessions", {"template": name, "config": {"environ": {"C": "3", "A": "4"}}},
             ["first", "4 2 3"]),
            ("/session", {"template": name, "bootstrap_script": "echo second",
                          "config": {"environ": {}}}, ["second"])):
        number = f"{name}-{len(lines[-1])}"
        reply = user.post(path, {"name": number, "enqueueOnly": True, **more})
        assert reply.status == 201, reply
        assert [line.strip() for line in log_of(user, number) if line.strip()] == lines
        assert user.get(f"/aliquot/v1/sessions/{number}").json["tag"] == name
    reply = user.post("/aliquot/v1/sessions/_/dry-run", {"name": f"{name}-dry", "template": name})
    assert reply.status == 200 and reply.json["resource_group"] == "default", reply
    for unknown in "no-such", "0" * 8, 7:
        reply = user.post("/session", {"name": f"{name}-x", "template": unknown})
        assert reply.status in (400, 404), reply
    reply = user.post("/session", {"name": f"{name}-x", "template": name, "imge": 1})
    assert (reply.status, list(reply.json["data"])) == (400, ["imge"]), reply


def test_a_request_sent_again(user, name):
    """It is answered as before, though its template is gone."""
    make(user, text_of(name))
    body = {"name": name + "-once", "template": name, "enqueueOnly": True}
    sent = {**user.headers("POST", "/session", "application/json"), "Idempotency-Key": name}
    first = user.raw("POST", "/session", json.dumps(body).encode(), sent)
    assert user.delete(f"{SESSIONS}/{name}").status == 200
    again = user.raw("POST", "/session", json.dumps(body).encode(), sent)
    assert first.status == again.status == 201 and first.json == again.json, (first, again)
    wait_status(user, name + "-once", "TERMINATED")


@pytest.mark.parametrize("path", [SESSIONS, "/aliquot/v1/templates"])
def test_a_creation_sent_again(user, name, path):
    body, key = {"payload": text_of(name)}, name + "-key"
    first = post(user, path, body, key)
    assert first.status in (200, 201) and not is_again(first), first
    again = post(user, path, body, key)
    assert (again.status, again.body) == (first.status, first.body) and is_again(again), again
    refused = post(user, path, {"payload": text_of(name + "-b")}, key)
    assert refused.slug == "idempotency-key-reused", refused


def test_clusters(user, name, tmp_path):
    make(user, text_of(name))
    seen = tmp_path / "seen"  # the session ends with its main program, and worker1 with that
    make(user, text_of(name + "-main").replace(
        "$C", f"$C; until [ -e {seen} ]; do sleep 0.1; done"))
    refused = user.post(CLUSTERS, {"payload": CLUSTER % (name + "-c", name, "no-such")})
    assert "line 6, column 20: spec.nodes.1.session_template: there is no" in refused.json["data"][
        "payload"], refused
    made = make(user, CLUSTER % (name + "-c", name + "-main", name), CLUSTERS)
    reply = user.post("/session/_/create-cluster", {
        "clientSessionToken": name + "-run", "template_id": made, "enqueueOnly": True,
        "config": {"environ": {"A": "two"}}})
    assert reply.status == 201, reply
    logs = f"/aliquot/v1/sessions/{reply.json['sessionId']}/logs?kernel="
    for host in "main1", "worker1":
        wait_for(lambda: user.get(logs + host).body.decode().splitlines() == ["first", "two 2"],
                 what=f"what {host} prints")
    seen.touch()
    session = wait_status(user, name + "-run", "TERMINATED")
    assert [each["hostname"] for each in session["kernels"]] == ["main1", "worker1"]
    assert user.delete(f"{SESSIONS}/{name}-main").status == 200
    reply = user.post("/session/_/create-cluster", {
        "clientSessionToken": name + "-lost", "template_id": made, "enqueueOnly": True})
    assert reply.status == 404 and "role main" in reply.json["msg"], reply


@pytest.mark.parametrize("roles, field", [
    ({}, "roles"), ([{"role": "main", "image": "process"}], "roles.role"),
    ([{"role": "a", "image": "process"}] * 2, "roles.role"), ([{"role": "a"}], "roles.image"),
    ([{"role": "a1", "image": "process"}], "roles.role"),
    ([{"role": "a", "image": "process", "count": 1001}], "roles.count"),
    ([{"role": "a", "image": "b c"}], "roles.image"),
    ([{"role": "a", "image": "process", "resources": {"cpu": "x"}}], "roles.a.resources.cpu"),
    ([{"role": "a", "image": "process", "resources": {"cpu": "1.5"}}], "roles.a.resources.cpu")])
def test_bad_roles(user, name, roles, field):
    reply = user.post("/session", {"name": name, "image": "process", "roles": roles})
    assert (reply.status, list(reply.json["data"])) == (400, [field]), reply
