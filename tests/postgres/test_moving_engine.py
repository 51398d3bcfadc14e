# SPDX-License-Identifier: Apache-2.0
"""A cluster moves to a server and back, with sessions that run meanwhile."""

import re

import pytest

from cluster import Cluster, batch, wait_for, wait_status

SESSIONS = "/aliquot/v1/sessions"


def submit(client, name, command):
    reply = client.post("/session", batch(name, command))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def seen(client):
    """All that a client sees of sessions, but for how old things are, and what is used so far."""
    items = client.get(SESSIONS + "?all=true&limit=1000").json["items"]
    return {item["id"]: {key: value for key, value in item.items()
                         if not re.search("age|elapsed|usage|stat$|live", key)
                         and (item["terminated_at"] or key != "summary")} for item in items}


def migrate(cluster, to, *more, at=None):
    words = ["db", "migrate", "--to", to, "--state", cluster.folder / "manager", *more]
    return cluster.run("aliquot-manager", *words, **({"ALIQUOT_MANAGER_DATABASE": at} if at else {}))


@pytest.mark.gate
def test_there_and_back(shared):
    shared.run("CREATE DATABASE moved")
    uri = shared.uri("moved")
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        for i in range(30):
            wait_status(client, submit(client, f"ended-{i}", f"exit {i % 2}"), "TERMINATED")
        running = submit(client, "runs", "sleep 600")
        wait_status(client, running, "RUNNING")
        before = seen(client)
        busy = migrate(cluster, uri)
        assert busy.returncode == 1 and "has the database" in busy.stderr, busy
        cluster.programs["manager"].stop()

        looked = migrate(cluster, uri, "--dry-run")
        assert looked.returncode == 0 and "nothing was changed" in looked.stdout, looked
        assert shared.run("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'",
                          "moved") == ["0"]
        done = migrate(cluster, uri)
        assert done.returncode == 0 and "copied and compared" in done.stdout, done
        again = migrate(cluster, uri)
        assert again.returncode == 1 and "rows of a cluster already" in again.stderr, again

        cluster.start_manager(ALIQUOT_MANAGER_DATABASE=uri)
        assert seen(client) == before
        wait_status(client, submit(client, "on-the-server", "true"), "TERMINATED")
        cluster.check_audits()
        after = seen(client)
        cluster.programs["manager"].stop()

        file = cluster.folder / "manager" / "back.db"
        back = migrate(cluster, file, at=uri)
        assert back.returncode == 0, back
        file.rename(cluster.folder / "manager" / "aliquot.db")
        cluster.start_manager()
        assert seen(client) == after
        assert client.get(f"{SESSIONS}/{running}").json["status"] == "RUNNING"
        cluster.check_audits()
        cluster.stop()


def test_backup_of_a_file_onto_a_server(shared):
    shared.run("CREATE DATABASE restored")
    where = {"ALIQUOT_MANAGER_DATABASE": shared.uri("restored")}
    with Cluster() as cluster:
        (cluster.folder / "passphrase").write_text("correct horse\n")
        (cluster.folder / "passphrase").chmod(0o600)
        words = ["--passphrase-file", cluster.folder / "passphrase", "--state",
                 cluster.folder / "manager"]
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        wait_status(client, submit(client, "ended", "true"), "TERMINATED")
        before = seen(client)
        done = cluster.run("aliquot-manager", "backup", "create", cluster.folder / "b", *words)
        assert done.returncode == 0, done
        cluster.programs["manager"].stop()
        (cluster.folder / "manager").rename(cluster.folder / "lost")
        done = cluster.run("aliquot-manager", "backup", "restore", cluster.folder / "b", *words,
                           **where)
        assert done.returncode == 0 and "to the server" in done.stdout, done
        assert not (cluster.folder / "manager" / "aliquot.db").exists()
        cluster.start_manager(**where)
        assert seen(client) == before
        wait_for(lambda: client.post("/aliquot/v1/restore/finish", {}).status == 204, 60,
                 "the agent, with what it has")
        wait_status(client, submit(client, "goes-on", "true"), "TERMINATED")
        cluster.check_audits()
        cluster.stop()
