# SPDX-License-Identifier: Apache-2.0
"""What every way to run a kernel does, whether it is a process or a container."""

import json
import os
import re
import signal

import pytest

from cluster import ENDED, Cluster, interactive, wait_for, wait_status
from runtimes import RUNTIMES, Session, exit_code, run, settings_of, wait_for_exit
from world import processes_of


@pytest.fixture(params=RUNTIMES, scope="module")
def cluster(request):
    with Cluster(**settings_of(request.param)) as cluster:
        cluster.runtime = request.param
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


# ---- ends ----

@pytest.mark.gate
def test_success(cluster):
    shown, log = run(cluster, "echo hello; echo there >&2")
    assert (shown["status"], shown["result"], shown["reason"]) == (
        "TERMINATED", "SUCCESS", "task-finished"), shown
    assert sorted(log.split()) == ["hello", "there"]


@pytest.mark.gate
@pytest.mark.parametrize("code", (1, 3, 77, 255))
def test_exit_code(cluster, code):
    shown, _ = run(cluster, f"exit {code}")
    assert (shown["result"], shown["reason"]) == ("FAILURE", "task-failed"), shown
    assert exit_code(shown) == code


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL))
def test_signal_of_its_own(cluster, number):
    shown, _ = run(cluster, f"kill -{number.value} $$")
    assert (shown["reason"], exit_code(shown)) == ("task-failed", 128 + number), shown


def test_program_that_is_not_there(cluster):
    shown, log = run(cluster, "/no/such/program")
    assert exit_code(shown) == 127, (shown, log)


def test_children_end_with_it(cluster):
    shown, _ = run(cluster, "sleep 1000 & (setsid sleep 1000 &) ; exit 0")
    assert shown["result"] == "SUCCESS"


# ---- being ended ----

def test_asked_to_end(cluster):
    session = Session(cluster, "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.1; done")
    session.wait_log("ready")
    session.end()
    assert session.wait()["reason"] == "user-requested"
    assert "bye" in session.log


def test_minds_no_sigterm(cluster):
    session = Session(cluster, "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    session.wait_log("ready")
    session.end()
    shown = session.wait()
    assert shown["reason"] == "user-requested" and exit_code(shown) == 137, shown


def test_forced(cluster):
    session = Session(cluster, "trap 'echo asked' TERM; echo ready; while :; do sleep 0.1; done")
    session.wait_log("ready")
    session.end(forced=True)
    session.wait()
    assert "asked" not in session.log


@pytest.mark.gate
def test_time_limit(cluster):
    session = Session(cluster, "echo ready; sleep 1000", batch_timeout=1)
    assert session.wait()["reason"] == "task-timeout"


# ---- surroundings ----

@pytest.mark.gate
def test_environment(cluster):
    _, log = run(cluster, "env; pwd; echo end > $HOME/file; cat file",
                 config={"environ": {"MINE": "a b=c", "PATH_TO": "/x"},
                         "resources": {"cpu": "1", "mem": "64m"}})
    lines = log.splitlines()
    assert {"MINE=a b=c", "PATH_TO=/x", "_BACKEND_BATCH_MODE=1", "BACKENDAI_CLUSTER_ROLE=main",
            "BACKENDAI_CLUSTER_HOST=main1"} <= set(lines), log
    home = dict(line.split("=", 1) for line in lines if "=" in line)["HOME"]
    assert home in lines and lines[-1] == "end"


def test_standard_input_is_empty(cluster):
    assert run(cluster, "cat; echo end")[1] == "end\n"


@pytest.mark.gate
def test_much_output(cluster):
    _, log = run(cluster, "seq 20000")
    assert log == "".join(f"{n}\n" for n in range(1, 20001))


def test_output_and_errors_stay_in_order(cluster):
    """They are one log, as on a terminal: nothing comes late or in the middle of a line."""
    _, log = run(cluster, "for i in $(seq 500); do printf out >&1; printf ' and ' >&2; "
                          "echo $i >&1; echo error $i >&2; done")
    assert log == "".join(f"out and {n}\nerror {n}\n" for n in range(1, 501))


def test_lines_have_times(cluster):
    session = Session(cluster, "echo one; echo two >&2")
    session.wait()
    reply = session.client.get(f"/aliquot/v1/sessions/{session.id}/logs?timestamps=true&since=1h")
    line = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z "
    assert re.fullmatch(f"{line}(one\n{line}two|two\n{line}one)\n", reply.body.decode()), reply


def test_output_that_is_not_text(cluster):
    session = Session(cluster, r"printf '\377\000\376'")
    session.wait()
    reply = session.client.get(f"/aliquot/v1/sessions/{session.id}/logs", timeout=20)
    assert reply.body == b"\xff\x00\xfe"


# ---- restarts ----

def test_restart_keeps_the_folder(cluster):
    client = cluster.client()
    body = interactive(f"again-{cluster.runtime}", image="host",
                       bootstrap_script="echo x >> runs; cat runs; echo .")
    session = client.post("/session", body).json["sessionId"]
    wait_status(client, session, "RUNNING")

    def log():
        return client.get(f"/aliquot/v1/sessions/{session}/logs", timeout=20).body.decode()
    wait_for(lambda: "x" in log(), 30, "the first run")
    assert client.send("PATCH", "/session/" + session).status in (200, 204)
    wait_for(lambda: log().replace("\r", "").startswith("x\nx\n"), 60, lambda: log())
    client.send("DELETE", f"/session/{session}?forced=true")
    wait_status(client, session, *ENDED)


@pytest.mark.gate
def test_agent_is_killed(cluster):
    """What runs goes on, with its log, its exit code and its resources."""
    session = Session(cluster, "exec 2> /dev/null; trap 'echo two; exit 9' TERM; echo one; "
                               "while :; do sleep 0.1; done")
    session.wait_log("one")
    session.wait("RUNNING")
    held = cluster.agent()["occupied_slots"]
    cluster.programs["agent"].kill()
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    assert cluster.agent()["occupied_slots"] == held and held["cpu"] == "1"
    session.end()
    shown = session.wait()
    assert exit_code(shown) == 9 and session.log == "one\ntwo\n", shown


def test_agent_is_away_while_it_ends(cluster):
    session = Session(cluster, "echo one; sleep 1; exit 8")
    session.wait_log("one")
    kernel = session.kernel["id"]
    cluster.programs["agent"].kill()
    wait_for_exit(cluster, kernel)
    cluster.programs["agent"].start()
    assert exit_code(session.wait()) == 8


def test_monitor_is_killed(cluster):
    """Its program goes with it, and the session says so."""
    session = Session(cluster, "echo ready; sleep 1000")
    session.wait_log("ready")
    kernel = session.kernel["id"]
    monitors = [pid for pid, command in processes_of(cluster.folder).items()
                if "aliquot-monitor" in command and kernel in command]
    assert len(monitors) == 1
    os.kill(monitors[0], signal.SIGKILL)
    assert session.wait()["reason"] == "monitor-lost"
    cluster.check_nothing_left()


def test_agent_and_monitor_are_killed(cluster):
    session = Session(cluster, "echo ready; sleep 1000")
    session.wait_log("ready")
    kernel = session.kernel["id"]
    cluster.programs["agent"].kill()
    for pid, command in processes_of(cluster.folder).items():
        if "aliquot-monitor" in command and kernel in command:
            os.kill(pid, signal.SIGKILL)
    cluster.programs["agent"].start()
    assert session.wait()["reason"] == "monitor-lost"
    cluster.check_nothing_left()


@pytest.mark.gate
def test_many_at_once(cluster):
    sessions = [Session(cluster, f"echo {n}; exit {n}") for n in range(12)]
    assert [exit_code(session.wait()) for session in sessions] == list(range(12))
    assert [session.log for session in sessions] == [f"{n}\n" for n in range(12)]


@pytest.mark.gate
def test_resources_are_written_down(cluster):
    path = "/home/config" if cluster.runtime != "process" else "../config"
    _, log = run(cluster, f"cat {path}/resource.txt; echo; cat {path}/environ.txt")
    assert re.search(r"^CPU_SHARES=\d:1$", log, re.M), log
    assert json.loads(re.search(r"^SLOTS=(.*)$", log, re.M).group(1)) == {
        "cpu": "1", "mem": str(64 << 20)}
    assert "BACKENDAI_KERNEL_ID=" in log
