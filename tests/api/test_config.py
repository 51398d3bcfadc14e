# SPDX-License-Identifier: Apache-2.0
"""The configuration tree: /config/* as Backend.AI has it, import and move, and what takes effect."""

import itertools
import json

import pytest

from client import ADMIN
from cluster import wait_for

GET, SET, DELETE = "/config/get", "/config/set", "/config/delete"
IMPORT, MOVE = "/aliquot/v1/config/import", "/aliquot/v1/config/move"
VECTOR = {"a": {"b": {"": "1", "c": "2"}}, "x/y": "3"}


@pytest.fixture(autouse=True)
def empty(admin):
    """Nothing is left of a test, and nothing that it set has an effect on others."""
    yield
    assert admin.post(DELETE, {"key": "", "prefix": True}).status == 200


def get(client, key, **more):
    reply = client.post(GET, {"key": key, **more})
    assert reply.status == 200, reply
    return reply.json["result"]


def done(reply):
    assert reply.status == 200 and reply.json["result"] == "ok", reply
    return reply.json


def refused(reply, field, word=""):
    assert reply.status == 400 and reply.slug == "invalid-api-params", reply
    assert field in reply.json["data"] and word in reply.json["data"][field], reply


def test_one_value(admin):
    assert get(admin, "a") is None
    answer = done(admin.post(SET, {"key": "a", "value": "b"}))
    assert answer["without_effect"] == ["a"] and answer["kept_without_effect"] == 1
    assert get(admin, "a") == get(admin, "/a") == get(admin, "%61") == "b"
    assert get(admin, "a", prefix=True) == {"": "b"}
    done(admin.post(DELETE, {"key": "a"}))
    assert get(admin, "a") is None
    done(admin.post(DELETE, {"key": "a"}))  # as with etcd: nothing to do is no error


def test_values_below_a_key(admin):
    """Names of the object are keys, so they may be paths; numbers and booleans are their JSON."""
    done(admin.post(SET, {"key": "a", "value": {"b": "1", "b/c": "2", "": "x", "n": 3, "t": True,
                                                "z": None, "d": {"e": ""}}}))
    assert get(admin, "a", prefix=True) == {"": "x", "b": {"": "1", "c": "2"}, "n": "3",
                                            "t": "true", "d": {"e": ""}}
    many = {f"k{i}": str(i) for i in range(40)}  # etcd took 16
    done(admin.post(SET, {"key": "many", "value": many}))
    assert get(admin, "many", prefix=True) == many


def test_there_and_back(admin):
    assert done(admin.post(IMPORT, {"tree": VECTOR}))["added"] == 3
    assert [get(admin, key) for key in ("a/b", "a/b/c", "x%2Fy", "a", "x/y")] == [
        "1", "2", "3", None, None]
    tree = get(admin, "", prefix=True)
    assert tree == VECTOR
    again = done(admin.post(IMPORT, {"tree": tree}))
    assert (again["added"], again["changed"], again["unchanged"]) == (0, 0, 3)
    done(admin.post(IMPORT, {"tree": tree, "prefix": "below/%2F"}))
    assert get(admin, "below", prefix=True) == {"/": VECTOR}


def test_a_prefix_ends_where_a_name_does(admin):
    done(admin.post(IMPORT, {"tree": {"config": {"redis": {"": "r", "addr": "1"},
                                                 "redis2": {"x": "2"}, "redis-x": "3"}}}))
    assert get(admin, "config/redis", prefix=True) == {"": "r", "addr": "1"}
    assert get(admin, "config/redis/", prefix=True) == {"": "r", "addr": "1"}
    assert done(admin.post(DELETE, {"key": "config/redis", "prefix": True}))["removed"] == 2
    assert get(admin, "config", prefix=True) == {"redis2": {"x": "2"}, "redis-x": "3"}


def test_scopes(admin, cluster):
    agent = cluster.agent()["id"]
    node = f"node/{agent}"
    done(admin.post(SET, {"key": "k", "value": "all"}))
    assert get(admin, "k", scope=node) == "all"
    done(admin.post(SET, {"key": "k", "value": "group", "scope": "sgroup/default"}))
    assert get(admin, "k", scope=node) == get(admin, "k", scope="sgroup/default") == "group"
    assert get(admin, "k", scope="node/i-other") == "all"
    done(admin.post(SET, {"key": "k/l", "value": "node", "scope": node}))
    assert get(admin, "k", scope=node, prefix=True) == {"": "group", "l": "node"}
    assert get(admin, "k", prefix=True) == {"": "all"}
    assert get(admin, "", prefix=True) == {
        "k": "all", "sgroup": {"default": {"k": "group"}},
        "nodes": {"agents": {agent: {"k": {"l": "node"}}}}}
    done(admin.post(DELETE, {"key": "k", "scope": "sgroup/default"}))
    assert get(admin, "k", scope=node) == "all"
    for scope in ("node", "sgroup", "node/", "odd", "agent/x"):
        refused(admin.post(GET, {"key": "k", "scope": scope}), "scope")


def test_move(admin):
    done(admin.post(IMPORT, {"tree": VECTOR}))
    done(admin.post(MOVE, {"from": "a/b", "to": "x%2Fy/z"}))
    assert get(admin, "", prefix=True) == {"x/y": {"": "3", "z": {"": "1", "c": "2"}}}
    done(admin.post(MOVE, {"from": "x%2Fy/z", "to": "x%2Fy"}))
    assert get(admin, "", prefix=True) == {"x/y": {"": "1", "c": "2"}}
    for to in ("x%2Fy", "x%2fy/z"):
        refused(admin.post(MOVE, {"from": "x%2Fy", "to": to}), "to", "below")
    refused(admin.post(MOVE, {"from": "x%2Fy", "to": ""}), "to", "root")
    missing = admin.post(MOVE, {"from": "no", "to": "where"})
    assert missing.status == 404 and "'no'" in missing.json["msg"], missing
    assert get(admin, "", prefix=True) == {"x/y": {"": "1", "c": "2"}}


# ---- what takes effect ----

def status(client):
    return client.get("/manager/status").json["status"]


def test_status(admin, nobody):
    assert done(admin.post(SET, {"key": "manager/status", "value": "frozen"}))[
        "without_effect"] == []
    assert status(nobody) == "frozen"
    assert admin.send("PUT", "/manager/status", {"status": "running"}).status == 204
    assert get(admin, "manager/status") == "running"
    done(admin.post(SET, {"key": "manager", "value": {"status": "frozen"}}))
    assert status(nobody) == "frozen"
    done(admin.post(DELETE, {"key": "manager", "prefix": True}))
    assert status(nobody) == "running"
    refused(admin.post(SET, {"key": "manager/status", "value": "banana"}), "manager/status",
            "frozen")
    done(admin.post(SET, {"key": "kept/status", "value": "banana"}))
    refused(admin.post(MOVE, {"from": "kept", "to": "manager"}), "manager/status")
    assert get(admin, "kept/status") == "banana" and status(nobody) == "running"


def test_announcement(admin, nobody):
    done(admin.post(SET, {"key": "manager/announcement", "value": "Tonight"}))
    shown = nobody.get("/manager/announcement").json
    assert shown == {"enabled": True, "message": "Tonight"}
    assert admin.post("/manager/announcement", {"enabled": False}).status == 204
    assert not nobody.get("/manager/announcement").json["enabled"]
    refused(admin.post(SET, {"key": "manager/announcement", "value": "x" * 4097}),
            "manager/announcement", "4096")


@pytest.mark.parametrize("key, good, bad", (
    ("config/api/allow-origins", ("*", "https://a.example", "http://a:80, https://b.example", ""),
     ("a.example", "https://a/b", "ftp://a", "https://", "x" * 300,
      ",".join(f"http://a{i}" for i in range(101)))),
    ("config/plugins/scheduler/fifo/num_retries_to_skip", ("0", "3", "1000000"),
     ("-1", "", "1.5", "1000001", "9" * 30, "3 ", "three"))))
def test_values_are_checked(admin, key, good, bad):
    for value in good:
        assert done(admin.post(SET, {"key": key, "value": value}))["without_effect"] == []
    for value in bad:
        refused(admin.post(SET, {"key": key, "value": value}), key)
    assert get(admin, key) == good[-1]


def test_retries_of_the_tree_are_those_of_groups_that_say_none(admin):
    key = "config/plugins/scheduler/fifo/num_retries_to_skip"

    def retries():
        groups = admin.get("/aliquot/v1/resource-groups").json["items"]
        return next(group["retries"] for group in groups if group["name"] == "retrying")

    created = admin.post("/aliquot/v1/resource-groups", {"name": "retrying", "scheduler": "fifo"})
    assert created.status in (200, 201), created
    assert retries() == 0
    done(admin.post(SET, {"key": key, "value": "3"}))
    assert retries() == 3
    assert admin.send("PATCH", "/aliquot/v1/resource-groups/retrying", {"retries": 0}).status == 200
    assert retries() == 0
    done(admin.post(DELETE, {"key": key}))
    assert admin.delete("/aliquot/v1/resource-groups/retrying").status in (200, 204)


def test_an_import_is_all_or_nothing(admin, nobody):
    tree = {"new": "1", "manager": {"status": "frozen"}}
    answer = done(admin.post(IMPORT, {"tree": tree, "dry_run": True}))
    assert (answer["added"], answer["without_effect"]) == (2, ["new"])
    assert get(admin, "", prefix=True) == {} and status(nobody) == "running"
    tree["manager"]["status"] = "banana"
    for dry_run in (True, False):
        refused(admin.post(IMPORT, {"tree": tree, "dry_run": dry_run}), "manager/status")
    assert get(admin, "", prefix=True) == {}
    refused(admin.post(IMPORT, {"tree": {"fine": "1", "list": {"of": ["x"]}}}), "list/of", "list")
    assert get(admin, "", prefix=True) == {}


# ---- lists ----

def test_folder_types_and_registries(admin, nobody, user):
    assert nobody.get("/config/vfolder-types").json == ["user"]
    done(admin.post(SET, {"key": "volumes/_types", "value": {"user": "", "group": ""}}))
    assert nobody.get("/config/vfolder-types").json == ["group", "user"]
    assert admin.get("/config/docker-registries").json == {}
    done(admin.post(IMPORT, {"tree": {
        "config": {"docker": {"registry": {"r.example:5000": {"": "https://r", "username": "u"},
                                           "plain": "http://p", "none": {"type": "docker"}}}}}}))
    assert admin.get("/config/docker-registries").json == {"r.example:5000": "https://r",
                                                           "plain": "http://p"}
    assert user.get("/config/docker-registries").status == 401


# ---- the audit log ----

def entries(client, seen=()):
    rows = client.get("/aliquot/v1/audit-log?limit=1000&filter=object_kind==%22config%22").json["items"]
    return [row for row in reversed(rows) if row["seq"] not in seen]


@pytest.fixture
def audited(admin):
    """What was written since the test began, the oldest first."""
    seen = {row["seq"] for row in entries(admin)}
    return lambda: entries(admin, seen)


def changes(row):
    assert row["detail"]["more"] == 0
    return {one.pop("key"): one for one in row["detail"]["keys"]}


def test_each_change_is_an_entry(admin, audited):
    def value(change, before, after):
        return {"change": change, "before": before, "after": after}

    key = "config/system/timezone"
    done(admin.post(SET, {"key": key, "value": "UTC"}))
    done(admin.post(SET, {"key": key, "value": "Asia/Seoul"}))
    done(admin.post(SET, {"key": key, "value": "Asia/Seoul"}))  # changes nothing
    done(admin.post(IMPORT, {"tree": {"config": {"idle": {"enabled": "utilization"}, "odd": "b"}}}))
    done(admin.post(IMPORT, {"tree": {"config": {"idle": {"enabled": "session_lifetime"}}}, "dry_run": True}))
    done(admin.post(MOVE, {"from": key, "to": "config/system/zone"}))
    done(admin.post(DELETE, {"key": "config/idle", "prefix": True}))
    refused(admin.post(SET, {"key": "manager/status", "value": "banana"}), "manager/status")
    assert admin.send("PUT", "/manager/status", {"status": "frozen"}).status == 204
    rows = audited()
    assert [(row["action"], row["object_name"]) for row in rows] == [
        ("set-config", key), ("set-config", key), ("set-config", None), ("move-config", key),
        ("delete-config", "config/idle"), ("set-config", "manager/status")]
    assert [changes(row) for row in rows] == [
        {key: value("added", None, "UTC")}, {key: value("changed", "UTC", "Asia/Seoul")},
        {"config/idle/enabled": value("added", None, "utilization"), "config/odd": {"change": "added"}},
        {key: {"change": "removed"}, "config/system/zone": {"change": "added"}},
        {"config/idle/enabled": value("removed", "utilization", None)},
        {"manager/status": value("added", None, "frozen")}]
    row = rows[0]
    assert (row["user"], row["access_key"], row["address"], row["outcome"], row["times"]) == (
        "admin@lablup.com", ADMIN[0], "127.0.0.1", "ok", 1)
    assert row["user_id"] and (row["domain"], row["object_domain"]) == ("default", None)
    assert row["request_id"]


SECRETS = {"config": {"redis": {"password": "hush-1", "addr": "redis://:hush-2@h"},
                      "apis": "hush-3",
                      "docker": {"registry": {"r": {"": "https://u:hush-4@r",
                                                            "password": "hush-5"}}},
                      "plugins": {"hook": {"webhook": {"url": "https://h/hush-6"}}},
                      "watcher": {"token": "hush-7"}},
           "volumes": {"proxies": {"p": {"secret": "hush-8"}}}, "any": "hush-9"}


def test_secrets_are_not_in_it(admin, audited):
    for prefix in ("", "sgroup/default", "nodes/agents/i-1"):
        done(admin.post(IMPORT, {"tree": SECRETS, "prefix": prefix}))
        done(admin.post(SET, {"key": "config/idle/enabled", "value": "no",
                              "scope": "sgroup/default"}))
        done(admin.post(MOVE, {"from": f"{prefix}/config/redis", "to": "moved"}))
        done(admin.post(DELETE, {"key": prefix, "prefix": True}))
    rows = audited()
    assert "hush" not in json.dumps(rows)
    assert {"config/redis/password", "any", "nodes/agents/i-1/volumes/proxies/p/secret"} <= {
        one["key"] for row in rows for one in row["detail"]["keys"]}
    assert changes(rows[1]) == {"sgroup/default/config/idle/enabled": {
        "change": "added", "before": None, "after": "no"}}


def test_an_entry_has_a_bound(admin, audited):
    done(admin.post(IMPORT, {"tree": {"many": {str(i): "" for i in range(150)}}}))
    done(admin.post(IMPORT, {"tree": {"config": {"idle": "x" * 4097},
                                      "manager": {str(i): "x" * 4096 for i in range(9)}}}))
    many, big = (row["detail"] for row in audited())
    assert (len(many["keys"]), many["more"]) == (100, 50)
    assert len(json.dumps(big)) < 32768 and len(big["keys"]) + big["more"] == 10
    assert {one["key"]: one for one in big["keys"]}["config/idle"] == {
        "key": "config/idle", "change": "added"}


def test_administrators_of_a_domain_do_not_see_it(admin, domain_admin, audited):
    done(admin.post(SET, {"key": "config/system/timezone", "value": "UTC"}))
    assert audited() and entries(domain_admin) == []


# ---- what is refused ----

@pytest.mark.parametrize("key", ("a//b", "%00", "%ff", "a/%80", "x/" * 33, "x" * 1025, ""))
def test_keys_that_cannot_be(admin, key):
    refused(admin.post(SET, {"key": key, "value": "x"}), "key")
    if key:
        refused(admin.post(GET, {"key": key}), "key")


def test_hostile_keys_are_kept_as_they_are(admin):
    names = ["'; DROP TABLE config_entries; --", "%s%n", "..", "../../etc", "a\nb", "\x1b[2J",
             "\u202e", "\U0001f512", "<script>", "__proto__", "?", "*", "%", "%%", "$1", "~", "~~"]
    tree = {name: f"of {i}" for i, name in enumerate(names)}
    done(admin.post(IMPORT, {"tree": tree, "prefix": "odd"}))
    assert get(admin, "odd", prefix=True) == tree
    assert get(admin, "", prefix=True) == {"odd": tree}
    done(admin.post(MOVE, {"from": "odd", "to": "~"}))
    assert done(admin.post(DELETE, {"key": "", "prefix": True}))["removed"] == len(names)


@pytest.mark.parametrize("value, word", (([1], "list"), (None, "null"), ("x" * 65537, "65536")))
def test_values_that_cannot_be(admin, value, word):
    refused(admin.post(SET, {"key": "a", "value": value}), "value", word)


@pytest.mark.parametrize("value", ("\x1b[2J", "a\x07", "\x7f", "\x9b31m"))
def test_values_have_no_control_characters_but_line_ends_and_tabs(admin, value):
    for body, field in (({"key": "a", "value": value}, "a"), ({"key": "", "value": {"b/c": value}}, "b/c")):
        refused(admin.post(SET, body), field, "control characters")
    refused(admin.post(IMPORT, {"tree": {"b": {"c": value}}}), "b/c", "control characters")
    done(admin.post(SET, {"key": "a", "value": "one\n\ttwo\r\n"}))
    assert get(admin, "a") == "one\n\ttwo\r\n"
    done(admin.post(DELETE, {"key": "a"}))


@pytest.mark.parametrize("body, field", (
    ({}, "key"), ({"key": 1, "value": "x"}, "key"), ({"key": "a"}, "value"),
    ({"key": "a", "value": "x", "odd": 1}, "odd")))
def test_bodies_that_cannot_be(admin, body, field):
    refused(admin.post(SET, body), field)


def test_there_is_a_bound(admin):
    refused(admin.post(IMPORT, {"tree": {f"k{i}": "" for i in range(10001)}}), "key", "10000")
    done(admin.post(IMPORT, {"tree": {f"k{i}": "" for i in range(9999)}}))
    refused(admin.post(IMPORT, {"tree": {"l": "", "m": ""}}), "key", "10000")
    done(admin.post(IMPORT, {"tree": {"l": ""}}))
    done(admin.post(DELETE, {"key": "", "prefix": True}))
    big = {f"k{i}": "x" * 65536 for i in range(63)}
    done(admin.post(IMPORT, {"tree": big}))
    refused(admin.post(IMPORT, {"tree": {"more": "x" * 65536}}), "value", "characters")
    assert get(admin, "", prefix=True) == big
    deep = value = {}
    for _ in itertools.repeat(None, 40):
        value["n"] = value = {}
    value["n"] = "x"
    refused(admin.post(IMPORT, {"tree": deep}), "key", "32")


@pytest.mark.parametrize("path, body", (
    (GET, {"key": "a"}), (SET, {"key": "a", "value": "b"}), (DELETE, {"key": "a"}),
    (IMPORT, {"tree": {}}), (MOVE, {"from": "a", "to": "b"})))
def test_only_superadmins(path, body, user, domain_admin, nobody):
    for client in (user, domain_admin, nobody):
        assert client.post(path, body).status in (401, 403)


def test_it_outlives_the_manager(cluster, admin, nobody):
    done(admin.post(IMPORT, {"tree": VECTOR}))
    done(admin.post(SET, {"key": "manager/status", "value": "frozen"}))
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 30, "the manager")
    assert get(admin, "", prefix=True) == {**VECTOR, "manager": {"status": "frozen"}}
    assert status(nobody) == "frozen"
    wait_for(lambda: cluster.agent().get("connected"), 30, "the agent")
