# SPDX-License-Identifier: Apache-2.0
"""Sessions that have ended are repeated as new ones: in containers, with their folders, and once
however often the request is sent."""

import json
import subprocess

import pytest

from client import USER
from cluster import batch, interactive, wait_status
from mounts import WORK, Mounted
from runtimes import settings_of
from world import BUILD

SMALL = ("-r", "cpu=1", "-r", "mem=64m")
SESSIONS = "/aliquot/v1/sessions"


@pytest.fixture(scope="module")
def cluster():
    with Mounted(**settings_of("crun"), ALIQUOT_NETWORK_ENABLED="false") as made:
        made.start("agent")
        yield made
        made.check_nothing_left()
        made.check_audits()
        made.stop()


@pytest.fixture(scope="module")
def data(cluster):
    """The files of a folder "data"."""
    return cluster.place(cluster.folder_of("data"))


def shown(cluster, name):
    return cluster.client().get(f"{SESSIONS}/{name}").json


def run(cluster, name, command, *options, ends="TERMINATED"):
    done = cluster.cli("run", "-d", "--image", "host", *SMALL, "--name", name, *options, "--", command)
    assert done.returncode == 0, done
    if ends:
        wait_status(cluster.client(), name, ends)
    return shown(cluster, name)["id"]


def retry(cluster, name, *options, ends="TERMINATED"):
    """What 'session retry' says of the new session, and its record when it has ended."""
    done = cluster.cli("session", "retry", "-o", "json", "--columns",
                       "sessionId,sessionName,retry_of,not_repeated", *options, name)
    assert done.returncode == 0, done
    [made] = json.loads(done.stdout)
    wait_status(cluster.client(), made["sessionId"], ends)
    return made, shown(cluster, made["sessionId"])


def post(cluster, name, body=None, key=None):
    client, path = cluster.client(), f"{SESSIONS}/{name}/retry"
    return client.raw("POST", path, json.dumps(body or {}).encode(),
                      {**client.headers("POST", path, "application/json"),
                       **({"Idempotency-Key": key} if key else {})})


@pytest.mark.gate
def test_a_failed_session_is_repeated_with_what_it_had(cluster, data):
    """Command, environment, folder, amounts and options; the manager is killed before the request
    is sent again."""
    first = run(cluster, "train", f"echo $WHICH >> {WORK}/data/ran; test -e {WORK}/data/ready",
                "-e", "WHICH=mine", "-v", "data", "--timeout", "10m", "--tag", "t1", "-p", "12")
    before = shown(cluster, first)
    assert before["result"] == "FAILURE" and before["retry_of"] is None
    (data / "ready").touch()
    reply = post(cluster, "train", key="again-1")
    assert reply.status == 201, reply
    assert reply.json["retry_of"] == first and reply.json["not_repeated"] == []
    cluster.programs["manager"].kill()
    cluster.start_manager()
    again = post(cluster, "train", key="again-1")
    assert again.status == 201 and again.json["sessionId"] == reply.json["sessionId"], again
    wait_status(cluster.client(), "train", "TERMINATED")
    after = shown(cluster, reply.json["sessionId"])
    assert after["result"] == "SUCCESS" and after["retry_of"] == first
    for key in ("name", "image", "tag", "priority", "requested_slots", "mounts", "timeout_sec",
                "resource_group", "group", "access_key", "type"):
        assert after[key] == before[key], key
    assert (data / "ran").read_text().split() == ["mine", "mine"]
    table = cluster.cli("session", "info", reply.json["sessionId"]).stdout
    assert first in table, table


def test_suggested_and_other_amounts(cluster, data):
    """One that ran out of memory gets twice as much; what the request says counts more."""
    fill = "dd if=/dev/zero of=/dev/null bs=90M count=1 && sleep 2"
    run(cluster, "large", fill)
    assert shown(cluster, "large")["reason"] == "out-of-memory"
    first = shown(cluster, "large")["id"]
    _, second = retry(cluster, first, "--with-suggested")
    assert second["result"] == "SUCCESS" and second["requested_slots"]["mem"] == str(128 << 20)
    _, third = retry(cluster, first, "-s", "-r", "mem=160m", "--name", "larger")
    assert third["name"] == "larger" and third["requested_slots"]["mem"] == str(160 << 20)
    assert third["retry_of"] == second["retry_of"] == first
    refused = post(cluster, "larger", {"resources": {"mem": "900000g"}})
    assert refused.status == 400 and "config.resources.mem" in refused.json["data"], refused


def test_cancelled_and_timed_out_sessions(cluster):
    blocked = run(cluster, "blocked", "true", "--starts-at", "1h", ends=None)
    assert cluster.cli("rm", "blocked").returncode == 0
    wait_status(cluster.client(), blocked, "CANCELLED")
    made = post(cluster, "blocked")
    assert made.status == 201 and made.json["retry_of"] == blocked
    assert shown(cluster, made.json["sessionId"])["starts_at"] == shown(cluster, blocked)["starts_at"]
    assert cluster.cli("rm", "blocked").returncode == 0
    run(cluster, "slow", "sleep 100", "--timeout", "1s")
    assert shown(cluster, "slow")["reason"] == "task-timeout"
    _, again = retry(cluster, "slow")
    assert again["reason"] == "task-timeout" and again["timeout_sec"] == 1


def test_what_is_refused_says_why(cluster):
    client = cluster.client()
    run(cluster, "busy", "sleep 1000", ends="RUNNING")
    refused = post(cluster, "busy")
    assert refused.status == 409 and refused.slug == "session-not-ended", refused
    done = cluster.cli("session", "retry", "busy")
    assert done.returncode == 7 and "has not ended (it is RUNNING)" in done.stderr, done
    assert cluster.cli("rm", "--wait", "busy").returncode == 0
    assert client.post("/session", {**interactive("desk"), "image": "host",
                                    "enqueueOnly": True}).status == 201
    wait_status(client, "desk", "RUNNING")
    assert cluster.cli("rm", "--wait", "desk").returncode == 0
    refused = post(cluster, "desk")
    assert refused.status == 403 and refused.slug == "session-type-lacks-feature", refused
    assert post(cluster, "nobody").status == 404
    stranger = cluster.client(USER).post(f"{SESSIONS}/busy/retry")
    assert stranger.status == 404, stranger
    wrong = post(cluster, "busy", {"with_sugested": True})
    assert wrong.status == 400 and "with_sugested" in str(wrong.json), wrong


def test_input_of_a_client_is_not_kept(cluster):
    done = subprocess.run([BUILD / "aliquot", "run", "--image", "host", *SMALL, "--name", "reader",
                           "-i", "--", "wc -c"], input="12345", capture_output=True, text=True,
                          check=False, timeout=100, env={**cluster.env, **cluster.cli_env()})
    assert done.returncode == 0 and done.stdout.strip() == "5", done
    refused = post(cluster, "reader")
    assert refused.status == 409 and refused.slug == "session-not-repeatable", refused
    assert "--no-input" in refused.json["msg"]
    made, again = retry(cluster, "reader", "--no-input")
    assert made["not_repeated"] == ["input"]
    assert cluster.cli("logs", again["id"]).stdout.strip() == "0"


def test_an_element_of_an_array(cluster, data):
    body = batch("many", f"test -e {WORK}/data/go; r=$?; "
                 f"echo $ALIQUOT_ARRAY_INDEX/$ALIQUOT_ARRAY_COUNT/$SLURM_ARRAY_TASK_MAX >> "
                 f"{WORK}/data/elements; exit $r",
                 config={"resources": {"cpu": "1", "mem": "64m"}, "mounts": ["data"]})
    reply = cluster.client().post("/session", {**body, "image": "host", "array": "3-4"})
    assert reply.status == 201, reply
    for name in ("many[3]", "many[4]"):
        wait_status(cluster.client(), name.replace("[", "%5B").replace("]", "%5D"), "TERMINATED")
    (data / "go").touch()
    made, again = retry(cluster, "many[4]")
    assert made["sessionName"] == "many-4" and made["not_repeated"] == ["array"]
    assert again["result"] == "SUCCESS" and again["name"] == "many-4"
    assert sorted((data / "elements").read_text().split()) == ["3/2/4", "4/2/4", "4/2/4"]


def test_what_lives_is_waited_for_again(cluster):
    run(cluster, "before", "sleep 1000", ends="RUNNING")
    after = run(cluster, "after", "true", "--after", "before", ends=None)
    assert cluster.cli("rm", "after").returncode == 0
    wait_status(cluster.client(), after, "CANCELLED")
    made = post(cluster, "after")
    assert made.status == 201 and made.json["not_repeated"] == [], made
    assert shown(cluster, made.json["sessionId"])["status"] == "PENDING"
    assert cluster.cli("rm", "--wait", "before").returncode == 0
    wait_status(cluster.client(), made.json["sessionId"], "CANCELLED")
    made, again = retry(cluster, made.json["sessionId"])
    assert made["not_repeated"] == ["dependencies"] and again["result"] == "SUCCESS"


def test_rights_and_limits_are_those_of_now(cluster):
    """A folder that was removed meanwhile, and a policy that lets its owner have less."""
    cluster.folder_of("gone")
    run(cluster, "folded", "false", "-v", "gone")
    assert cluster.cli("folder", "rm", "gone").returncode == 0
    refused = post(cluster, "folded")
    assert refused.status == 400 and "'gone' is in the trash" in refused.json["msg"], refused
    run(cluster, "high", "false", "--job-priority", "50")
    set_policy = ("admin", "policy", "set", "default", "--max-priority")
    assert cluster.cli(*set_policy, "20").returncode == 0
    refused = post(cluster, "high")
    assert cluster.cli(*set_policy, "0").returncode == 0
    assert refused.status == 400 and list(refused.json["data"]) == ["job_priority"], refused
