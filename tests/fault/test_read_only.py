# SPDX-License-Identifier: Apache-2.0
"""Programs whose state folder is on a file system that becomes read-only."""

import time

import pytest

from small_disk import failing_disk, remount, small_disk
from test_full_disk import batch, check_runs, check_works, cluster, end, is_refusing, run_two, submit, wait_for_sockets
from cluster import wait_for, wait_status


def refused(reply, folder):
    assert reply.status == 503, reply
    text = reply.body.decode()
    assert str(folder) in text and "read-only" in text, text


def check_reads(cluster, client, sessions):
    assert {s["id"] for s in cluster.live_sessions()} == set(sessions)
    for session in sessions:
        assert client.get("/aliquot/v1/sessions/" + session).json["status"] == "RUNNING"
        assert client.get(f"/aliquot/v1/sessions/{session}/why").status == 200
    assert client.get("/aliquot/v1/audit").json["clean"]


@pytest.mark.file_database
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_manager_starts_on_a_read_only_file_system(cluster, how):
    folder = cluster.folder / "manager"
    with small_disk(folder, "16m"):
        sessions = run_two(cluster)
        client = cluster.client()
        getattr(cluster.programs["manager"], how)()
        remount(folder, "ro")
        cluster.start_manager()
        assert "mounted read-only" in cluster.log_of("manager")
        check_reads(cluster, client, sessions)
        wait_for(lambda: cluster.agent().get("connected"), 30, "the agent")
        refused(client.post("/session", batch("third", "true")), folder)
        refused(client.send("DELETE", "/session/first?forced=true"), folder)
        check_reads(cluster, client, sessions)
        remount(folder, "rw")
        wait_for(lambda: "opening the database again" in cluster.log_of("manager"), 30, "rw")
        wait_for(cluster.is_serving, 30, "the manager")
        end(client, "first")
        wait_status(client, sessions[0], "TERMINATED")
        end(client, "second")
        wait_status(client, sessions[1], "TERMINATED")
        check_works(cluster)


@pytest.mark.file_database
def test_what_ends_meanwhile_is_recorded_afterwards(cluster):
    """The agent keeps what it cannot report, and the log does not fill up."""
    folder = cluster.folder / "manager"
    with small_disk(folder, "16m"):
        run_two(cluster)
        client = cluster.client()
        brief = submit(client, "brief", "sleep 3")
        wait_status(client, brief, "RUNNING")
        cluster.programs["manager"].kill()
        remount(folder, "ro")
        cluster.start_manager()
        wait_for(lambda: cluster.agent().get("connected"), 30, "the agent")
        time.sleep(8)  # it has ended since, and its end was refused each second
        assert client.get("/aliquot/v1/sessions/" + brief).json["status"] != "TERMINATED"
        assert cluster.log_of("manager").count("the store refused a change") == 1
        remount(folder, "rw")
        wait_status(client, brief, "TERMINATED")
        assert client.get("/aliquot/v1/sessions/" + brief).json["result"] == "SUCCESS"
        for name in ("first", "second"):
            end(client, name)


def test_an_agent_starts_on_a_read_only_file_system(cluster):
    """It takes no sessions, says why, and takes them once the file system can be written."""
    state = cluster.folder / "agent"
    with small_disk(state, "16m"):
        cluster.start_manager()
        cluster.start_agent()
        cluster.programs["agent"].stop()
        remount(state, "ro")
        cluster.start_agent()
        shown = wait_for(lambda: is_refusing(cluster), 30, "the agent to take no sessions")
        assert "mounted read-only" in shown["drain_reason"] and str(state) in shown["drain_reason"], shown
        remount(state, "rw")
        wait_for(lambda: cluster.agent().get("schedulable"), 30, "the agent to take sessions")
        check_works(cluster)


# ---- ext4 after an I/O error: files that are open for writing stay open, writes fail ----

@pytest.mark.file_database
def test_a_running_manager_serves_what_is_stored_when_its_disk_fails(cluster):
    folder = cluster.folder / "manager"
    with failing_disk(folder) as disk:
        sessions = run_two(cluster)
        client = cluster.client()
        brief = submit(client, "brief", "sleep 1")
        wait_status(client, brief, "RUNNING")
        disk.fail()
        for how in ("run on", "kill", "stop"):
            if how != "run on":
                getattr(cluster.programs["manager"], how)()
                cluster.start_manager()
                wait_for(lambda: cluster.agent().get("connected"), 30, "the agent")
            refused(client.post("/session", batch("third", "true")), folder)
            refused(client.send("DELETE", "/session/first?forced=true"), folder)
            check_reads(cluster, client, {*sessions, brief})
        cluster.programs["manager"].stop()
        disk.repair()
        cluster.start_manager()
        assert wait_status(client, brief, "TERMINATED")["result"] == "SUCCESS"
        check_reads(cluster, client, sessions)
        for name, session in zip(("first", "second"), sessions):
            end(client, name)
            wait_status(client, session, "TERMINATED")
        check_runs(cluster)
        cluster.check_audits()
        cluster.stop()
    cluster.check_nothing_left()


def test_a_running_agent_takes_no_sessions_when_its_disk_fails(cluster):
    """Nothing has to be started to see it; its sessions continue, and can be ended."""
    state = cluster.folder / "agent"
    with failing_disk(state) as disk:
        first, second = run_two(cluster)
        client = cluster.client()
        wait_for_sockets(state)
        disk.fail()
        for how in ("run on", "kill"):
            if how == "kill":
                cluster.programs["agent"].kill()
                cluster.start_agent()
            shown = wait_for(lambda: is_refusing(cluster), 30, "the agent to take no sessions")
            assert "mounted read-only" in shown["drain_reason"] and str(state) in shown["drain_reason"], shown
        waiting = submit(client, "waiting", "echo later")
        assert str(state) in client.get(f"/aliquot/v1/sessions/{waiting}/why").json["text"]
        for session in (first, second):
            assert client.get("/aliquot/v1/sessions/" + session).json["status"] == "RUNNING"
        for name, session in zip(("first", "second"), (first, second)):
            end(client, name)
            wait_status(client, session, "TERMINATED")
        cluster.programs["agent"].stop()
        disk.repair()
        cluster.start_agent()
        assert wait_status(client, waiting, "TERMINATED")["result"] == "SUCCESS"
        check_runs(cluster)
        cluster.check_audits()
        cluster.stop()
    cluster.check_nothing_left()
