# SPDX-License-Identifier: Apache-2.0
"""The server's own dump of everything, read back into an empty server."""

import json
import subprocess

from cluster import Cluster, batch, wait_for, wait_status
from postgres import Server, program

SESSIONS = "/aliquot/v1/sessions"


def submit(client, name, command="true", wait="TERMINATED"):
    reply = client.post("/session", batch(name, command))
    assert reply.status == 201, reply
    return wait_status(client, reply.json["sessionId"], wait)["id"]


def dump_all(server):
    done = subprocess.run([program("pg_dumpall"), "-h", server.folder, "-U", "aliquot"],
                          capture_output=True, text=True, check=True)
    return done.stdout


def read_back(server, script):
    """As the drill does it: what is there already, the first user, say, is complained about."""
    subprocess.run([program("psql"), "-X", "-q", "-d", server.uri("postgres")], input=script,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, check=True)


def known(client):
    items = client.get(SESSIONS + "?all=true&limit=1000").json["items"]
    return {item["id"]: (item["name"], item["status"]) for item in items}


def mark(cluster, where):
    return cluster.run("aliquot-manager", "db", "mark-restored", "--state",
                       cluster.folder / "manager", ALIQUOT_MANAGER_DATABASE=where)


def test_drill(server):
    """Same sessions; what runs goes on, also what is newer than the dump."""
    with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster"),
                 ALIQUOT_RESOURCE_CPUS="4") as cluster, Server() as empty:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        for i in range(5):
            submit(client, f"ended-{i}", f"exit {i % 2}")
        running = submit(client, "runs", "sleep 600", wait="RUNNING")
        before = known(client)
        script = dump_all(server)
        newer = submit(client, "newer", "sleep 600", wait="RUNNING")
        cluster.programs["manager"].kill()
        server.stop()

        where = empty.uri("cluster")
        assert "does not exist" in mark(cluster, where).stderr
        empty.run("CREATE DATABASE cluster")
        assert "has no cluster" in mark(cluster, where).stderr
        empty.run("DROP DATABASE cluster")
        read_back(empty, script)
        done = mark(cluster, where)
        assert done.returncode == 0 and "orphan ls" in done.stdout, done
        cluster.start_manager(ALIQUOT_MANAGER_DATABASE=where)
        assert known(client) == before
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        wait_for(lambda: [o["id"] for o in client.get("/aliquot/v1/orphans").json["items"]
                          if o["adoptable"]] == [newer], 60, "what is newer")
        assert cluster.cli("admin", "orphan", "adopt", "--all").returncode == 0
        wait_status(client, newer, "RUNNING")
        assert cluster.cli("admin", "orphan", "finish").returncode == 0
        assert client.get(f"{SESSIONS}/{running}").json["status"] == "RUNNING"
        submit(client, "goes-on")
        cluster.check_audits()
        cluster.stop()


def orphans(client):
    return {o["name"]: o for o in client.get("/aliquot/v1/orphans").json["items"]}


def doctor(cluster):
    found = json.loads(cluster.cli("doctor", "cluster", "-o", "json").stdout)
    return {f["id"]: f for f in found}["cluster.restore"]


def test_older_epoch(server):
    """The dump is of an epoch before the one that the agent follows: without a mark it refuses the
    manager, which says what to run; with it, it follows."""
    with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster"),
                 ALIQUOT_RESOURCE_CPUS="4") as cluster, Server() as empty:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        script = dump_all(server)
        for _ in range(3):
            cluster.programs["manager"].kill()
            cluster.start_manager()
            wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        newer = submit(client, "newer", "sleep 600", wait="RUNNING")
        followed = client.get("/aliquot/v1/health/manager").json["epoch"]
        cluster.programs["manager"].kill()
        server.stop()

        where = empty.uri("cluster")
        read_back(empty, script)
        cluster.start_manager(ALIQUOT_MANAGER_DATABASE=where)
        wait_for(lambda: client.get("/aliquot/v1/health").json.get("epoch_ahead") == followed, 60,
                 "the agent to refuse")
        assert "mark-restored" in doctor(cluster)["remedy"], doctor(cluster)
        assert doctor(cluster)["level"] == "missing"
        cluster.programs["manager"].kill()
        assert mark(cluster, where).returncode == 0
        cluster.start_manager(ALIQUOT_MANAGER_DATABASE=where)
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        assert client.get("/aliquot/v1/health/manager").json["epoch"] > followed
        wait_for(lambda: orphans(client).get("newer", {}).get("adoptable"), 60, "what is newer")
        assert cluster.cli("admin", "orphan", "adopt", "--all").returncode == 0
        wait_status(client, newer, "RUNNING")
        assert cluster.cli("admin", "orphan", "finish").returncode == 0
        cluster.check_audits()
        cluster.stop()


def test_lost_commits(server):
    """A server without the last commits, as a standby that lagged, and nobody has marked it: what
    those commits started is kept, adopted or ended, and the others go on."""
    with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster"),
                 ALIQUOT_RESOURCE_CPUS="4") as cluster, Server() as empty:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        running = submit(client, "runs", "sleep 600", wait="RUNNING")
        script = dump_all(server)
        newer = submit(client, "newer", "sleep 600", wait="RUNNING")
        submit(client, "unwanted", "sleep 600", wait="RUNNING")
        cluster.programs["manager"].kill()
        server.stop()

        where = empty.uri("cluster")
        read_back(empty, script)
        cluster.start_manager(ALIQUOT_MANAGER_DATABASE=where)
        wait_for(lambda: {name: o["reason"] for name, o in orphans(client).items()
                          if o["adoptable"]}
                 == {"newer": "lost-commit", "unwanted": "lost-commit"}, 60, "both to be described")
        submit(client, "goes-on")
        health = client.get("/aliquot/v1/health").json
        assert health["lost_commits"] > 0 and health["backup_made_at"] is None, health
        assert doctor(cluster)["level"] == "warning", doctor(cluster)
        assert cluster.cli("admin", "orphan", "adopt", newer).returncode == 0
        wait_status(client, newer, "RUNNING")
        unwanted = orphans(client)["unwanted"]["id"]
        assert cluster.cli("admin", "orphan", "end", unwanted, "--yes").returncode == 0
        wait_for(lambda: not orphans(client), 60, "it to go")
        assert client.get(f"{SESSIONS}/{running}").json["status"] == "RUNNING"
        assert client.delete(f"/session/{newer}?forced=true").status < 300
        cluster.check_audits()
        cluster.stop()
