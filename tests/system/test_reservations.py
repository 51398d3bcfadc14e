# SPDX-License-Identifier: Apache-2.0
"""Reservations: amounts that are kept for projects and users during a time, with real containers."""

import json

import pytest

from client import DOMAIN_ADMIN, USER
from cluster import Cluster, batch, interactive, wait_for, wait_status
from runtimes import settings_of
from test_accelerators import TWO_GPUS, start

RESERVATIONS = "/aliquot/v1/reservations"
SESSIONS = "/aliquot/v1/sessions"
CPUS = 4


class Room:
    """A cluster of one agent with four cores, whose clock the test moves."""

    def __init__(self, cluster):
        self.cluster, self.wall = cluster, 0
        self.client = cluster.client()

    def jump(self, seconds):
        """The wall clock goes on."""
        self.wall += seconds
        self.cluster.jump(wall=self.wall)

    def reserve(self, name, *words, cpus=CPUS, start="60s", duration="120s"):
        done = self.cluster.cli("reservation", "create", name, "--start", start, "--duration",
                                duration, "-r", f"cpu={cpus}", "--for", "project:default",
                                "-o", "json", *words)
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def show(self, name):
        reply = self.client.get(f"{RESERVATIONS}/{name}")
        assert reply.status == 200, reply
        return reply.json

    def wait_state(self, name, state):
        return wait_for(lambda: (r := self.show(name))["state"] == state and r, 60,
                        lambda: f"{name} to become {state}: {self.show(name)}")

    def submit(self, name, command="sleep 1000", cpus=1, **more):
        body = {**batch(name, command, **more), "image": "host"}
        body["config"] = {"resources": {"cpu": str(cpus), "mem": "64m"}}
        reply = self.client.post("/session", body)
        assert reply.status == 201, reply
        return reply.json["sessionId"]

    def status(self, name):
        return self.client.get(f"{SESSIONS}/{name}").json["status"]

    def wait(self, name, *statuses):
        return wait_status(self.client, name, *statuses)

    def why(self, name):
        return self.cluster.cli("session", "why", name).stdout

    def kill_manager(self):
        self.cluster.programs["manager"].kill()
        self.cluster.start_manager()
        wait_for(lambda: self.cluster.agent().get("connected"), 60, "the agent")


@pytest.fixture(params=("crun", "process"))
def room(request):
    settings = {**settings_of(request.param), "ALIQUOT_RESOURCE_CPUS": str(CPUS),
                "ALIQUOT_SESSIONS_KILL_GRACE": "0.3s", "ALIQUOT_IMAGE_ALLOW": "* host"}
    with Cluster(**settings) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield Room(cluster)
        cluster.cli("rm", "--all", "--yes", "--wait", "--force")
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.mark.gate
def test_waits_starts_in_the_window_and_ends_with_it(room):
    made = room.reserve("exam")
    assert (made["state"], made["agents"], made["resources"]["cpu"]) == ("planned", ["agent"], "4")
    inside = room.submit("inside", cpus=CPUS, reservation="exam")
    late = room.submit("late", cpus=CPUS, reservation="exam")
    endless = room.submit("endless")
    short = room.submit("short", "sleep 0.2", batch_timeout="10s")
    room.wait("short", "TERMINATED")  # it ends before the start by its time limit
    wait_for(lambda: "reservation 'exam'" in room.why("inside"), 30, lambda: room.why("inside"))
    assert room.status("endless") == "PENDING" and room.status("inside") == "PENDING"
    room.kill_manager()
    assert room.show("exam")["id"] == made["id"]
    room.jump(65)
    room.wait("inside", "RUNNING")
    assert room.show("exam")["state"] == "active"
    assert [s["name"] for s in room.show("exam")["sessions"]] == ["inside", "late"]
    assert room.status("endless") == "PENDING" and room.status("late") == "PENDING"
    room.kill_manager()
    assert room.status("inside") == "RUNNING"
    room.jump(125)
    ended = room.wait("inside", "TERMINATED")
    assert ended["reason"] in ("reservation-ended", "task-timeout"), ended
    assert room.wait("late", "CANCELLED")["reason"] == "reservation-ended"
    room.wait_state("exam", "ended")
    room.wait("endless", "RUNNING")
    assert {short, inside, late, endless} == {s["id"] for s in room.cluster.sessions()}


@pytest.mark.gate
def test_released_when_unused(room):
    room.reserve("quiet", "--release-unused", "60s", start="0s", duration="1h")
    room.submit("endless", cpus=CPUS)
    user = room.submit("used", "sleep 0.3", reservation="quiet")
    room.wait("used", "TERMINATED")
    parked = room.submit("parked", reservation="quiet", starts_at="50m")
    room.jump(50)
    room.kill_manager()
    assert room.show("quiet")["state"] == "active" and room.status("endless") == "PENDING"
    room.jump(15)
    room.wait_state("quiet", "released")
    assert room.wait("parked", "CANCELLED")["reason"] == "reservation-released"
    room.wait("endless", "RUNNING")
    assert user != parked


def test_the_signal_before_the_end(room):
    room.reserve("exam", start="0s", duration="60s")
    room.jump(48)  # 12 seconds are left
    warned = "trap 'echo warned; exit 7' USR1; while :; do sleep 0.1; done"
    room.submit("inside", warned, reservation="exam", batch_timeout="1h", signal="USR1@4")
    shown = room.wait("inside", "TERMINATED")
    assert shown["kernels"][0]["exit_code"] == 7, shown
    assert "warned" in room.cluster.cli("logs", "inside").stdout


def test_the_signal_follows_the_end(room):
    """It comes before the end that the reservation has then, not the one of the session's start."""
    room.reserve("exam", start="0s", duration="60s")
    warned = "trap 'echo warned; exit 7' USR1; echo ready; while :; do sleep 0.1; done"
    room.submit("inside", warned, reservation="exam", batch_timeout="2h", signal="USR1@4")
    room.wait("inside", "RUNNING")
    wait_for(lambda: "ready" in room.cluster.cli("logs", "inside").stdout, 30, "the trap")
    done = room.cluster.cli("reservation", "update", "exam", "--duration", "10m")
    assert done.returncode == 0, done
    room.jump(70)  # beyond the end that it had
    room.submit("later", "true", reservation="exam")
    room.wait("later", "TERMINATED")
    assert room.status("inside") == "RUNNING"
    assert "warned" not in room.cluster.cli("logs", "inside").stdout
    room.kill_manager()
    room.jump(600 - 70 - 10)
    shown = room.wait("inside", "TERMINATED")
    assert (shown["reason"], shown["kernels"][0]["exit_code"]) == ("reservation-ended", 7), shown
    assert room.cluster.cli("logs", "inside").stdout.count("warned") == 1


def test_elements_that_would_run_over_the_end(room):
    """They wait until the end allows their time limit, and are cancelled if it never does."""
    room.reserve("exam", start="0s", duration="600s")
    body = {**batch("many", "true", array="0-2", batch_timeout="400s", reservation="exam"),
            "image": "host", "config": {"resources": {"cpu": "1", "mem": "64m"}}}
    refused = room.client.post("/session", {**body, "batch_timeout": "1h"})
    assert refused.status == 400 and "longer than the reservation 'exam'" in str(refused.json), refused
    room.jump(300)
    assert room.client.post("/session", body).status == 201
    wait_for(lambda: "beyond the end of reservation 'exam'" in room.why("many[0]"), 30,
             lambda: room.why("many[0]"))
    assert room.status("many[0]") == "PENDING"
    assert room.cluster.cli("reservation", "update", "exam", "--duration", "15m").returncode == 0
    for i in range(3):
        assert room.wait(f"many[{i}]", "TERMINATED")["result"] == "SUCCESS"
    assert room.client.post("/session", {**body, "name": "late", "batch_timeout": "700s"}).status == 201
    wait_for(lambda: "beyond the end" in room.why("late[0]"), 30, lambda: room.why("late[0]"))
    room.jump(580)
    assert room.wait("late[0]", "CANCELLED")["reason"] == "reservation-ended"


def test_canceled(room):
    room.reserve("exam", start="0s", cpus=2)
    room.submit("running", cpus=2, reservation="exam")
    room.wait("running", "RUNNING")
    room.submit("waiting", cpus=2, reservation="exam")
    room.submit("endless", cpus=2)
    room.submit("second", cpus=1)
    assert room.status("waiting") == "PENDING"
    done = room.cluster.cli("reservation", "cancel", "--reason", "it was moved", "exam")
    assert done.returncode == 0, done
    assert room.wait("waiting", "CANCELLED")["reason"] == "reservation-canceled"
    shown = room.show("exam")
    assert (shown["state"], shown["reason"]) == ("canceled", "it was moved")
    room.kill_manager()
    assert room.status("running") == "RUNNING"
    assert room.cluster.cli("reservation", "cancel", "exam").returncode != 0
    assert room.cluster.cli("reservation", "ls").stdout.count("exam") == 0
    assert "canceled" in room.cluster.cli("reservation", "ls", "--all").stdout


def test_a_session_without_a_limit_is_in_the_way(room):
    room.submit("endless", cpus=2)
    room.wait("endless", "RUNNING")
    done = room.cluster.cli("reservation", "create", "exam", "--start", "60s", "--duration", "60s",
                            "-r", "cpu=4", "--for", "project:default")
    assert done.returncode != 0 and "endless" in done.stderr, done
    room.reserve("exam", "--ignore-sessions")
    room.submit("inside", cpus=CPUS, reservation="exam")
    room.submit("other", cpus=1)
    room.jump(65)
    wait_for(lambda: room.show("exam")["state"] == "active", 30, "its start")
    assert room.status("endless") == "RUNNING" and room.status("inside") == "PENDING"
    room.cluster.cli("rm", "endless")
    room.wait("inside", "RUNNING")  # what becomes free is the reservation's first
    assert room.status("other") == "PENDING"


def test_command_lines(room):
    cli = room.cluster.cli
    room.reserve("exam", "--release-unused", "5m")
    assert cli("reservation", "create", "exam").returncode == 2
    done = cli("reservation", "create", "exam", "-d", "1h", "-r", "cpu=1", "--for", "project:default")
    assert "already called 'exam'" in done.stderr, done
    done = cli("reservation", "create", "x-1", "-d", "1h", "-r", "cpu=1", "--for", "project:moon")
    assert "no project 'moon'" in done.stderr, done
    done = cli("reservation", "create", "x-1", "-d", "1h", "-r", "cpu=1000", "--for",
               "project:default")
    assert done.returncode != 0 and "cpu" in done.stderr, done
    done = cli("reservation", "update", "exam", "--start", "2h", "--release-unused", "0", "--name",
               "test", "-o", "json")
    shown = json.loads(done.stdout)
    assert (shown["name"], shown["duration"], shown["release_unused"]) == ("test", 120, 0)
    assert cli("reservation", "show", "exam").returncode == 5
    assert "test" in cli("reservation", "show", "test").stdout
    done = cli("run", "-d", "--name", "stray", "--reservation", "exam", "-r", "cpu=1", "true")
    assert done.returncode != 0 and "no reservation 'exam'" in done.stderr, done
    done = cli("run", "-d", "--name", "large", "--reservation", "test", "-r", "cpu=5", "true")
    assert done.returncode != 0, done
    script = room.cluster.folder / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH --reservation=test\n#SBATCH --job-name=scripted\ntrue\n")
    done = cli("submit", "--image", "host", str(script))
    assert done.returncode == 0, done
    assert room.client.get(f"{SESSIONS}/scripted").json["reservation"] == "test"


def test_slurms_commands(room):
    scontrol = ("slurm", "scontrol", "show", "reservation")
    assert "No reservations in the system" in room.cluster.cli(*scontrol).stdout
    room.reserve("exam", start="0s", duration="1h")
    shown = room.cluster.cli(*scontrol, "exam").stdout
    for text in ("ReservationName=exam ", "Duration=01:00:00", "Nodes=agent NodeCnt=1",
                 "PartitionName=default", "TRES=cpu=4", "Users=(null) Accounts=default State=ACTIVE"):
        assert text in shown, shown
    assert room.cluster.cli(*scontrol, "other").returncode == 1
    (line,) = room.cluster.cli("slurm", "sinfo", "-h", "-T").stdout.splitlines()
    assert (line.split()[0], line.split()[1], line.split()[-2:]) == (
        "exam", "ACTIVE", ["01:00:00", "agent"])
    done = room.cluster.cli("run", "--detach", "--name", "seated", "--reservation", "exam",
                            "-r", "cpu=1", "-r", "mem=32m", "true")
    assert done.returncode == 0, done
    shown = room.cluster.cli("slurm", "squeue", "-h", "-t", "all", "-n", "seated", "-o", "%v").stdout
    assert shown == "exam\n"


def test_devices():
    """Its sessions have the devices that were chosen for it, others have the other ones."""
    settings = {**settings_of("process"), "ALIQUOT_RESOURCE_CPUS": str(CPUS)}
    with Cluster(**settings) as cluster:
        start(cluster, TWO_GPUS)
        room = Room(cluster)
        reply = room.client.post(RESERVATIONS, {"name": "exam", "for": ["project:default"],
                                                "duration": "1h", "resources": {"cuda.shares": "1"}})
        assert reply.status == 201, reply
        [place] = room.show("exam")["places"]
        [kept] = place["devices"]["cuda.shares"]
        gpu = {"config": {"resources": {"cpu": "1", "mem": "64m", "cuda.shares": "1"}}}
        for name, more in (("endless", {}), ("waiting", {}), ("inside", {"reservation": "exam"})):
            reply = room.client.post("/session", {**batch(name, "sleep 1000"), **gpu, **more})
            assert reply.status == 201, reply
        [outer], [inner] = ([*room.wait(name, "RUNNING")["kernels"][0]["devices"]["cuda.shares"]]
                            for name in ("endless", "inside"))
        assert inner == kept and outer != kept
        assert room.status("waiting") == "PENDING"
        # the end of the reservation is known
        assert "at the latest" in room.why("waiting"), room.why("waiting")
        cluster.cli("rm", "--all", "--yes", "--wait")
        cluster.check_audits()
        cluster.stop()


def test_who_sees_and_uses_it(room):
    room.reserve("exam", start="0s", duration="1h", cpus=1)
    user = room.cluster.client(USER)
    assert user.get(RESERVATIONS).json["total"] == 1
    assert user.get(f"{RESERVATIONS}/exam").json["created_by"] is None
    assert user.post(RESERVATIONS, {}).status in (401, 403)
    boss = room.cluster.client(DOMAIN_ADMIN)
    reply = boss.send("PATCH", f"{RESERVATIONS}/exam", {"for": ["user:admin@lablup.com"]})
    assert reply.status == 200, reply
    assert user.get(RESERVATIONS).json["total"] == 0
    assert user.get(f"{RESERVATIONS}/exam").status == 404
    reply = user.post("/session", {**interactive("mine"), "reservation": "exam"})
    assert reply.status == 404 and "there is no reservation 'exam'" in reply.body.decode(), reply
