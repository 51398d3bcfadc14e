# SPDX-License-Identifier: Apache-2.0
"""Model services: what requests take and answer, revisions, tokens, and who sees them. None has a
replica here; tests/system/test_model_service_routes.py has those."""

import concurrent.futures
import hashlib
import itertools
import re

import pytest

from cluster import wait_for
from test_repeats import is_again, new_key, post

PATH = "/aliquot/v1/model-services"
numbers = itertools.count(1)


def body(name, **more):
    return {"name": name, "image": "sh", "command": "serve", "port": 8000, "replicas": 0,
            "resources": {"cpu": "1", "mem": "64m"}, **more}


@pytest.fixture(name="own")
def own_fixture():
    return f"svc-{next(numbers)}"


@pytest.fixture(name="service")
def service_fixture(user, own):
    made = user.post(PATH, body(own))
    assert made.status == 201, made
    yield made.json
    user.delete(f"{PATH}/{made.json['id']}?force=true")


def test_a_service_is_as_it_was_asked_for(user, own):
    asked = {"tag": "t", "public": True, "replicas": "0-3", "note": "first",
             "environ": {"A": "1"}, "shmem": "16m", "bootstrap": "echo x", "priority": 20,
             "health": {"path": "/health", "interval": 2, "timeout": "3s", "retries": 4},
             "ready_timeout": "5m",
             "limits": {"cap": 4, "queue": 10, "queue_bytes": "1m", "queue_timeout": "30s",
                        "request_timeout": 60, "drain_timeout": 5, "affinity": "header:X-User"}}
    made = user.post(PATH, body(own, **asked))
    assert made.status == 201, made
    one = made.json
    assert (one["name"], one["tag"], one["public"], one["status"]) == (own, "t", True, "scaling")
    assert {key: one["replicas"][key] for key in ("wanted", "min", "max", "ready")} == \
        {"wanted": 1, "min": 0, "max": 3, "ready": 0}
    assert one["limits"] == {"cap": 4, "queue": 10, "queue_bytes": 1 << 20, "queue_timeout": 30,
                             "request_timeout": 60, "drain_timeout": 5,
                             "affinity": "header:X-User"}
    revision = one["revision"]
    assert (revision["number"], revision["note"], revision["is_goal"]) == (1, "first", True)
    assert (revision["image"], revision["port"], revision["runtime"]) == ("sh", 8000, "custom")
    assert revision["health"] == {"path": "/health", "status": 200, "interval": 2, "timeout": 3,
                                  "retries": 4}
    assert revision["ready_timeout"] == 300 and revision["priority"] == 20
    assert "serve" in revision["command"] and revision["environ"]["A"] == "1"
    assert revision["resources"] == {"cpu": "1", "mem": "64m"}
    assert one["url"] is None and one["urls"] == []  # there is no proxy
    assert one["owner"] == "user@lablup.com" and one["project"] == "default"
    for name in own, own.upper(), one["id"]:
        shown = user.get(f"{PATH}/{name}").json
        lively = dict.fromkeys(("replica_list", "replicas", "problem", "status", "retry_at"))
        assert {**shown, **lively} == {**one, **lively}, shown
    assert own in [each["name"] for each in user.get(PATH).json["items"]]
    assert user.delete(f"{PATH}/{own}").status == 204

    def ended():
        shown = user.get(f"{PATH}/{one['id']}").json
        return shown["status"] == "ended" and shown
    assert wait_for(ended)["revision"]["number"] == 1
    assert own not in [each["name"] for each in user.get(PATH).json["items"]]
    assert own in [each["name"] for each in user.get(PATH + "?all_states=true").json["items"]]


@pytest.mark.parametrize("more, field", (
    ({"name": "abc"}, "name"), ({"name": "-abcd"}, "name"), ({"name": "x" * 25}, "name"),
    ({"image": ""}, "image"), ({"port": 0}, "port"), ({"port": "http"}, "port"),
    ({"port": None}, "port"), ({"replicas": "3-1"}, "replicas"), ({"replicas": 257}, "replicas"),
    ({"resources": {"cpu": "-1"}}, "resources.cpu"),
    ({"resources": {"nosuch": "1"}}, "resources.nosuch"),
    ({"health": {"path": "health"}}, "health.path"), ({"limits": {"affinity": "x"}},
                                                       "limits.affinity"),
    ({"runtime": "nosuch"}, "runtime"), ({"mounts": [":/x"]}, "mounts"),
    ({"definition": "model.yml"}, "definition"), ({"group": "nosuch"}, "group"),
    ({"model": "a/b"}, "model"), ({"cluster_mode": "x"}, "cluster_mode"), ({"nosuch": 1}, "nosuch")))
def test_refused(user, own, more, field):
    reply = user.post(PATH, {**body(own), **more})
    assert reply.status == 400 and field in reply.json["data"], reply
    assert user.get(f"{PATH}/{own}").status == 404


def test_what_is_missing(user, own):
    for field in "name", "image", "port":
        asked = body(own)
        del asked[field]
        reply = user.post(PATH, asked)
        assert reply.status == 400 and field in reply.json["data"], reply
    gone = user.post(PATH, body(own, model="nosuch"))
    assert gone.status == 404 and "nosuch" in str(gone.json), gone


def test_names_are_taken_once(user, admin, service):
    for client, name in ((user, service["name"]), (admin, service["name"].upper())):
        refused = client.post(PATH, body(name))
        assert refused.status == 409, refused
    assert user.delete(f"{PATH}/{service['id']}").status == 204
    wait_for(lambda: user.get(f"{PATH}/{service['id']}").json["status"] == "ended")
    again = user.post(PATH, body(service["name"]))
    assert again.status == 201 and again.json["id"] != service["id"], again
    assert user.get(f"{PATH}/{service['name']}").json["id"] == again.json["id"]
    assert user.delete(f"{PATH}/{service['name']}").status == 204


def test_changes(user, service):
    path = f"{PATH}/{service['name']}"
    changed = user.send("PATCH", path, {"replicas": "0-4", "limits": {"cap": 2}, "tag": "new"})
    assert changed.status == 200, changed
    assert changed.json["replicas"]["max"] == 4 and changed.json["limits"]["cap"] == 2
    assert changed.json["tag"] == "new" and changed.json["version"] > service["version"]
    changed = user.send("PATCH", path, {"limits": {"queue": 5}, "tag": None}).json
    assert (changed["limits"]["cap"], changed["limits"]["queue"], changed["tag"]) == (2, 5, None)
    assert changed["revision"]["number"] == 1
    refused = user.send("PATCH", path, {"image": "x"})
    assert refused.status == 400 and "image" in refused.json["data"], refused
    assert user.send("PATCH", PATH + "/nosuch-one", {"tag": "x"}).status == 404


def test_revisions(user, service):
    path = f"{PATH}/{service['name']}"
    made = user.post(path + "/revisions", {"environ": {"B": "2"}, "note": "second"})
    assert made.status == 201, made
    assert made.json["revision"]["number"] == 2 and made.json["revision"]["note"] == "second"
    assert made.json["revision"]["environ"]["B"] == "2" and made.json["revision"]["port"] == 8000
    made = user.post(path + "/revisions", {"port": 9000, "environ": None})
    assert made.json["revision"]["port"] == 9000 and "B" not in made.json["revision"]["environ"]
    assert made.json["revision"]["note"] is None
    listed = user.get(path + "/revisions").json
    assert [each["number"] for each in listed["items"]] == [3, 2, 1] and listed["total"] == 3
    assert [each["is_goal"] for each in listed["items"]] == [True, False, False]
    back = user.post(path + "/rollback", {})
    assert back.status == 200 and back.json["revision"]["number"] == 2, back
    back = user.post(path + "/rollback", {"revision": 3})
    assert back.json["revision"]["number"] == 3
    assert user.post(path + "/rollback", {"revision": 1}).json["revision"]["port"] == 8000
    for wrong in {}, {"revision": 9}:
        refused = user.post(path + "/rollback", wrong)
        assert refused.status == 400 and "revision" in refused.json["data"], refused
    for wrong, field in (({"port": None}, "port"), ({"image": None}, "image"),
                         ({"replicas": 1}, "replicas")):
        refused = user.post(path + "/revisions", wrong)
        assert refused.status == 400 and field in refused.json["data"], refused
    assert user.post(path + "/revisions", {"port": 1234}).json["revision"]["number"] == 4


def test_of_two_deployments_at_once_none_is_lost(user, service):
    path = f"{PATH}/{service['name']}/revisions"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda i: user.post(path, {"environ": {"N": str(i)}}), range(8)))
    made = [reply for reply in replies if reply.status == 201]
    assert made and all(reply.status == 409 for reply in replies if reply not in made), replies
    assert user.get(path).json["total"] == 1 + len(made)


ROLLING = {"strategy": "rolling", "max_surge": 1, "max_unavailable": 0, "when_full": "wait",
           "abort": {"failures": 3, "error_ratio": 0, "latency_ratio": 0, "requests": 20,
                     "stalled": 0}}


def rollout_of(reply):
    """The settings alone: a rollout may be under way."""
    assert reply.status in (200, 201), reply
    return {key: value for key, value in reply.json["rollout"].items() if key != "state"}


def test_settings_of_rollouts(user, own):
    canary = {"strategy": "canary", "steps": [5, 25, 50], "step_interval": "5m", "max_surge": "25%",
              "when_full": "replace", "abort": {"error_ratio": 0.05, "failures": 1}}
    made = user.post(PATH, body(own, rollout=canary))
    wanted = {**ROLLING, **canary, "step_interval": 300,
              "abort": {**ROLLING["abort"], "error_ratio": 0.05, "failures": 1}}
    assert rollout_of(made) == wanted and made.json["rollout"]["state"] is None, made
    path = f"{PATH}/{own}"

    def change(rollout):
        return user.send("PATCH", path, {"rollout": rollout})

    # Without a strategy only the members that are named change; of "abort", too.
    wanted["steps"] = [10]
    assert rollout_of(change({"steps": [10]})) == wanted
    wanted["abort"]["latency_ratio"] = 2
    assert rollout_of(change({"abort": {"latency_ratio": 2}})) == wanted
    wanted["steps"] = [40, 80]
    wanted["max_surge"] = 1
    assert rollout_of(change({"step_weight": 40, "max_surge": None})) == wanted
    assert rollout_of(user.send("PATCH", path, {"tag": "x"})) == wanted
    # With it the others have their defaults.
    assert rollout_of(change({"strategy": "rolling", "max_unavailable": 1})) == {
        **ROLLING, "max_unavailable": 1}
    green = rollout_of(change({"strategy": "blue-green", "auto_promote": True, "promote_delay": 60,
                               "keep": "10m"}))
    assert green == {"strategy": "blue-green", "auto_promote": True, "promote_delay": 60,
                     "keep": 600, "when_full": "wait", "abort": ROLLING["abort"]}
    assert rollout_of(change(None)) == ROLLING
    made = user.post(path + "/revisions", {"port": 9000, "rollout": {"max_surge": 2}})
    assert rollout_of(made) == {**ROLLING, "max_surge": 2}
    assert rollout_of(user.get(path)) == {**ROLLING, "max_surge": 2}
    assert rollout_of(user.post(path + "/revisions", {"rollout": None})) == ROLLING
    assert user.delete(path).status == 204


@pytest.mark.parametrize("rollout, field", (
    ({"strategy": "recreate"}, "rollout.strategy"), ({"steps": [5]}, "rollout.steps"),
    ({"strategy": "canary", "steps": [5, 5]}, "rollout.steps[1]"),
    ({"strategy": "canary", "steps": [100]}, "rollout.steps[0]"),
    ({"strategy": "canary", "steps": ["x"]}, "rollout.steps[0]"),
    ({"max_surge": "x"}, "rollout.max_surge"), ({"max_surge": 0}, "rollout.max_surge"),
    ({"keep": 5}, "rollout.keep"), ({"nosuch": 1}, "rollout.nosuch"),
    ({"abort": {"error_ratio": 2}}, "rollout.abort.error_ratio"),
    ({"abort": 1}, "rollout.abort"), ({"state": {"phase": "done"}}, "rollout.state"),
    ([], "rollout"), ("canary", "rollout")))
def test_refused_settings_of_rollouts(user, service, rollout, field):
    path = f"{PATH}/{service['name']}"
    for reply in (user.send("PATCH", path, {"rollout": rollout}),
                  user.post(path + "/revisions", {"rollout": rollout}),
                  user.post(PATH, body("never-made", rollout=rollout))):
        assert reply.status == 400 and field in reply.json["data"], reply
    assert user.get(path).json["rollout"] == service["rollout"]
    assert user.get(path + "/revisions").json["total"] == 1
    assert user.get(f"{PATH}/never-made").status == 404


def test_there_is_nothing_to_promote_or_abort(user, service):
    for verb in "promote", "abort":
        refused = user.post(f"{PATH}/{service['name']}/rollout/{verb}", {})
        assert refused.status == 409 and service["name"] in str(refused.json), refused
        refused = user.post(f"{PATH}/{service['name']}/rollout/{verb}", {"x": 1})
        assert refused.status == 400, refused


def test_history(user, admin, own):
    made = user.post(PATH, body(own, note="first")).json
    path = f"{PATH}/{own}"
    user.send("PATCH", path, {"replicas": "0-4", "note": "the exam begins"})
    user.send("PATCH", path, {"limits": {"cap": 2}, "public": True, "tag": "x"})
    admin.send("PATCH", f"{PATH}/{made['id']}", {"rollout": {"max_surge": 2}})
    user.post(path + "/revisions", {"port": 9000, "note": "second"})
    user.post(path + "/rollback", {"note": "slower"})
    user.send("PATCH", path, {"note": "looked at it"})
    me = "user@lablup.com"
    wanted = [f"no setting changed by {me}: looked at it",
              "slower", "second",  # with what the rollout says
              "rollout settings changed by admin@lablup.com",
              f"limits changed, tag changed, made public by {me}",
              f"scaled to 0-4 by {me}: the exam begins", f"created by {me}: first"]
    items = user.get(path + "/history").json["items"]
    asked = [each for each in items if "admin@" in each["reason"] or me in each["reason"]]
    assert len(asked) == len(wanted) and all(
        each["reason"].endswith(text) for each, text in zip(asked, wanted)), items
    assert [each["revision"] for each in asked] == [1, 1, 2, 1, 1, 1, 1]
    assert set(items[0]) == {"at", "version", "replicas", "share", "revision", "reason"}
    assert [each["version"] for each in items] == sorted(
        (each["version"] for each in items), reverse=True)
    assert user.get(path + "/history?limit=2").json["items"] == items[:2]
    for wrong in "0", "501", "x":
        refused = user.get(f"{path}/history?limit={wrong}")
        assert refused.status == 400 and "limit" in refused.json["data"], refused
    assert user.delete(path).status == 204
    wait_for(lambda: user.get(f"{PATH}/{made['id']}").json["status"] == "ended")
    for name in own, made["id"]:
        last = user.get(f"{PATH}/{name}/history").json["items"][:2]
        assert [each["reason"] for each in last] == ["all replicas have ended", f"ended by {me}"]
    assert user.get(f"{PATH}/nosuch-one/history").status == 404


def test_tokens(user, service):
    path = f"{PATH}/{service['name']}/tokens"
    made = user.post(path, {"label": "ci", "duration": "3d", "paths": ["/v1/chat"], "rate": 0.5,
                            "budget": 1000})
    assert made.status == 201, made
    token = made.json
    assert re.fullmatch(r"aqs-[\w-]{43}", token["token"])
    assert (token["label"], token["paths"], token["rate"], token["budget"]) == \
        ("ci", ["/v1/chat"], 0.5, 1000)
    assert token["used"] == token["requests"] == 0 and token["used_at"] is None
    other = user.post(path, {}).json
    assert other["expires_at"] is None and other["token"] != token["token"]
    listed = user.get(path)
    assert [each["id"] for each in listed.json["items"]] == [token["id"], other["id"]]
    for secret in token["token"], hashlib.sha256(token["token"].encode()).hexdigest():
        assert secret not in listed.body.decode()
        assert secret not in user.get(f"{PATH}/{service['name']}").body.decode()
    assert user.get(f"{PATH}/{service['name']}").json["tokens"] == 2
    assert user.delete(f"{path}/{other['id'][:7]}").status == 404
    assert user.delete(f"{path}/{other['id'][:8]}").status == 204
    assert user.delete(f"{path}/ci").status == 204
    assert user.get(path).json == {"items": [], "total": 0}
    assert user.delete(f"{path}/ci").status == 404


def test_two_tokens_of_one_label(user, service):
    path = f"{PATH}/{service['name']}/tokens"
    first, second = (user.post(path, {"label": "x"}).json["id"] for _ in range(2))
    refused = user.delete(path + "/x")
    assert refused.status == 409 and "name one by its id" in str(refused.json), refused
    assert user.delete(f"{path}/{first}").status == 204
    assert user.delete(path + "/x").status == 204
    assert second not in str(user.get(path).json)


@pytest.mark.parametrize("wrong, field", (
    ({"duration": "soon"}, "duration"), ({"expires_at": "2001-01-01"}, "expires_at"),
    ({"duration": "3d", "expires_at": "2046-01-01"}, "expires_at"), ({"paths": ["v1"]}, "paths"),
    ({"paths": ["/a"] * 17}, "paths"), ({"rate": -1}, "rate"), ({"rate": "x"}, "rate"),
    ({"budget": -1}, "budget"), ({"label": ""}, "label"), ({"token": "mine"}, "token")))
def test_refused_tokens(user, service, wrong, field):
    refused = user.post(f"{PATH}/{service['name']}/tokens", wrong)
    assert refused.status == 400 and field in refused.json["data"], refused


def test_strangers_get_404(user, admin, domain_admin, service):
    """Administrators of the domain see and change it; another user of it does not."""
    assert service["name"] not in [each["name"] for each in admin.get(PATH).json["items"]]
    for boss in admin, domain_admin:
        assert service["name"] in [each["name"] for each in
                                   boss.get(PATH + "?all=true").json["items"]]
        assert boss.get(f"{PATH}/{service['id']}").status == 200
    made = domain_admin.post(PATH, body("of-the-boss"))
    assert made.status == 201, made
    assert "of-the-boss" not in str(user.get(PATH + "?all=true&all_states=true").json)
    for name in "of-the-boss", made.json["id"]:
        path = f"{PATH}/{name}"
        for reply in (user.get(path), user.send("PATCH", path, {"tag": "x"}), user.delete(path),
                      user.get(path + "/revisions"), user.post(path + "/revisions", {}),
                      user.post(path + "/rollback", {}), user.get(path + "/tokens"),
                      user.post(path + "/tokens", {}), user.delete(path + "/tokens/x"),
                      user.get(path + "/history"), user.post(path + "/rollout/promote", {}),
                      user.post(path + "/rollout/abort", {}),
                      user.send("PATCH", path + "/replicas/x", {"ratio": 1})):
            assert reply.status == 404, reply
    assert domain_admin.delete(f"{PATH}/of-the-boss").status == 204
    wait_for(lambda: domain_admin.get(f"{PATH}/{made.json['id']}").json["status"] == "ended")
    for rest in "", "/history":
        assert user.get(f"{PATH}/{made.json['id']}{rest}").status == 404


def test_a_repeated_request_makes_one_service(user, own):
    key = new_key()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: post(user, PATH, body(own), key), range(16)))
    assert {(reply.status, reply.body) for reply in replies} == {(201, replies[0].body)}
    assert sum(not is_again(reply) for reply in replies) == 1
    assert [each["name"] for each in user.get(PATH).json["items"]].count(own) == 1
    other = post(user, PATH, body(own, tag="x"), key)
    assert other.slug == "idempotency-key-reused", other
    assert user.delete(f"{PATH}/{own}").status == 204
    assert post(user, PATH, body(own), key).body == replies[0].body  # ended or not


def test_a_deployment_sent_again(user, service):
    """One revision, and one step back, however often the answer is lost."""
    path, key, other = f"{PATH}/{service['name']}", new_key(), new_key()
    first = post(user, path + "/revisions", {"environ": {"B": "2"}}, key)
    assert first.status == 201 and not is_again(first), first
    again = post(user, path + "/revisions", {"environ": {"B": "2"}}, key)
    assert again.status == 201 and is_again(again), again
    assert again.json["revision"] == first.json["revision"]
    assert user.get(path + "/revisions").json["total"] == 2
    back = post(user, path + "/rollback", {}, other)
    assert back.status == 200 and back.json["revision"]["number"] == 1, back
    assert user.post(path + "/revisions", {"environ": {"B": "3"}}).status == 201
    again = post(user, path + "/rollback", {}, other)
    assert is_again(again) and again.json["revision"]["number"] == 1, again
    assert user.get(path).json["revision"]["number"] == 3


def test_audit_log(admin, user, own):
    user.post(PATH, body(own))
    token = user.post(f"{PATH}/{own}/tokens", {"label": "x"}).json
    user.send("PATCH", f"{PATH}/{own}", {"tag": "x"})
    user.delete(f"{PATH}/{own}/tokens/x")
    user.delete(f"{PATH}/{own}")
    entries = admin.get(f"/aliquot/v1/audit-log?object={own}").json["items"]
    assert {entry["action"] for entry in entries} >= {
        "create-service", "modify-service", "end-service", "create-service-token",
        "revoke-service-token"}
    assert {entry["user"] for entry in entries} == {"user@lablup.com"}
    assert token["token"] not in str(entries)


def test_ratios_are_of_replicas(user, service):
    path = f"{PATH}/{service['name']}/replicas/nosuch"
    assert user.send("PATCH", path, {"ratio": 1}).status == 404
    for wrong in -1, 1001, "x", None:
        refused = user.send("PATCH", path, {"ratio": wrong})
        assert refused.status == 400 and "ratio" in refused.json["data"], refused


def test_the_policy_of_users_limits_replicas(admin, user, own):
    change = """mutation($n: Int) { modify_user_resource_policy(name: "default",
        props: {max_session_count_per_model_session: $n}) { ok msg } }"""
    assert admin.gql(change, {"n": 2}).json["data"]["modify_user_resource_policy"]["ok"]
    try:
        refused = user.post(PATH, body(own, replicas="0-3"))
        assert refused.status == 412 and "allows 2 replicas" in str(refused.json), refused
        assert user.post(PATH, body(own, replicas="0-2")).status == 201
        refused = user.send("PATCH", f"{PATH}/{own}", {"replicas": "0-3"})
        assert refused.status == 412, refused
    finally:
        assert admin.gql(change, {"n": -1}).json["data"]["modify_user_resource_policy"]["ok"]
    assert user.send("PATCH", f"{PATH}/{own}", {"replicas": "0-3"}).status == 200
    assert user.delete(f"{PATH}/{own}").status == 204


def test_lists_have_pages(user, own):
    names = [f"{own}-{i}" for i in range(3)]
    for name in names:
        assert user.post(PATH, body(name)).status == 201
    whole = user.get(PATH).json
    pages = [user.get(f"{PATH}?limit=1&offset={i}").json for i in range(whole["total"])]
    assert [page["items"][0]["id"] for page in pages] == [each["id"] for each in whole["items"]]
    assert {page["total"] for page in pages} == {whole["total"]}
    for name in names:
        assert user.delete(f"{PATH}/{name}").status == 204
