# SPDX-License-Identifier: Apache-2.0
"""Programs that start while the file system of their state folder takes no more: they serve what they
have, end what runs, and go on without another start once there is room."""

import contextlib
import json
import shutil
import sqlite3

import pytest

from cluster import ENDED, Cluster, batch, wait_for, wait_status
from ports import free_port
from small_disk import fill, quota_disk, remount, small_disk, take_inodes
from world import BUILD

HASTY = {"ALIQUOT_AGENTS_HEARTBEAT": "1s", "ALIQUOT_MANAGER_HEARTBEAT": "0.2s",
         "ALIQUOT_SESSIONS_KILL_GRACE": "0.3s", "ALIQUOT_RESOURCE_CPUS": "4"}


@pytest.fixture
def cluster():
    with Cluster(**HASTY) as cluster:
        yield cluster


def submit(client, name, command):
    reply = client.post("/session", batch(name, command))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def run_two(cluster):
    """Sessions that run, in a new cluster."""
    cluster.start_manager()
    cluster.start_agent()
    client = cluster.client()
    first, second = (submit(client, name, "sleep 1000") for name in ("first", "second"))
    for session in (first, second):
        wait_status(client, session, "RUNNING")
    return first, second


def wait_for_sockets(state):
    """By which the next agent reaches two sessions: they are made a second after the start."""
    wait_for(lambda: len(list(state.glob("kernels/*/run/1/monitor.sock"))) == 2, 30, "the sockets")


def end(client, name):
    reply = client.send("DELETE", f"/session/{name}?forced=true")
    assert reply.status == 200, reply


def check_runs(cluster):
    """A program runs once there is room."""
    client = cluster.client()
    reply = wait_for(lambda: (lambda got: got if got.status == 201 else None)(
        client.post("/session", batch("afterwards", "echo works"))), 30, "a session to be created")
    assert wait_status(client, reply.json["sessionId"], *ENDED)["result"] == "SUCCESS"


def check_works(cluster):
    """The same, nothing is left over, both audits are clean."""
    check_runs(cluster)
    cluster.check_nothing_left()
    cluster.check_audits()
    cluster.stop()


# ---- the manager ----

def check_creates_nothing(cluster):
    reply = cluster.client().post("/session", batch("unlucky", "true"))
    assert reply.status == 503, reply
    text = reply.body.decode()
    assert str(cluster.folder / "manager") in text and "free" in text, text


@pytest.mark.file_database
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_manager_starts_on_a_full_disk_and_ends_sessions(cluster, how):
    with small_disk(cluster.folder / "manager", "6m") as filler:
        first, second = run_two(cluster)
        client = cluster.client()
        fill(filler)
        end(client, "first")
        getattr(cluster.programs["manager"], how)()
        fill(filler)
        cluster.start_manager()
        assert "No space left" in cluster.log_of("manager")
        assert {session["id"] for session in cluster.sessions()} == {first, second}
        wait_status(client, first, "TERMINATED")
        check_creates_nothing(cluster)
        wait_for(cluster.agent, 30, "the agent to be back")
        assert client.get(f"/aliquot/v1/sessions/{second}/why").status == 200
        end(client, "second")
        wait_status(client, second, "TERMINATED")
        check_creates_nothing(cluster)
        cluster.programs["manager"].kill()
        fill(filler)
        cluster.start_manager()
        assert client.get("/aliquot/v1/sessions/" + second).json["status"] == "TERMINATED"
        clock = cluster.folder / "manager" / "clock"
        before = clock.read_text()
        filler.unlink()
        wait_for(lambda: clock.read_text() != before, 30, "the clocks to be noted")
        check_works(cluster)


@pytest.mark.file_database
@pytest.mark.parametrize("lacks_lock", [False, True])
def test_a_manager_starts_without_inodes(cluster, lacks_lock):
    """The log of the database and its index cannot be made, nor the lock if it was lost."""
    folder = cluster.folder / "manager"
    with small_disk(folder, "8m", "nr_inodes=200"):
        first, second = run_two(cluster)
        client = cluster.client()
        cluster.programs["manager"].stop()
        assert not list(folder.glob("aliquot.db-*"))
        if lacks_lock:
            (folder / "aliquot.db.lock").unlink()
        taken = take_inodes(folder)
        cluster.start_manager()
        assert {session["id"] for session in cluster.live_sessions()} == {first, second}
        check_creates_nothing(cluster)
        assert client.send("DELETE", "/session/first?forced=true").status == 503
        with pytest.raises(sqlite3.OperationalError, match="locked"):  # its index would be another one
            sqlite3.connect(folder / "aliquot.db", timeout=0.1).execute("SELECT 1 FROM sessions")
        shutil.rmtree(taken)
        refused = cluster.run("aliquot-manager", "--dev", "--state", folder, "--listen",
                              f"127.0.0.1:{free_port()}", "--link", f"127.0.0.1:{free_port()}")
        assert refused.returncode == 1 and "has the database" in refused.stderr, refused
        end(client, "first")
        wait_status(client, first, "TERMINATED")
        cluster.programs["manager"].kill()
        cluster.start_manager()
        assert client.get("/aliquot/v1/sessions/" + first).json["status"] == "TERMINATED"
        end(client, "second")
        wait_status(client, second, "TERMINATED")
        check_works(cluster)


@pytest.mark.file_database
def test_a_manager_over_a_quota(cluster):
    """Sessions run on and stored data is served, also by the next manager; all goes on with a quota."""
    with quota_disk(cluster.folder / "manager") as disk:
        first, second = run_two(cluster)
        client = cluster.client()
        disk.limit("1")
        for how in ("run on", "kill"):
            if how == "kill":
                cluster.programs["manager"].kill()
                cluster.start_manager()
                wait_for(cluster.agent, 30, "the agent to be back")
            wait_for(lambda: client.post("/session", batch("unlucky", "true")).status == 503, 30, "a refusal")
            check_creates_nothing(cluster)
            for session in (first, second):
                assert client.get("/aliquot/v1/sessions/" + session).json["status"] == "RUNNING"
        disk.limit("none")
        wait_for(lambda: client.post("/session", batch("lucky", "true")).status == 201, 30, "room")
        for name, session in (("first", first), ("second", second)):
            end(client, name)
            wait_status(client, session, "TERMINATED")
        check_runs(cluster)
        cluster.check_audits()
        cluster.stop()
    cluster.check_nothing_left()


# ---- an agent ----

def test_an_agent_over_a_quota(cluster):
    """statvfs() does not show it. Its sessions run on, and can be ended."""
    state = cluster.folder / "agent"
    with quota_disk(state) as disk:
        first, second = run_two(cluster)
        client = cluster.client()
        wait_for_sockets(state)
        disk.limit("1")
        submit(client, "unlucky", "true")
        shown = wait_for(lambda: is_refusing(cluster), 30, "the agent to take no sessions")
        assert "over a quota" in shown["drain_reason"] and str(state) in shown["drain_reason"], shown
        cluster.programs["agent"].kill()
        cluster.start_agent()
        for session in (first, second):
            assert client.get("/aliquot/v1/sessions/" + session).json["status"] == "RUNNING"
        end(client, "first")
        wait_status(client, first, "TERMINATED")
        disk.limit("none")
        wait_for(lambda: cluster.agent().get("schedulable"), 30, "the agent to take sessions")
        end(client, "second")
        wait_status(client, second, "TERMINATED")
        check_runs(cluster)
        cluster.check_audits()
        cluster.stop()
    cluster.check_nothing_left()


def is_refusing(cluster):
    shown = cluster.agent()
    return shown if shown.get("schedulable") is False else None


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_an_agent_starts_on_a_full_disk_and_ends_sessions(cluster, how):
    state = cluster.folder / "agent"
    with small_disk(state, "4m") as filler:
        first, second = run_two(cluster)
        client = cluster.client()
        fill(filler)
        getattr(cluster.programs["agent"], how)()
        fill(filler)
        cluster.start_agent()
        shown = wait_for(lambda: is_refusing(cluster), 30, "the agent to take no sessions")
        assert str(state) in shown["drain_reason"] and "free space" in shown["drain_reason"], shown
        said = cluster.cli("agent", "info", "agent", "-o", "json")
        assert str(state) in said.stdout, said
        waiting = submit(client, "waiting", "echo later")
        why = client.get(f"/aliquot/v1/sessions/{waiting}/why")
        assert str(state) in why.json["text"], why
        end(client, "first")
        assert wait_status(client, first, *ENDED)["status"] == "TERMINATED"
        assert client.get("/aliquot/v1/sessions/" + second).json["status"] == "RUNNING"
        assert "no monitor could be started" not in cluster.log_of("agent")
        fill(filler)
        cluster.programs["agent"].kill()
        cluster.start_agent()
        filler.unlink()
        assert wait_status(client, waiting, *ENDED)["result"] == "SUCCESS"
        assert client.get("/aliquot/v1/sessions/" + second).json["status"] == "RUNNING"
        assert cluster.agent()["schedulable"]
        end(client, "second")
        wait_status(client, second, "TERMINATED")
        check_works(cluster)


def test_a_program_that_ends_on_a_full_disk_keeps_its_exit_code(cluster):
    with small_disk(cluster.folder / "agent", "4m") as filler:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        go = cluster.folder / "go"
        session = submit(client, "seven", f"until test -e {go}; do sleep 0.1; done; exit 7")
        wait_status(client, session, "RUNNING")
        fill(filler)
        go.touch()
        shown = wait_status(client, session, *ENDED)
        assert (shown["result"], shown["exit_code"]) == ("FAILURE", 7), shown
        filler.unlink()
        check_works(cluster)


def test_a_second_agent_is_kept_out_without_a_lock_file(cluster):
    state = cluster.folder / "agent"
    with small_disk(state, "4m", "nr_inodes=200"):
        cluster.start_manager()
        cluster.start_agent()
        cluster.programs["agent"].stop()
        (state / "lock").unlink()
        taken = take_inodes(state)
        cluster.start_agent()
        wait_for(lambda: is_refusing(cluster), 30, "the agent to take no sessions")
        shutil.rmtree(taken)
        refused = cluster.run("aliquot-agent", "--state", state, ALIQUOT_ID="agent")
        assert refused.returncode == 1 and "another agent runs" in refused.stderr, refused
        wait_for(lambda: cluster.agent().get("schedulable"), 30, "the agent to take sessions")
        check_works(cluster)


def test_a_relative_state_folder_is_seen_from_everywhere(cluster):
    """Programs of sessions have another working directory, and so have the agent's helpers."""
    cluster.start_manager()
    cluster.join()
    cluster.start_program("agent", "env", "-C", cluster.folder, BUILD / "aliquot-agent", "--state",
                          "agent", ALIQUOT_ID="agent")
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    client = cluster.client()
    session = submit(client, "where", "pwd")
    assert wait_status(client, session, *ENDED)["result"] == "SUCCESS"
    log = client.get(f"/aliquot/v1/sessions/{session}/logs")
    assert str(cluster.folder / "agent") in log.body.decode(), log
    check_works(cluster)


# ---- all in one ----

def agents_of(state):
    with contextlib.suppress(FileNotFoundError):
        pids = json.loads((state / "up.json").read_text())["agent_pids"]
        return pids and all(pids)

@pytest.mark.parametrize("options", [(), ("--dev",)])
@pytest.mark.parametrize("lack", ["space", "some", "inodes", "read-only"])
def test_up_makes_no_cluster_that_does_not_fit(cluster, lack, options):
    """One error with the remedy, nothing is left there; afterwards the same command makes one."""
    size, more = ("2m", []) if lack == "some" else ("64m", ["nr_inodes=200"] if lack == "inodes" else [])
    with small_disk(cluster.folder / "disk", size, *more) as filler:
        state = filler.parent / "state"
        words = [BUILD / "aliquot-up", "--state", state, "--port", str(cluster.address[1]), "--link-port",
                 cluster.link.partition(":")[2], *options]
        taken = {"space": fill, "inodes": lambda file: take_inodes(file.parent), "some": lambda _: None,
                 "read-only": lambda file: remount(file.parent, "ro")}[lack](filler)
        done = cluster.run(words[0].name, *words[1:])
        lines = done.stderr.strip().splitlines()
        assert done.returncode == 1 and len(lines) == 1 and "or choose another --state" in lines[0], done
        assert not state.exists()
        if lack in ("space", "inodes"):
            shutil.rmtree(taken) if taken else filler.unlink()
        else:
            remount(filler.parent, "rw,size=64m")
        cluster.start_program("up", *words)
        wait_for(lambda: agents_of(state), 60, "the agent, which joins with the administrator's keys")
        cluster.programs["up"].stop()
        cluster.check_nothing_left()
