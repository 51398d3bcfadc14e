# SPDX-License-Identifier: Apache-2.0
"""Arrays of sessions: what is accepted, how elements are made, cancelled, listed and counted."""

import time

import pytest

from client import Client
from cluster import WAITS, Cluster, batch, wait_for, wait_status

pytestmark = pytest.mark.engines

ARRAYS = "/aliquot/v1/arrays"
SESSIONS = "/aliquot/v1/sessions"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_SESSIONS_KILL_GRACE="0.3s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture
def client(cluster):
    client = cluster.client()
    yield client
    cluster.cli("rm", "--all", "--yes", "--wait")


def array(name, indices, command="true", **more):
    return {**batch(name, command, **more), "array": indices}


def make(client, name, indices, command="true", **more):
    reply = client.post("/session", array(name, indices, command, **more))
    assert reply.status == 201, reply
    assert reply.json["sessionName"] == name and reply.json["created"], reply
    return reply.json["sessionId"]


def show(client, name):
    reply = client.get(f"{ARRAYS}/{name}")
    assert reply.status == 200, reply
    return reply.json


def wait_end(client, name, seconds=60):
    return wait_for(lambda: (a := show(client, name))["terminated_at"] and a, seconds, f"{name} to end")


def elements(client, array_id, fields="name,status,result"):
    return client.get(f"{SESSIONS}?array={array_id}&order=array_index&limit=1000"
                      f"&fields={fields}").json["items"]


@pytest.mark.gate
def test_elements_run_and_are_counted(client):
    found = make(client, "mixed", "0,6,16-18", "test $ALIQUOT_ARRAY_INDEX != 6")
    ended = wait_end(client, "mixed")
    assert ended["id"] == found and ended["label"] == "mixed[0,6,16-18]"
    assert (ended["status"], ended["result"], ended["size"]) == ("TERMINATED", "FAILURE", 5)
    assert (ended["succeeded"], ended["failed"], ended["cancelled"]) == (4, 1, 0)
    assert [e["name"] for e in elements(client, found)] == [
        f"mixed[{i}]" for i in (0, 6, 16, 17, 18)]
    assert [e["result"] for e in elements(client, found)].index("FAILURE") == 1
    one = client.get(f"{SESSIONS}/mixed[16]").json
    assert one["array"] == {"id": found, "index": 16}


def test_what_an_element_sees(client, cluster):
    make(client, "sees", "4-10:3%1", "env | sort")
    number = wait_end(client, "sees")["number"]
    log = cluster.cli("logs", "sees[7]").stdout
    seen = dict(line.split("=", 1) for line in log.splitlines() if "=" in line)
    for ours, slurm, value in (("INDEX", "TASK_ID", 7), ("COUNT", "TASK_COUNT", 3),
                               ("MIN", "TASK_MIN", 4), ("MAX", "TASK_MAX", 10),
                               ("STEP", "TASK_STEP", 3), ("ID", "JOB_ID", number)):
        assert seen[f"ALIQUOT_ARRAY_{ours}"] == seen[f"SLURM_ARRAY_{slurm}"] == str(value)
    assert int(seen["SLURM_JOB_ID"]) > number


def test_no_more_run_at_once_than_the_limit(client, cluster):
    found = make(client, "narrow", "0-11%2", "sleep 0.2")
    most = 0
    while not show(client, found)["terminated_at"]:
        live = [e for e in elements(client, found, "status") if e["status"] not in
                ("TERMINATED", "CANCELLED", "ERROR")]
        most = max(most, len(live))
    assert 1 <= most <= 2
    assert show(client, found)["result"] == "SUCCESS"


@pytest.mark.parametrize("indices, says", [
    ("9-0", "ends before it begins"), ("0-2147483647", "above 4000000"), ("", "must not be empty"),
    ("0-9:0", "step"), ("0-100000", "more than 100000"), ("0-9%0", "%0"), ("x", "number is missing"),
])
def test_what_is_refused(client, indices, says):
    reply = client.post("/session", array("refused", indices))
    assert reply.status == 400 and says in reply.json["data"]["array"], reply


def test_what_else_is_refused(client):
    interactive = {**array("refused", "0-9"), "type": "interactive"}
    del interactive["startupCommand"]
    for body in (interactive, {**array("refused", "0-9"), "input": "stream"}):
        reply = client.post("/session", body)
        assert reply.status == 400 and "array" in str(reply.body), reply
    reply = client.post("/session", array("n" * 60, "0-100"))
    assert reply.status == 400 and "59 characters" in str(reply.body), reply
    reply = client.post(SESSIONS, [array("refused", "0-9")])
    assert reply.status == 400 and "array" in str(reply.body), reply
    reply = client.post("/session", batch("refused[3]", "true"))
    assert reply.status == 400, reply


def test_names_are_one_of_a_kind(client):
    found = make(client, "taken", "0-9", "sleep 100")
    for body in (array("taken", "0-1"), batch("taken", "true")):
        reply = client.post("/session", body)
        assert reply.slug == "session-already-exists", reply
        assert reply.json["data"]["existingSessionId"] == found
    session = client.post("/session", batch("alone", "sleep 100"))
    assert client.post("/session", array("alone", "0-1")).slug == "session-already-exists"
    assert client.delete(f"{ARRAYS}/{found}").status == 204
    client.delete("/session/alone")
    wait_end(client, found)
    wait_status(client, session.json["sessionId"], "TERMINATED", "CANCELLED")


def test_a_hundred_thousand_are_accepted_at_once(client, cluster):
    found = make(client, "large", "0-99999", "sleep 1000")
    shown = wait_for(lambda: (a := show(client, "large"))["made"] >= 256 and a, 30, "the window")
    assert shown["made"] < 1000 and shown["size"] == 100000, shown
    why = client.get(f"{ARRAYS}/large/why").json
    assert "100000 elements" in why["text"] and why["session"].startswith("large["), why
    cluster.check_audits()
    assert client.delete(f"{ARRAYS}/large", {"elements": "50000-99999"}).status == 204
    assert show(client, "large")["cancelled"] == 50000
    assert client.delete(f"{ARRAYS}/large").status == 204
    ended = wait_end(client, found)
    assert (ended["status"], ended["cancelled"]) == ("CANCELLED", 100000), ended
    assert len(elements(client, found)) == ended["made"]


@pytest.mark.gate
def test_elements_are_cancelled_before_and_after_they_are_made(client, cluster):
    found = make(client, "some", "0-999%2", "sleep 1000")
    wait_for(lambda: show(client, found)["running"] == 2, 60, "two to run")
    assert client.delete(f"{ARRAYS}/some", {"elements": "0,2-900,995"}).status == 204
    wait_for(lambda: {e["name"] for e in elements(client, found, "name,status")
                      if e["status"] == "RUNNING"} == {"some[1]", "some[901]"}, 60, "the next")
    assert client.delete(f"{ARRAYS}/some", {"elements": "2000"}).status == 404
    assert client.delete(f"{ARRAYS}/some", {"elements": "9-2"}).status == 400
    assert client.delete(f"{ARRAYS}/some").status == 204
    assert client.delete(f"{ARRAYS}/none").status == 404
    wait_end(client, found)


def test_dependencies(client):
    first = client.post("/session", batch("first", "sleep 1")).json["sessionId"]
    found = make(client, "later", "0-9%3", dependencies=["first"])
    assert show(client, found)["status"] == "PENDING"
    assert wait_end(client, found)["succeeded"] == 10
    wait_status(client, first, "TERMINATED")
    client.post("/session", batch("bad", "sleep 1; false"))
    found = make(client, "instead", "0-9%3", dependencies=["failure:bad"])
    assert wait_end(client, found)["succeeded"] == 10
    client.post("/session", batch("bad", "sleep 1; false"))
    found = make(client, "never", "0-9%3", dependencies=["bad"])
    ended = wait_end(client, found)
    assert (ended["status"], ended["cancelled"]) == ("CANCELLED", 10), ended


def test_lists(client):
    found = make(client, "listed", "0-3", "sleep 100")
    wait_for(lambda: show(client, found)["made"] == 4, 30, "elements")
    alone = [s["name"] for s in client.get(f"{SESSIONS}?status=PENDING,RUNNING&array=none").json["items"]]
    assert not [name for name in alone if name.startswith("listed")]
    names = [s["name"] for s in client.get(f"{SESSIONS}?limit=1000").json["items"]]
    assert "listed[3]" in names
    live = client.get(f"{ARRAYS}?status=RUNNING").json["items"]
    assert [a["name"] for a in live] == ["listed"]
    ended = client.get(f"{ARRAYS}?status=TERMINATED").json["items"]
    assert "listed" not in [a["name"] for a in ended] and len(ended) > 1
    assert client.delete(f"{ARRAYS}/listed").status == 204
    wait_end(client, found)


def test_a_restart_of_the_manager(client, cluster):
    found = make(client, "resumed", "0-39%4", "sleep 0.2")
    wait_for(lambda: show(client, found)["succeeded"] > 4, 60, "some to end")
    cluster.programs["manager"].kill()
    cluster.start_manager()
    ended = wait_end(client, found, 120)
    assert (ended["succeeded"], ended["made"]) == (40, 40), ended
    assert len(elements(client, found)) == 40


def test_commands(client, cluster):
    done = cluster.cli("run", "--array", "0-2%2", "--name", "mine", "-r", "mem=32m",
                       "echo of $ALIQUOT_ARRAY_INDEX; exit $ALIQUOT_ARRAY_INDEX")
    assert done.returncode == 2, done
    assert sorted(done.stdout.splitlines()) == [f"mine[{i}] | of {i}" for i in range(3)], done
    assert cluster.cli("session", "wait", "mine").returncode == 2
    assert cluster.cli("session", "info", "mine").returncode == 0
    for verb in ("logs", "stats", "retry"):
        said = cluster.cli("session", verb, "mine")
        assert said.returncode == 5, said
        assert "'mine' is an array; name one of its elements, such as 'mine[0]'" in said.stderr, said
    found = make(client, "shown", "0-99%2", "sleep 100")
    wait_for(lambda: show(client, found)["running"] == 2, 60, "two to run")
    lines = cluster.cli("ps").stdout.splitlines()
    line, = [line for line in lines if "shown" in line]
    assert "shown[0-99%2]" in line and "2 running, 98 waiting" in line, lines
    assert "shown[1]" in cluster.cli("ps", "--elements").stdout
    assert len(cluster.cli("ps", "shown").stdout.splitlines()) == 3
    assert "100 elements" in cluster.cli("session", "why", "shown").stdout
    history = cluster.cli("session", "history", "shown").stdout.splitlines()
    assert sum(" RUNNING " in line for line in history) == 2, history
    assert len(history) == 1 + show(client, found)["made"], history
    assert "RUNNING" in cluster.cli("session", "history", "shown[1]").stdout
    history = cluster.cli("session", "history", "mine").stdout.splitlines()
    assert [line.split()[:3] for line in history[1:]] == [
        [f"mine[{i}]", "TERMINATED", str(i)] for i in range(3)], history
    assert cluster.cli("rm", "shown[0]").returncode == 0
    assert cluster.cli("rm", "--wait", "shown[1-50]", "--yes").returncode == 0
    assert cluster.cli("rm", "--wait", "shown").returncode == 0
    assert show(client, found)["status"] == "CANCELLED"
    assert "shown" not in cluster.cli("ps").stdout
    assert "shown[0-99%2]" in cluster.cli("ps", "--all").stdout


def test_an_array_leaves_room_for_other_sessions(client, cluster):
    path = "/aliquot/v1/keypair-policies"
    assert client.post(path, {"name": "narrow", "max_pending_sessions": 10}).status in (200, 201)
    reply = client.post("/aliquot/v1/keypairs", {"user": "user@lablup.com", "policy": "narrow"})
    assert reply.status in (200, 201), reply
    keys = reply.json
    own = Client(cluster.address, (keys["access_key"], keys["secret_key"]))
    reply = own.post("/session", {**array("modest", "0-99"), **WAITS})
    assert reply.status == 201, reply
    wait_for(lambda: show(own, "modest")["made"] == 5, 30, "half of the limit")
    time.sleep(1)
    assert show(own, "modest")["made"] == 5
    assert own.post("/session", {**batch("beside", "true"), **WAITS}).status == 201
    assert own.delete(f"{ARRAYS}/modest").status == 204
    own.delete("/session/beside")
    wait_end(own, "modest")


def test_retention_removes_it_with_its_last_element():
    with Cluster(ALIQUOT_RETENTION_SESSIONS="30d") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        make(client, "old", "0-9")
        wait_end(client, "old")
        last = client.post("/session", batch("last", "true")).json["sessionId"]
        wait_status(client, last, "TERMINATED")
        cluster.programs["agent"].stop()
        cluster.jump(wall=40 * 86400)
        client.shift = 40 * 86400
        assert client.post("/aliquot/v1/retention/run", {"entities": ["sessions"]}).status == 202
        wait_for(lambda: client.get(f"{ARRAYS}/old").status == 404, 60, "it to be removed")
        assert [s["name"] for s in client.get(f"{SESSIONS}?limit=100").json["items"]] == ["last"]
        assert client.get("/aliquot/v1/audit").json["clean"]
        cluster.stop()


@pytest.mark.exhaustive
def test_ten_thousand_on_two_slots_cancelled_in_the_middle():
    with Cluster(ALIQUOT_RESOURCE_CPUS="2", ALIQUOT_SESSIONS_KILL_GRACE="0.3s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        found = make(client, "long", "0-9999%2", "true")
        wait_for(lambda: show(client, found)["succeeded"] >= 100, 300, "a hundred to succeed")
        assert client.delete(f"{ARRAYS}/long").status == 204
        ended = wait_end(client, found)
        assert ended["status"] == "CANCELLED" and ended["failed"] == 0, ended
        assert ended["succeeded"] >= 100 and ended["succeeded"] + ended["cancelled"] == 10000
        done = elements(client, found)
        assert len(done) == ended["made"] < 10000
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def test_files_of_elements(client, cluster, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n#ALIQUOT --array 0-2 --name files --stdout {tmp_path}/out-%A_%a\n"
                      "echo of $ALIQUOT_ARRAY_INDEX; echo bad >&2\n")
    tmp_path.chmod(0o777)
    assert cluster.cli("submit", "--stderr", f"{tmp_path}/err-%a", "--wait", "-r", "mem=32m",
                       script).returncode == 0
    number = show(client, "files")["number"]
    for index in range(3):
        assert (tmp_path / f"out-{number}_{index}").read_text() == f"of {index}\n"
        assert (tmp_path / f"err-{index}").read_text() == "bad\n"
    assert cluster.cli("logs", "files[1]").stdout == ""


def test_the_limit_counts_elements_that_run(client, cluster, tmp_path):
    """Those that wait for a retry, or for others, hold up no other element; no more run at once."""
    tmp_path.chmod(0o777)
    ran = tmp_path / "ran"
    command = (f"mkdir {tmp_path}/1 2>/dev/null || mkdir {tmp_path}/2 || touch {tmp_path}/many; "
               f"sleep 0.3; rmdir {tmp_path}/2 2>/dev/null || rmdir {tmp_path}/1; "
               f"echo $ALIQUOT_ARRAY_INDEX >> {ran}; test $ALIQUOT_ARRAY_INDEX -gt 1")
    found = make(client, "tries", "0-5%2", command, retry=1, retry_delay="1h")
    wait_for(lambda: ran.exists() and set(ran.read_text().split()) == set("012345"), 60, "all to run")
    rows = {e["name"]: e["status"] for e in elements(client, found)}
    assert rows["tries[0]"] == rows["tries[1]"] == "PENDING", rows
    assert not (tmp_path / "many").exists()
    assert client.delete(f"{ARRAYS}/tries").status == 204
    assert wait_end(client, found)["succeeded"] == 4


def test_a_restart_keeps_the_limit(client, cluster):
    found = make(client, "strict", "0-9%2", "sleep 1", retry=1, retry_delay="1s")
    wait_for(lambda: show(client, found)["succeeded"] >= 2, 60, "two to end")
    cluster.programs["manager"].kill()
    cluster.start_manager()
    most = 0
    while not show(client, found)["terminated_at"]:
        live = [e for e in elements(client, found, "status") if e["status"] not in
                ("PENDING", "TERMINATED", "CANCELLED", "ERROR")]
        most = max(most, len(live))
    assert 1 <= most <= 2
    assert show(client, found)["succeeded"] == 10
