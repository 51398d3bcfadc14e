# SPDX-License-Identifier: Apache-2.0
"""Yesterday's database and today's agents: a restore starts nothing and kills nothing."""

import json

import pytest

from cluster import Cluster, batch, wait_for, wait_status

pytestmark = pytest.mark.engines

SESSIONS = "/aliquot/v1/sessions"
ORPHANS = "/aliquot/v1/orphans"


def submit(client, name, cpu="1", command=None, wait="RUNNING", **more):
    command = command or f"echo {name} is here; exec sleep 1000"
    body = batch(name, command, **more)
    body["config"]["resources"]["cpu"] = cpu
    reply = client.post("/session", body)
    assert reply.status == 201, reply
    return wait_status(client, reply.json["sessionId"], wait)["id"]


def orphans(client):
    return {o["name"]: o for o in client.get(ORPHANS).json["items"]}


def restore(cluster, meanwhile):
    """A backup, what happens after it, the database lost and restored."""
    (cluster.folder / "passphrase").write_text("correct horse\n")
    (cluster.folder / "passphrase").chmod(0o600)
    words = ("--state", cluster.folder / "manager", "--passphrase-file",
             cluster.folder / "passphrase")
    path = cluster.folder / "one.backup"
    done = cluster.run("aliquot-manager", "backup", "create", path, *words)
    assert done.returncode == 0, done
    meanwhile()
    cluster.programs["manager"].kill()
    (cluster.folder / "manager").rename(cluster.folder / "lost")
    settings = {"ALIQUOT_MANAGER_DATABASE": ""}
    done = cluster.run("aliquot-manager", "backup", "restore", path, *words, **settings)
    assert done.returncode == 0 and "aliquot admin orphan ls" in done.stdout, done
    cluster.start_manager(**settings)
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")


@pytest.fixture
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="2", ALIQUOT_RESOURCE_CPU_OVERCOMMIT_FACTOR="3") as running:
        running.start_manager()
        running.start_agent()
        yield running


@pytest.mark.gate
def test_nothing_is_killed(cluster):
    """What is newer than the backup is adopted as it runs, and the queue waits for that."""
    client = cluster.client()
    known = submit(client, "known", cpu="2")
    blocker = submit(client, "blocker", cpu="4")
    queued = submit(client, "queued", cpu="1", wait="PENDING")
    made = {}

    def meanwhile():
        assert client.delete(f"/session/{blocker}?forced=true").status < 300
        wait_status(client, blocker, "TERMINATED")
        wait_status(client, queued, "RUNNING")
        made["newer"] = submit(client, "newer")
        assert client.send("PATCH", f"/session/{known}").status < 300
        wait_status(client, known, "RUNNING")

    restore(cluster, meanwhile)
    wait_for(lambda: {name: o["adoptable"] for name, o in orphans(client).items()}
             == {"newer": True, "queued": True, "known": True}, 60,
             lambda: f"all to be described: {orphans(client)}")
    found = orphans(client)
    assert found["newer"]["id"] == made["newer"] and found["newer"]["status"] is None
    assert found["queued"]["id"] == queued and found["queued"]["status"] == "PENDING"
    assert all(o["state"] == "RUNNING" and o["agents"] == "agent" for o in found.values())
    later = submit(client, "later", cpu="1", wait="PENDING", command="true")
    why = cluster.cli("session", "why", later)
    assert "aliquot admin orphan finish" in why.stdout and "starts at" not in why.stdout, why
    assert "in the queue" not in why.stdout and "number" not in why.stdout, why
    explained = client.get(f"{SESSIONS}/{later}/why").json["explanation"]
    assert explained["kind"] == "restored" and explained["position"] is None, explained
    assert explained["start"] == "not-in-queue" and explained["starts_by"] is None, explained
    unfit = cluster.cli("doctor", "cluster", "-o", "json")
    found = {f["id"]: f for f in json.loads(unfit.stdout)}["cluster.restore"]
    assert unfit.returncode == 9 and found["level"] == "missing", found
    assert "3 containers" in found["meaning"], found
    assert found["remedy"].endswith("aliquot admin orphan finish"), found
    refused = cluster.cli("admin", "orphan", "finish")
    assert refused.returncode != 0 and "3 containers" in refused.stderr, refused
    done = cluster.cli("admin", "orphan", "adopt", "--all")
    assert done.returncode == 0, done
    for session in (made["newer"], queued, known):
        shown = wait_status(client, session, "RUNNING")
        assert shown["kernels"][0]["agent"] == "agent"
    wait_for(lambda: not orphans(client), 30, "no orphans")
    logs = cluster.cli("logs", "newer")
    assert logs.stdout == "newer is here\n", logs
    cluster.check_audits()
    assert client.get(f"{SESSIONS}/{later}").json["status"] == "PENDING"
    done = cluster.cli("admin", "orphan", "finish")
    assert done.returncode == 0, done
    assert client.get(ORPHANS).json == {"backup_made_at": None, "items": []}
    found = json.loads(cluster.cli("doctor", "cluster", "-o", "json").stdout)
    assert {f["id"]: f["level"] for f in found}["cluster.restore"] == "ok", found
    wait_status(client, later, "TERMINATED")
    for session in (made["newer"], queued, known):
        assert client.delete(f"/session/{session}?forced=true").status < 300
        assert wait_status(client, session, "TERMINATED")["reason"] == "force-terminated"
    cluster.check_audits()
    cluster.check_nothing_left()
    cluster.stop()


def test_ended_by_an_administrator(cluster):
    """One that nobody wants, one that has ended by itself, and one found by a manager that
    was killed meanwhile."""
    client = cluster.client()
    made = {}

    def meanwhile():
        made["unwanted"] = submit(client, "unwanted")
        made["over"] = submit(client, "over", command="sleep 3; exit 3")

    restore(cluster, meanwhile)
    wait_for(lambda: {name: o["adoptable"] for name, o in orphans(client).items()}
             == {"unwanted": True, "over": True}, 60, "both to be described")
    wait_for(lambda: orphans(client)["over"]["state"] == "TERMINATED", 60, "one to end")
    cluster.programs["manager"].kill()
    cluster.start_manager(**{"ALIQUOT_MANAGER_DATABASE": ""})
    wait_for(lambda: len(orphans(client)) == 2, 60, "both again")
    wait_for(lambda: orphans(client).get("over", {}).get("adoptable"), 60, "it to be described")
    done = cluster.cli("admin", "orphan", "adopt", made["over"])
    assert done.returncode == 0, done
    ended = wait_status(client, made["over"], "TERMINATED")
    assert ended["kernels"][0]["exit_code"] == 3, ended
    again = cluster.cli("admin", "orphan", "adopt", made["over"])
    assert again.returncode != 0 and "newer than the database" in again.stderr, again
    done = cluster.cli("admin", "orphan", "end", made["unwanted"], "--yes")
    assert done.returncode == 0, done
    wait_for(lambda: not orphans(client), 60, "it to go")
    assert client.get(f"{SESSIONS}/{made['unwanted']}").status == 404
    listed = json.loads(cluster.cli("admin", "orphan", "ls", "-o", "json").stdout)
    assert listed == [], listed
    assert cluster.cli("admin", "orphan", "finish").returncode == 0
    twice = cluster.cli("admin", "orphan", "finish")
    assert twice.returncode != 0 and "not restored" in twice.stderr, twice
    audited = [(row["action"], row["object_id"]) for row in client.get(
        "/aliquot/v1/audit-log?limit=1000&order=seq").json["items"]]
    assert audited[-3:] == [("adopt-session", made["over"]), ("end-orphan", made["unwanted"]),
                            ("finish-restore", None)]
    cluster.check_audits()
    cluster.check_nothing_left()
    cluster.stop()


def test_agent_that_is_away(cluster):
    """Not finished without it, unless forced; what it has is ended then when it comes."""
    client = cluster.client()
    restore(cluster, lambda: submit(client, "newer"))
    wait_for(lambda: orphans(client).get("newer", {}).get("adoptable"), 60, "it to be described")
    assert cluster.cli("admin", "orphan", "end", "--all", "--yes").returncode == 0
    wait_for(lambda: not orphans(client), 60, "it to go")
    cluster.programs["agent"].stop()
    wait_for(lambda: not client.get("/aliquot/v1/agents/agent").json["connected"], 30, "its end")
    refused = cluster.cli("admin", "orphan", "finish")
    assert refused.returncode != 0 and "'agent'" in refused.stderr, refused
    assert cluster.cli("admin", "orphan", "finish", "--force").returncode == 0
    cluster.check_audits()
    cluster.stop()
