# SPDX-License-Identifier: Apache-2.0
"""A server whose disk is full, whose clock is another one, or that does not let the manager
write."""

import concurrent.futures
import contextlib
import os
import signal
import threading
import time

import pytest

from cluster import Cluster, batch, wait_for, wait_status
from ports import free_port
from postgres import USER, Server
from small_disk import HiddenDisk, fill, remount, small_disk
from world import BUILD, Space

SESSIONS = "/aliquot/v1/sessions"


def submit(client, name, command="true"):
    reply = client.post("/session", batch(name, command), timeout=120)
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def refused_start(cluster, where):
    done = cluster.run("aliquot-manager", "--dev", "--state", cluster.folder / "manager",
                       "--listen", f"127.0.0.1:{free_port()}", "--link",
                       f"127.0.0.1:{free_port()}", ALIQUOT_MANAGER_DATABASE=where)
    assert done.returncode == 1, done
    return done.stderr


# ---- full disks ----

@contextlib.contextmanager
def server_on(size, **more):
    """A server, and the disk that it may use."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    space = Space(mounts=True)
    server = Server(within=space.words(), **more)
    try:
        disk = HiddenDisk(space, server.folder / "small", size, USER)
        if "init" in more:
            server.init_words = [word.format(server.folder / "small") for word in more["init"]]
        with server:
            yield server, disk
    finally:
        space.close()


def large(number):
    """A command that nothing compresses."""
    return f": {number} {os.urandom(25_000).hex()}"


def test_no_room_for_tables():
    """What does not fit is refused, and the rest goes on; with room everything does."""
    with server_on("24m") as (server, disk):
        server.run(f"CREATE TABLESPACE small LOCATION '{server.folder}/small'")
        server.run("CREATE DATABASE cluster TABLESPACE small")
        with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster")) as cluster:
            cluster.start_manager()
            cluster.start_agent()
            client = cluster.client()
            go = cluster.folder / "go"
            runs = submit(client, "runs", f"until test -e {go}; do sleep 0.1; done")
            wait_status(client, runs, "RUNNING")
            disk.fill()
            replies = {f"large-{n}": client.post("/session", batch(f"large-{n}", large(n)),
                                                 timeout=120) for n in range(8)}
            refused = {name: reply for name, reply in replies.items() if reply.status != 201}
            assert refused and all(reply.status == 503 and "free space on the server" in
                                   reply.body.decode() for reply in refused.values()), replies
            assert client.get(f"{SESSIONS}/runs").json["status"] == "RUNNING"
            go.touch()
            disk.empty()
            assert wait_status(client, runs, "TERMINATED")["result"] == "SUCCESS"
            submit(client, "afterwards")
            wait_for(lambda: not cluster.live_sessions(), 120, "all to end")
            names = {session["name"] for session in cluster.sessions()}
            assert names == {"runs", "afterwards"} | replies.keys() - refused.keys()
            cluster.check_audits()
            cluster.stop()


def test_no_room_for_the_log():
    """The server gives up. Nobody is told anything else than what is there when it is back."""
    acknowledged, refused, is_full = [], [], threading.Event()

    def load(cluster, worker):
        while not is_full.is_set():
            name = f"load-{worker}-{len(acknowledged)}-{len(refused)}"
            reply = cluster.client().post("/session", batch(name, large(name)), timeout=120)
            assert reply.status in (201, 503), reply
            (acknowledged if reply.status == 201 else refused).append(name)

    with server_on("24m", init=["-X", "{}/log", "--wal-segsize=1"],
                   settings={"max_wal_size": "1GB"}) as (server, disk):  # nothing is reused
        server.run("CREATE DATABASE cluster")
        with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster")) as cluster:
            cluster.start_manager()
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                futures = [pool.submit(load, cluster, worker) for worker in range(4)]
                wait_for(lambda: len(acknowledged) > 8, 60, "some to be there")
                disk.fill()
                wait_for(lambda: "No space left" in (server.folder / "log").read_text(), 120,
                         "the server's log to end")
                is_full.set()
                disk.empty()
                server.stop(signal.SIGKILL)  # it may have ended by itself, or try again
                server.start()
                for future in futures:
                    future.result()
            for number in range(8):
                submit(cluster.client(), f"later-{number}", large(number))
            names = {session["name"] for session in cluster.sessions()}
            assert names == {*acknowledged, *(f"later-{number}" for number in range(8))}, refused
            cluster.check_audits()
            cluster.stop()


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_state_folder_that_takes_no_data(server, how):
    """Only the clock is noted there: sessions are created and ended, also by the next manager."""
    with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster")) as cluster, \
            small_disk(cluster.folder / "manager", "2m", "mode=700") as filler:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        runs = submit(client, "runs", "sleep 600")
        wait_status(client, runs, "RUNNING")
        cluster.programs["manager"].kill()
        if how == "full":
            fill(filler)
        else:
            remount(filler.parent, "ro")
        cluster.start_manager()
        remedy = "free space there" if how == "full" else "remount the file system writable"
        assert remedy in cluster.log_of("manager")
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        assert wait_status(client, submit(client, "more"), "TERMINATED")["result"] == "SUCCESS"
        assert client.send("DELETE", "/session/runs?forced=true").status == 200
        wait_status(client, runs, "TERMINATED")
        if how == "full":
            filler.unlink()
        else:
            remount(filler.parent, "rw")
        wait_for(lambda: "its file system can be written again" in cluster.log_of("manager"), 60,
                 "the clock to be noted")
        cluster.check_audits()
        cluster.stop()


# ---- another clock ----

HOUR = 3600


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_clocks_an_hour_apart(server, ahead):
    """Whose clock counts is the manager's: the server's is neither asked nor compared."""
    if b"ALIQUOT_CLOCK_FILE" not in (BUILD / "aliquot-manager").read_bytes():
        pytest.skip("only a build with fault points has a clock that can be set")
    with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster")) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        cluster.programs["manager"].stop()
        cluster.jump(wall=ahead)
        cluster.start_manager()
        client = cluster.client()
        client.shift = ahead
        runs = submit(client, "runs", "sleep 600")
        wait_status(client, runs, "RUNNING")
        wait_status(client, submit(client, "before"), "TERMINATED")
        server.stop(signal.SIGKILL)
        server.start()
        wait_status(client, submit(client, "after"), "TERMINATED")
        cluster.programs["manager"].kill()
        cluster.start_manager()
        assert client.get(f"{SESSIONS}/runs").json["status"] == "RUNNING"
        times = server.run(
            "SELECT created_at / 1000000 FROM sessions UNION ALL SELECT at / 1000000"
            " FROM session_history UNION ALL SELECT taken_at / 1000000 FROM manager_lease",
            "cluster")
        assert len(times) > 8, times
        assert all(abs(int(at) - ahead - time.time()) < HOUR / 2 for at in times), times
        cluster.jump(wall=0)
        cluster.check_audits()
        cluster.stop()


# ---- who may not write ----

def test_users_who_may_only_read(server):
    """Named, with what to do, before anything is changed."""
    where = server.uri("cluster")
    with Cluster(ALIQUOT_MANAGER_DATABASE=where) as cluster:
        cluster.start_manager()
        submit(cluster.client(), "one")
        cluster.programs["manager"].stop()
        server.run("CREATE ROLE reader LOGIN; CREATE ROLE dreamer LOGIN SUPERUSER;"
                   "ALTER ROLE dreamer SET default_transaction_read_only = on;"
                   "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", "cluster")
        said = refused_start(cluster, where.replace("user=aliquot", "user=reader"))
        assert "permission denied" in said and "the owner of the database" in said, said
        said = refused_start(cluster, where.replace("user=aliquot", "user=dreamer"))
        assert "read-only" in said and "let this user write" in said, said
        cluster.start_manager()
        assert cluster.client().get(f"{SESSIONS}/one").status == 200
        cluster.stop()


def test_standby_alone(server, standby):
    """It is not the primary, and says so."""
    with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster")) as cluster:
        cluster.start_manager()
        cluster.stop()
        standby.start()
        said = refused_start(cluster, standby.uri("cluster"))
        assert "name the primary server" in said, said
