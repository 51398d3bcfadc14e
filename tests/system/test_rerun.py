# SPDX-License-Identifier: Apache-2.0
"""Batch sessions that are run again: what their programs see, what is shown of each attempt, and
that none starts twice whichever program restarts."""

import json
import time

import pytest

from cluster import Cluster, batch, wait_for, wait_status
from test_scheduling import set_group

HASTY = {"ALIQUOT_AGENTS_HEARTBEAT": "1s", "ALIQUOT_AGENTS_TIMEOUT": "3s",
         "ALIQUOT_MANAGER_HEARTBEAT": "0.2s", "ALIQUOT_SESSIONS_KILL_GRACE": "1s"}
SMALL = ("-r", "cpu=1", "-r", "mem=32m")


@pytest.fixture
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="2", **HASTY) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def shown(cluster, name):
    return json.loads(cluster.cli("session", "info", name, "-o", "json").stdout)


def lines(path):
    return path.read_text().split() if path.exists() else []


@pytest.mark.gate
def test_a_program_that_fails_is_run_again(cluster, tmp_path):
    ran = tmp_path / "ran"
    done = cluster.cli("run", *SMALL, "--name", "again", "--retry", "3", "--retry-delay", "0.2s",
                       "--summary",
                       "--resume-command", f"echo resumed $ALIQUOT_ATTEMPT; echo r >> {ran}; "
                       "test $ALIQUOT_ATTEMPT = 2 || exit 4", "--",
                       f"echo began $ALIQUOT_ATTEMPT; echo b >> {ran}; exit 3")
    assert done.returncode == 0, done
    assert lines(ran) == ["b", "r", "r"] and "Time: " in done.stderr
    session = shown(cluster, "again")
    assert session["result"] == "SUCCESS" and session["retry"]["used"] == 2
    assert session["retry"]["on"] == "failure,oom,node-lost,start"
    assert [(one["attempt"], one["exit_code"], one["reason"], one["agent"])
            for one in session["attempts"]] == [
                (1, 3, "task-failed", "agent"), (2, 4, "task-failed", "agent"),
                (3, 0, "task-finished", "agent")]
    assert all(one["started_at"] < one["ended_at"] for one in session["attempts"])
    assert 0 < session["summary"]["wall_sec"] < 60 and session["summary"]["cpu_asked"] == 1
    assert session["attempts"][0]["used"]["mem_asked"] == 32 << 20
    for number, want in ((1, "began 0"), (2, "resumed 1"), (3, "resumed 2")):
        assert cluster.cli("logs", "--attempt", str(number), "again").stdout == want + "\n"
    wrong = cluster.cli("logs", "--attempt", "4", "again")
    assert wrong.returncode and "has no attempt 4; its last is 3" in wrong.stderr
    table = cluster.cli("session", "info", "again").stdout
    assert "ATTEMPT" in table and table.count("task-failed") == 2


def test_a_delay_is_kept_when_the_manager_is_killed(cluster, tmp_path):
    ran = tmp_path / "ran"
    cluster.cli("run", *SMALL, "-d", "--name", "later", "--retry", "1", "--retry-delay", "6s", "--",
                f"date +%s.%N >> {ran}; exit 1")
    wait_for(lambda: len(lines(ran)) == 1 and shown(cluster, "later")["status"] == "PENDING")
    said = cluster.cli("session", "why", "later").stdout
    assert "Attempt 1 of 2 failed (its program failed on agent 'agent')" in said, said
    cluster.programs["manager"].kill()
    cluster.start_manager()
    wait_status(cluster.client(), "later", "TERMINATED")
    first, second = map(float, lines(ran))
    assert 6 <= second - first < 20
    assert [one["exit_code"] for one in shown(cluster, "later")["attempts"]] == [1, 1]


def test_what_is_refused_names_the_field(cluster):
    client = cluster.client()
    for more, field in (({"retry": 101}, "retry"), ({"retry_on": "oom"}, "retry"),
                        ({"retry": 1, "retry_on": "oom,fail"}, "retry_on"),
                        ({"retry": 1, "retry_delay": "2d"}, "retry_delay"),
                        ({"retry": 1, "retry_factor": 11}, "retry_factor")):
        reply = client.post("/session", batch("never", "true", **more))
        assert reply.status == 400 and list(reply.json["data"]) == [field], (more, reply)
    done = cluster.cli("session", "create", *SMALL, "-t", "notebook", "--retry", "1")
    assert done.returncode and "retry" in done.stderr and "batch sessions only" in done.stderr


def test_a_lost_agent_is_not_waited_for(cluster, tmp_path):
    ran = tmp_path / "ran"
    set_group(cluster, agent_loss_policy="wait", agent_loss_grace_sec=0)
    cluster.start_agent("other", ALIQUOT_RESOURCE_CPUS="1")
    cluster.cli("run", *SMALL, "-d", "--name", "moved", "--retry", "1", "--retry-delay", "0.2s",
                "--agent", "agent", "--prefer-agents", "--",
                f"echo $ALIQUOT_ATTEMPT >> {ran}; test $ALIQUOT_ATTEMPT = 1 || sleep 100")
    wait_for(lambda: lines(ran) == ["0"])
    cluster.programs["agent"].kill()
    wait_status(cluster.client(), "moved", "TERMINATED")
    assert [(one["agent"], one["reason"]) for one in shown(cluster, "moved")["attempts"]] == [
        ("agent", "agent-lost"), ("other", "task-finished")]
    cluster.start_agent()
    time.sleep(1)
    assert lines(ran) == ["0", "1"]


# ---- signals before the end ----

WATCH = ("trap 'echo USR1 >> {0}' USR1; trap 'echo USR2 >> {0}' USR2; trap 'echo TERM >> {0}; exit 5'"
         " TERM; echo began >> {0}; while :; do sleep 0.05; done")


def test_signals_before_and_at_the_time_limit(cluster, tmp_path):
    got = tmp_path / "got"
    done = cluster.cli("run", *SMALL, "--name", "late", "--timeout", "3s", "--signal", "USR2@2",
                       "--checkpoint-signal", "USR1", "--grace", "1s", "--", WATCH.format(got))
    assert done.returncode == 5, done
    assert lines(got) == ["began", "USR2", "USR1", "TERM"]
    session = shown(cluster, "late")
    assert session["reason"] == "task-timeout" and session["result"] == "FAILURE"
    begin, end = (session["attempts"][0][key] for key in ("started_at", "ended_at"))
    assert begin < end


def test_a_preempted_session_goes_on_from_its_checkpoint(cluster, tmp_path):
    """Also when the manager and the agent are killed while it has its time."""
    got = tmp_path / "got"
    set_group(cluster, preemption={"enabled": True})
    cluster.cli("run", "-d", "-r", "cpu=1", "-r", "mem=32m", "--preemptible", "--name", "victim",
                "--checkpoint-signal", "USR1", "--grace", "4s", "--resume-command",
                f"echo resumed >> {got}", "--", WATCH.format(got))
    wait_for(lambda: lines(got) == ["began"])
    cluster.cli("run", "-d", "-r", "cpu=2", "-r", "mem=32m", "--job-priority", "5",
                "--name", "urgent", "--", f"echo urgent >> {got}")
    wait_for(lambda: lines(got) == ["began", "USR1"])
    began = time.monotonic()
    cluster.programs["agent"].kill()
    cluster.programs["manager"].kill()
    cluster.start_manager()
    cluster.start_agent()
    wait_status(cluster.client(), "victim", "TERMINATED")
    assert lines(got) == ["began", "USR1", "TERM", "urgent", "resumed"]
    assert time.monotonic() - began < 40
    assert [one["reason"] for one in shown(cluster, "victim")["attempts"]] == [
        "preempted", "task-finished"]
