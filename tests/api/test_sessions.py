# SPDX-License-Identifier: Apache-2.0
"""Sessions from their making to their end, with a real agent that runs real programs."""

import json
import re
import threading
import time
import uuid

import pytest

from client import DEFAULT_VERSION, USER, Client, dechunk
from cluster import ENDED, WAITS, batch, wait_for, wait_status


def make(client, *arguments, **more):
    reply = client.post("/session", batch(*arguments, **more))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def log_of(client, session):
    reply = client.get(f"/session/{session}/logs")
    assert reply.status == 200, reply
    return reply.json["result"]["logs"]


def test_reply_of_a_creation(user, name):
    reply = user.post("/session", batch(name, "true"))
    assert reply.status == 201
    assert str(uuid.UUID(reply.json["sessionId"])) == reply.json["sessionId"]
    assert reply.json == {"sessionId": reply.json["sessionId"], "sessionName": name,
                          "status": "PENDING", "servicePorts": [], "created": True}


@pytest.mark.parametrize("command, result, code", [
    ("echo out; echo err >&2", "SUCCESS", 0), ("exit 3", "FAILURE", 3),
    ("kill -9 $$", "FAILURE", 137)])
def test_batch(user, name, command, result, code):
    session = make(user, name, command)
    ended = wait_status(user, session, "TERMINATED")
    assert ended["result"] == result
    assert ended["kernels"][0]["exit_code"] == code
    assert ended["kernels"][0]["hostname"] == "main1"
    if code == 0:
        assert sorted(log_of(user, session).split()) == ["err", "out"]


def test_only_some_fields(user, name):
    session = make(user, name, "exit 3")
    whole = wait_status(user, session, "TERMINATED")
    path = f"/aliquot/v1/sessions?filter=id==\"{session}\"&fields="
    for field in whole:
        assert user.get(path + field).json == {"items": [{field: whole[field]}], "total": 1}, field
    assert user.get(path + ",".join(whole)).json["items"] == [whole]
    assert (whole["exit_code"], whole["agents"]) == (3, [whole["kernels"][0]["agent"]])
    assert whole["requested_slots"] == whole["kernels"][0]["requested_slots"]


def test_numbers_of_sessions(user, name):
    first, second = (make(user, f"{name}-{i}", "true") for i in range(2))
    rows = [wait_status(user, session, "TERMINATED") for session in (first, second)]
    assert 0 < rows[0]["job_id"] < rows[1]["job_id"]
    assert rows[0]["created_at"] <= rows[0]["started_at"] <= rows[0]["terminated_at"]
    path = "/aliquot/v1/sessions?fields=id,job_id&filter=job_id"
    for condition in ("==%s", "+in+[%s]"):
        found = user.get(path + condition % rows[1]["job_id"]).json
        assert found == {"items": [{"id": second, "job_id": rows[1]["job_id"]}], "total": 1}


def test_fields_that_no_session_has(user):
    path = "/aliquot/v1/sessions?fields="
    for fields, wrong in (("nam", "nam"), ("name,", ""), ("", ""), ("name,,id", ""),
                          ("id,names", "names"), ("Name", "Name"), ("name ", "name ")):
        refused = user.get(path + fields.replace(" ", "%20"))
        assert (refused.status, refused.slug) == (400, "invalid-api-params"), refused
        said = refused.json["data"]["fields"]
        assert said.startswith(f"'{wrong}' is none of id,name,"), said
        assert said.endswith(",kernels"), said


def test_long_pages_are_of_short_rows(user):
    path = "/aliquot/v1/sessions?limit="
    assert user.get(path + "20000&fields=id,user,requested_slots").status == 200
    for query in ("1001", "20001&fields=id", "1001&fields=id,text", "1001&fields=kernels",
                  "1001&fields=wait_for_capacity"):
        refused = user.get(path + query)
        assert (refused.status, refused.slug) == (400, "invalid-api-params"), refused
        assert "limit" in refused.json["data"], refused


def test_one_that_waits_and_one_that_ended_look_alike(user, name):
    """The one is shown from memory, the other from the store."""
    waiting = user.post("/session", batch(name, "true", **{
        **WAITS, "config": {**WAITS["config"], "environ": {"A": "b"}}})).json["sessionId"]
    live = user.get(f"/session/{name}").json
    assert (live["status"], live["image"], live["terminationTime"]) == ("PENDING", "sh", None)
    assert (json.loads(live["environ"]), live["architecture"]) == ({"A": "b"}, "x86_64")
    assert live["age"] >= 0
    assert user.get(f"/session/{waiting[:13]}").json["creationTime"] == live["creationTime"]
    user.delete(f"/session/{waiting}")
    ended = user.get(f"/session/{waiting}").json
    assert list(ended) == list(live) and ended["terminationTime"]
    same = set(live) - {"status", "statusInfo", "statusData", "age", "terminationTime",
                        "occupiedSlots"}
    assert {each: ended[each] for each in same} == {each: live[each] for each in same}


def test_waiting_until_it_runs(user, name):
    reply = user.post("/session", batch(name, "sleep 30", enqueueOnly=False))
    assert (reply.status, reply.json["status"]) == (201, "RUNNING")
    assert user.delete("/session/" + name).status == 200


def test_waiting_in_vain(user, name):
    began = time.monotonic()
    reply = user.post("/session", batch(name, "true", enqueueOnly=False, maxWaitSeconds=1,
                                        **WAITS))
    assert (reply.status, reply.json["status"]) == (201, "TIMEOUT"), reply
    assert time.monotonic() - began >= 1
    why = user.get(f"/aliquot/v1/sessions/{name}/why").json
    assert why["status"] == "PENDING" and "cpu" in why["text"] and why["explanation"]
    gone = user.delete("/session/" + name)
    assert gone.json == {"stats": {"status": "cancelled"}}
    assert user.get("/aliquot/v1/sessions/" + name).json["status"] == "CANCELLED"


def test_a_waiting_client_that_goes_away(user, name):
    with pytest.raises(OSError):
        user.post("/session", batch(name, "true", enqueueOnly=False, **WAITS), timeout=1)
    assert user.get("/auth?echo=x").status == 200
    assert user.delete("/session/" + name).status == 200


def test_waiting_ends_when_it_is_cancelled(user, name):
    replies = []
    waiter = threading.Thread(target=lambda: replies.append(
        user.post("/session", batch(name, "true", enqueueOnly=False, **WAITS))))
    waiter.start()
    wait_for(lambda: user.get("/session/_/match?id=" + name).json["matches"])
    assert user.delete("/session/" + name).status == 200
    waiter.join(30)
    assert replies[0].json["status"] == "CANCELLED"


def test_reuse(user, name):
    first = make(user, name, "sleep 60")
    again = user.post("/session", batch(name, "sleep 60"))
    assert again.status == 200 and again.json["created"] is False
    assert again.json["sessionId"] == first and again.json["service_ports"] == []
    for change in ({"reuseIfExists": False}, {"image": "other"}):
        reply = user.post("/session", batch(name, "sleep 60", **change))
        assert (reply.status, reply.slug) == (400, "session-already-exists")
        assert reply.json["data"]["existingSessionId"] == first
    assert user.delete("/session/" + name).status == 200
    wait_status(user, first, *ENDED)
    assert make(user, name, "true") != first, "the name is free again"


def test_a_dead_name_wins_over_the_beginning_of_living_ones(user, name):
    stem = name[:30] + "-1"
    dead = make(user, stem, "true")
    wait_status(user, dead, "TERMINATED")
    live = [make(user, stem + digit, "sleep 60") for digit in "01"]
    assert user.get("/aliquot/v1/sessions/" + stem).json["id"] == dead
    assert user.get("/aliquot/v1/sessions/" + stem[:-1]).slug == "too-many-sessions-matched"
    assert user.delete("/session/" + live[0]).status == 200
    wait_status(user, live[0], *ENDED)
    assert user.get("/aliquot/v1/sessions/" + stem).json["id"] == dead
    assert user.get("/aliquot/v1/sessions/" + stem + "1").json["id"] == live[1]
    assert user.delete("/session/" + live[1]).status == 200


def test_names_and_prefixes(user, name):
    ids = [make(user, f"{name[:40]}-{i}", "sleep 60") for i in range(3)]
    many = user.get("/session/" + name[:40])
    assert (many.status, many.slug) == (404, "too-many-sessions-matched")
    matches = many.json["data"]["matches"]
    assert {m["id"] for m in matches} == set(ids)
    assert set(matches[0]) == {"id", "name", "status", "created_at"}
    for path in (name[:40] + "-1", ids[1], ids[1][:13], ids[1].replace("-", "")[:8]):
        shown = user.get("/session/" + path)
        assert shown.status == 200 and shown.json["image"] == "sh", path
    found = user.get("/session/_/match?id=" + ids[2][:20]).json
    assert [m["id"] for m in found["matches"]] == [ids[2]]
    missing = user.get("/session/no-such-session")
    assert (missing.status, missing.json["title"]) == (404, "No such session.")
    for session in ids:
        assert user.delete("/session/" + session).status == 200


def test_info_fields(user, name):
    make(user, name, "true", tag="blue")
    info = user.get("/session/" + name).json
    assert set(info) == {
        "domainName", "groupId", "userId", "lang", "image", "architecture", "registry", "tag",
        "containerId", "occupiedSlots", "occupiedShares", "environ", "status", "statusInfo",
        "statusData", "age", "creationTime", "terminationTime", "numQueriesExecuted", "lastStat"}
    assert info["tag"] == "blue" and info["age"] >= 0 and isinstance(info["occupiedSlots"], str)


def test_owner(user, admin, domain_admin, name):
    session = make(user, name, "sleep 60")
    assert admin.get("/session/" + name).status == 404, "the admin's own sessions only"
    on_behalf = f"/session/{name}?owner_access_key={USER[0]}"
    assert admin.get(on_behalf).status == 200
    assert domain_admin.get(on_behalf).status == 200
    refused = user.get(f"/session/{name}?owner_access_key=AKIAIOSFODNN7EXAMPLE")
    assert (refused.status, refused.slug) == (403, "generic-forbidden")
    refused = domain_admin.get(f"/session/{name}?owner_access_key=AKIAIOSFODNN7EXAMPLE")
    assert refused.status == 403, "a superadmin's"
    forced = user.delete(f"/session/{name}?forced=true")
    assert (forced.status, forced.slug) == (403, "insufficient-privilege")
    assert admin.delete(on_behalf + "&forced=true").status == 200
    wait_status(user, session, *ENDED)


def test_made_for_another(admin, user, name):
    reply = admin.post("/session", batch(name, "true", owner_access_key=USER[0]))
    assert reply.status == 201
    assert user.get("/session/" + name).status == 200


def test_rename(user, name):
    session = make(user, name, "sleep 60")
    wait_status(user, session, "RUNNING")
    assert user.post(f"/session/{name}/rename?name={name[:30]}-new").status == 204
    assert user.get("/aliquot/v1/sessions/" + session).json["name"] == name[:30] + "-new"
    assert user.post(f"/session/{session}/rename?name=-bad-").slug == "invalid-api-params"
    assert user.delete("/session/" + session).status == 200


def test_no_name_is_an_id(user, name):
    """Routes take an id or a name."""
    session = make(user, name, "sleep 60")
    for taken in (str(uuid.uuid4()), uuid.uuid4().hex.upper(), session):
        for reply in (user.post(f"/session/{session}/rename?name={taken}"),
                      user.post("/session", {"name": taken, "image": "process"}),
                      user.post("/session", {"clientSessionToken": taken, "lang": "process"})):
            assert reply.slug == "invalid-api-params", reply
            assert "has the form of an id" in reply.json["data"]["name"], reply
    assert user.post(f"/session/{session}/rename?name={session[:-1]}").status == 204
    assert user.delete("/session/" + session).status == 200


def test_restart(user, name):
    session = make(user, name, "echo began; sleep 60", type="batch")
    wait_status(user, session, "RUNNING")
    assert user.send("PATCH", "/session/" + name).status == 204
    shown = wait_status(user, session, "RUNNING")
    assert shown["reason"] is None and shown["kernels"][0]["reason"] is None
    history = user.get(f"/aliquot/v1/sessions/{session}/history").json["items"]
    assert "RESTARTING" in [h["status"] for h in history]
    assert user.delete("/session/" + session).status == 200
    wait_status(user, session, "TERMINATED")


@pytest.mark.parametrize("kind", ["interactive", "batch"])
def test_bootstrap_fails(user, name, kind):
    session = make(user, name, "sleep 60" if kind == "batch" else None, type=kind,
                   bootstrap_script="echo fetching; echo no such host >&2; exit 6")
    ended = wait_status(user, session, *ENDED)
    assert (ended["status"], ended["result"], ended["reason"], ended["kernels"][0]["exit_code"]) \
        == ("TERMINATED", "FAILURE", "bootstrap-failed", 6), ended
    why = user.get(f"/aliquot/v1/sessions/{session}/why").json
    assert ended["text"] == why["text"]
    assert why["text"].endswith("the bootstrap script failed with exit status 6; "
                                "its last lines:\nfetching\nno such host"), why
    assert "aliquot: the bootstrap script failed with exit status 6" in log_of(user, session)


def test_end(user, name):
    session = make(user, name, "trap 'echo asked; exit 7' TERM; echo ready; "
                               "while :; do sleep 0.1; done")
    wait_for(lambda: "ready" in log_of(user, session))
    assert user.delete("/session/" + name).json == {"stats": {"status": "terminated"}}
    ended = wait_status(user, session, "TERMINATED")
    assert ended["reason"] == "user-requested"
    assert "asked" in log_of(user, session), "SIGTERM came first"
    assert user.delete("/session/" + name).status == 404


# What 22.03's client lists by default, and the manager's own list of the same.
DEFAULT = "PENDING,SCHEDULED,PREPARING,PULLING,RUNNING,RESTARTING,TERMINATING,RESIZING,SUSPENDED,ERROR"


def listed(client, status=DEFAULT):
    query = "query($s: String) { compute_session_list(limit: 100, offset: 0, status: $s) " \
        "{ items { name } } }"
    rows = client.gql(query, {"s": status}).json["data"]["compute_session_list"]["items"]
    path = "/aliquot/v1/sessions?limit=100&status=" + (status or "")
    items = client.get(path).json["items"]
    assert {row["name"] for row in rows} >= {item["name"] for item in items}
    return {item["name"] for item in items}


def fail(client, name):
    """A session in ERROR of which its owner has not seen why."""
    session = make(client, name, "true", config={  # which only containers can have
        "resources": {"cpu": "1", "mem": "64m"}, "preopen_ports": [9000]})

    def has_failed():
        rows = client.get("/aliquot/v1/sessions?status=ERROR&limit=100").json["items"]
        return session in [row["id"] for row in rows]
    wait_for(has_failed, 60, "its failure")
    return session


def test_remove_error(user, admin, domain_admin, name):
    """By name and by id, as often as wanted; it stays in the history."""
    first, second = fail(user, name), fail(user, name[:30] + "-2")
    assert {name, name[:30] + "-2"} <= listed(user)
    assert domain_admin.delete("/session/" + name).status == 404
    assert user.delete("/session/" + name).json == {"stats": {"status": "terminated"}}
    assert listed(user) & {name, name[:30] + "-2"} == {name[:30] + "-2"}
    assert user.delete("/session/" + name).status == 200
    gone = {"items": [{"id": second, "status": "removed"}]}
    for _ in range(2):
        assert user.delete("/aliquot/v1/sessions", {"sessions": [second]}).json == gone
    assert not listed(user) & {name, name[:30] + "-2"}
    for statuses in ("ERROR", DEFAULT + ",CANCELLED,TERMINATED", None):
        assert {name, name[:30] + "-2"} <= listed(user, statuses)
    for session in (first, second):
        shown = admin.get(f"/aliquot/v1/sessions/{session}?owner_access_key={USER[0]}").json
        assert shown["status"] == "ERROR" and "only containers" in shown["text"], shown


@pytest.mark.parametrize("look", ["/session/{}", "/aliquot/v1/sessions/{}",
                                  "/aliquot/v1/sessions/{}/why", "graphql"])
def test_seen_error(user, admin, name, look):
    """Its owner's look at it is enough, an administrator's is not."""
    session = fail(user, name)

    def ask(client):
        if look == "graphql":
            query = f'{{ compute_session(id: "{session}") {{ status status_info status_data }} }}'
            shown = client.gql(query).json["data"]["compute_session"]
            assert shown["status"] == "ERROR" and "only containers" in shown["status_data"]
        else:
            path = look.format(session) + "?owner_access_key=" + USER[0]
            assert client.get(path).status == 200
    ask(admin)
    assert name in listed(user)
    ask(user)
    wait_for(lambda: name not in listed(user), 30, "its end in lists")
    assert name in listed(user, "ERROR")


def test_end_many(user, admin, domain_admin, name):
    running = make(user, name, "sleep 60")
    wait_status(user, running, "RUNNING")
    waiting = [make(user, f"{name[:30]}-{i}", "true", **WAITS) for i in range(3)]
    other = make(admin, name[:30] + "-other", "true", **WAITS)
    path, nobody = "/aliquot/v1/sessions", "00000000-0000-4000-8000-000000000000"
    for sessions, status in (([], 400), (["x"], 400), (waiting + [other], 404)):
        reply = user.delete(path, {"sessions": sessions})
        assert reply.status == status, reply
    assert user.delete(path, {"sessions": waiting, "forced": True}).status == 403
    assert user.delete(path, {"sessions": [waiting[0]] * 1001}).status == 400
    assert domain_admin.delete(path, {"sessions": [other]}).status == 404
    assert all(user.get(f"{path}/{s}").json["status"] == "PENDING" for s in waiting)
    reply = user.delete(path, {"sessions": [*waiting, running, nobody]})
    assert reply.json == {"items": [
        *({"id": s, "status": "cancelled"} for s in waiting),
        {"id": running, "status": "terminated"}, {"id": nobody, "status": "gone"}]}, reply
    wait_status(user, running, "TERMINATED")
    assert admin.delete(path, {"sessions": [other], "forced": True}).status == 200
    assert admin.get(f"{path}/{other}").json["reason"] == "force-terminated"


def test_status_history(user, name):
    session = make(user, name, "true")
    wait_status(user, session, "TERMINATED")
    history = user.get(f"/session/{name}/status-history").json["result"]
    assert {"pending", "preparing", "running", "terminated"} <= set(history)
    assert history["pending"] <= history["preparing"] <= history["running"]
    assert history["running"] <= history["terminated"]


def test_old_names_for_old_clients(user, name):
    make(user, name, "true", **WAITS)
    for version in ("v5.20191215", DEFAULT_VERSION, "v9.20250722"):
        client = Client(user.address, USER, version)
        assert client.get("/session/" + name).json["status"] == "PENDING"
    assert user.delete("/session/" + name).status == 200


def test_several_at_once(user, name):
    bodies = [batch(f"{name[:30]}-{i}", f"echo {i}") for i in range(20)]
    reply = user.post("/aliquot/v1/sessions", bodies)
    assert reply.status == 201
    items = reply.json["items"]
    assert [i["sessionName"] for i in items] == [b["name"] for b in bodies]
    for i, item in enumerate(items):
        assert wait_status(user, item["sessionId"], "TERMINATED")["result"] == "SUCCESS"
        assert log_of(user, item["sessionId"]).strip() == str(i)


def test_several_of_which_one_is_refused(user, name):
    """All or none."""
    stem = name[:30]
    make(user, stem + "-taken", "sleep 60")
    for other, slug, says in (
            (batch(stem + "-b", "true", group="nobody"), "invalid-api-params", "[1].group"),
            (batch(stem + "-b", "true", dependencies=["nobody"]), "object-not-found", "nobody"),
            (batch(stem + "-taken", "true", reuseIfExists=False), "session-already-exists",
             "existingSessionId"),
            (batch(stem + "-a", "true"), "session-already-exists", "-a")):
        reply = user.post("/aliquot/v1/sessions", [batch(stem + "-a", "true"), other])
        assert reply.slug == slug and says in reply.body.decode(), reply
        assert user.get("/aliquot/v1/sessions/" + stem + "-a").status == 404
        assert user.get("/aliquot/v1/sessions/" + stem + "-b").status == 404
    reply = user.post("/aliquot/v1/sessions", [
        batch(stem + "-a", "true"), batch(stem + "-taken", "true")])
    assert reply.status == 201 and [i["created"] for i in reply.json["items"]] == [True, False]
    assert user.delete("/session/" + stem + "-taken").status == 200


def test_one_alone_is_fine_too(user, name):
    reply = user.post("/aliquot/v1/sessions", batch(name, "true"))
    assert reply.status == 201 and reply.json["items"][0]["sessionName"] == name


def test_dependencies(user, name):
    first = make(user, name[:30] + "-first", "exit 0")
    last = make(user, name[:30] + "-last", "echo done", dependencies=[first])
    assert wait_status(user, last, "TERMINATED")["result"] == "SUCCESS"
    history = {s: user.get(f"/aliquot/v1/sessions/{s}").json for s in (first, last)}
    assert history[first]["terminated_at"] <= history[last]["terminated_at"]
    reply = user.post("/session", batch(name, "true", dependencies=["no-such-session"]))
    assert reply.status in (400, 404), reply


def test_list(user, admin, name):
    ids = [make(user, f"{name[:30]}-{i}", "true") for i in range(3)]
    for session in ids:
        wait_status(user, session, "TERMINATED")
    query = "/aliquot/v1/sessions?filter=name%20like%20%22" + name[:30] + "-%25%22&order=name"
    listed = user.get(query).json
    assert listed["total"] == 3 and [i["id"] for i in listed["items"]] == ids
    assert user.get(query + "&limit=1&offset=1").json["items"][0]["id"] == ids[1]
    assert user.get(query + "&status=RUNNING").json["total"] == 0
    assert admin.get(query).json["total"] == 0
    assert admin.get(query + "&all=true").json["total"] == 3
    assert user.get(query + "&all=true").status == 403


def test_priority(user, name):
    session = make(user, name, "true", **WAITS, priority=7)
    assert user.get("/aliquot/v1/sessions/" + session).json["priority"] == 7
    changed = user.send("PATCH", "/aliquot/v1/sessions/" + session,
                        {"priority": 9, "name": name[:30] + "-new"})
    assert changed.status in (204, 400), changed
    assert user.get("/aliquot/v1/sessions/" + session).json["priority"] == 9
    assert user.delete("/session/" + session).status == 200


# ---- logs ----

def follow(client, session, query="follow=true", timeout=60):
    sock, file, head = client.stream(f"/aliquot/v1/sessions/{session}/logs?{query}",
                                     timeout=timeout)
    assert " 200 " in head.splitlines()[0], head
    return sock, dechunk(file)


def test_follow(user, name):
    session = make(user, name, "for i in 1 2 3; do echo line $i; sleep 0.2; done")
    sock, pieces = follow(user, session)
    text = b"".join(pieces).decode()
    sock.close()
    assert text.split("\n") == ["line 1", "line 2", "line 3", ""]
    assert wait_status(user, session, "TERMINATED")
    sock, pieces = follow(user, session)
    assert b"".join(pieces).decode() == text, "kept"
    sock, pieces = follow(user, session, "tail=1")
    assert b"".join(pieces) == b"line 3\n"


def test_follow_what_has_not_begun(user, name):
    session = make(user, name, "true", **WAITS)
    got = []
    sock, _, _ = None, None, None

    def read():
        nonlocal sock
        sock, pieces = follow(user, session)
        got.append(b"".join(pieces))

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.3)
    assert user.delete("/session/" + session).status == 200
    reader.join(30)
    assert got == [b""]
    assert log_of(user, session) == ""


def test_a_program_that_writes_nothing(user, name):
    session = make(user, name, "true")
    wait_status(user, session, "TERMINATED")
    for _ in range(10):  # while the agent puts its folder away
        assert log_of(user, session) == ""
        sock, pieces = follow(user, session)
        assert b"".join(pieces) == b""
        sock.close()


def test_lines_by_their_times(user, name):
    session = make(user, name, "echo one; echo two")
    wait_status(user, session, "TERMINATED")
    path = f"/aliquot/v1/sessions/{session}/logs?"
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z "
    marked = user.get(path + "timestamps=true").body.decode()
    assert re.fullmatch(f"{stamp}one\n{stamp}two\n", marked)
    for since in ("1h", "2026-01-01", "2026-01-01T00:00:00.5%2B02:00", "1700000000.25"):
        assert user.get(path + "since=" + since).body == b"one\ntwo\n", since
    for since in (time.time() + 3600, "2100-01-01T00:00:00Z"):
        assert user.get(f"{path}timestamps=true&since={since}").body == b"", since


@pytest.mark.parametrize("query, field", [
    ("since=soon", "since"), ("since=", "since"), ("since=2026-02-30", "since"),
    ("since=-1", "since"), ("since=" + "1" * 30, "since"), ("since=1x", "since"),
    ("timestamps=perhaps", "timestamps")])
def test_times_of_logs_that_cannot_be_read(user, name, query, field):
    reply = user.get(f"/aliquot/v1/sessions/{name}/logs?{query}")
    assert reply.status == 400 and field in reply.json["data"], reply


def test_unknown_kernel(user, name):
    session = make(user, name, "true")
    assert user.get(f"/aliquot/v1/sessions/{session}/logs?kernel=sub9").status == 404
    wait_status(user, session, "TERMINATED")


def test_a_slow_reader_holds_up_nobody(user, name):
    session = make(user, name, "yes aliquot | head -c 60000000; echo; echo end")
    sock, _, _ = user.stream(f"/aliquot/v1/sessions/{session}/logs?follow=true", timeout=60)
    ended = wait_status(user, session, "TERMINATED", seconds=120)
    assert ended["result"] == "SUCCESS", "the program did not wait for its reader"
    began = time.monotonic()
    assert user.get("/auth?echo=x").status == 200
    assert time.monotonic() - began < 5
    sock.close()
    assert log_of(user, session).endswith("end\n"), "the end of a long log"


def test_binary_output(user, name):
    session = make(user, name, r"printf '\377\376ok\n'")
    wait_status(user, session, "TERMINATED")
    assert log_of(user, session) == "��ok\n"
    sock, pieces = follow(user, session, "follow=false")
    assert b"".join(pieces) == b"\xff\xfeok\n", "bytes as they are"


def test_rest_times_are_iso(user, name):
    session = make(user, name, "true")
    shown = user.get("/aliquot/v1/sessions/" + session).json
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00", shown["created_at"])


def test_a_session_goes_to_its_owners_domain_and_only_project(admin, cluster):
    """Unless it names others."""
    for path, body in (("domains", {"name": "branch"}),
                       ("groups", {"name": "lab", "domain": "branch"}),
                       ("users", {"email": "b@branch.com", "domain": "branch", "groups": ["lab"]}),
                       ("keypairs", {"user": "b@branch.com", "resource_policy": "default"})):
        made = admin.post("/aliquot/v1/" + path, body)
        assert made.status == 201, made
    allowed = admin.post("/aliquot/v1/resource-groups/default/allow", {"domain": "branch"})
    assert allowed.status == 204, allowed
    owner = cluster.client((made.json["access_key"], made.json["secret_key"]))
    session = owner.post("/session", batch("branch-1", "true")).json["sessionId"]
    shown = owner.get("/aliquot/v1/sessions/" + session).json
    assert shown["domain"] == "branch", shown
    refused = owner.post("/session", batch("branch-2", "true", group="default"))
    assert refused.slug == "invalid-api-params" and "group" in refused.json["data"], refused
    wait_status(owner, session, "TERMINATED")
