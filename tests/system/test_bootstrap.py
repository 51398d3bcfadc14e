# SPDX-License-Identifier: Apache-2.0
"""A session runs once its bootstrap script has succeeded; until then it is CREATING."""

import concurrent.futures
import contextlib
import os
import pathlib
import signal

import pytest

from cluster import ENDED, Cluster, interactive, wait_for, wait_status
from runtimes import RUNTIMES, Session, exit_code, settings_of

# A script that ends when it is told to, by SIGUSR1.
WAITS = "trap 'exit 0' USR1; echo 'fetching; x'; while :; do sleep 0.05; done"


@pytest.fixture(params=RUNTIMES, scope="module")
def cluster(request):
    with Cluster(**settings_of(request.param)) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def find_script(kernel):
    """The process that runs the script, not the shell that waits for it."""
    command = b"\0".join((b"/bin/sh", b"-c", WAITS.encode(), b""))
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if ((proc / "cmdline").read_bytes() == command
                    and f"ALIQUOT_KERNEL_ID={kernel}".encode() in (proc / "environ").read_bytes()):
                return int(proc.name)
    return None


def begin(cluster, command="echo program", **more):
    """A session whose script runs, and has written."""
    session = Session(cluster, command, bootstrap_script=WAITS, **more)
    shown = session.wait("PREPARING")
    assert shown["kernels"][0]["status"] == "PREPARING", shown
    session.wait_log("fetching; x")
    return session


def finish_script(session):
    kernel = session.wait("PREPARING")["kernels"][0]["id"]
    wait_for(lambda: find_script(kernel), 30, "the script")
    os.kill(find_script(kernel), signal.SIGUSR1)


def statuses(session):
    reply = session.client.get(f"/aliquot/v1/sessions/{session.id}/history")
    return [item["status"] for item in reply.json["items"]]


@pytest.mark.gate
def test_a_batch_program_starts_after_it(cluster):
    session = begin(cluster)
    assert "program" not in session.log
    finish_script(session)
    assert session.wait()["result"] == "SUCCESS"
    assert session.log.split() == ["fetching;", "x", "program"]
    assert statuses(session).index("CREATING") < statuses(session).index("RUNNING")


def test_commands_wait_for_it(cluster):
    client = cluster.client()
    body = interactive("boot-i", image="host", bootstrap_script=WAITS)
    session = client.post("/session", body).json["sessionId"]
    kernel = wait_status(client, session, "PREPARING")["kernels"][0]["id"]
    wait_for(lambda: find_script(kernel), 30, "the script")
    why = client.get(f"/aliquot/v1/sessions/{session}/why").json
    assert "bootstrap script" in why["text"], why
    with concurrent.futures.ThreadPoolExecutor() as pool:
        done = pool.submit(cluster.cli, "exec", "boot-i", "echo", "in")
        with pytest.raises(concurrent.futures.TimeoutError):
            done.result(1)
        os.kill(find_script(kernel), signal.SIGUSR1)
        assert done.result(60).stdout == "in\n", done
    client.send("DELETE", f"/session/{session}?forced=true")
    wait_status(client, session, *ENDED)


@pytest.mark.parametrize("forced", (False, True))
def test_it_can_be_ended(cluster, forced):
    session = begin(cluster)
    session.end(forced)
    shown = session.wait()
    assert (shown["status"], shown["reason"]) == (
        "TERMINATED", "force-terminated" if forced else "user-requested"), shown
    assert "RUNNING" not in statuses(session) and "program" not in session.log


def test_it_fails(cluster):
    session = Session(cluster, "echo program", bootstrap_script="echo no host >&2; exit 6")
    shown = session.wait()
    assert (shown["result"], shown["reason"], exit_code(shown)) == (
        "FAILURE", "bootstrap-failed", 6), shown
    assert shown["text"].endswith("with exit status 6; its last lines:\nno host"), shown["text"]
    assert "RUNNING" not in statuses(session)
    assert "the bootstrap script failed with exit status 6" in session.log


def test_the_agent_is_killed_meanwhile(cluster):
    session = begin(cluster)
    cluster.programs["agent"].kill()
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    assert session.wait("PREPARING", "RUNNING", *ENDED)["status"] == "PREPARING"
    finish_script(session)
    assert session.wait()["result"] == "SUCCESS"
    assert session.log.split() == ["fetching;", "x", "program"]


def test_the_manager_is_killed_meanwhile(cluster):
    session = begin(cluster)
    cluster.programs["manager"].kill()
    cluster.programs["manager"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    finish_script(session)
    assert session.wait()["result"] == "SUCCESS"


def test_the_monitor_is_killed_meanwhile(cluster):
    session = begin(cluster)
    kernel = session.wait("PREPARING")["kernels"][0]["id"]
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (proc / "cmdline").read_bytes()
            if b"aliquot-monitor" in command and kernel.encode() in command:
                os.kill(int(proc.name), signal.SIGKILL)
    shown = session.wait()
    assert (shown["result"], shown["reason"]) == ("FAILURE", "monitor-lost"), shown
    assert find_script(kernel) is None and "program" not in session.log


def test_it_runs_again_after_a_restart(cluster):
    client = cluster.client()
    body = interactive("boot-r", image="host", bootstrap_script=WAITS)
    session = client.post("/session", body).json["sessionId"]
    for status in ("PREPARING", "RESTARTING"):
        kernel = wait_status(client, session, status)["kernels"][0]["id"]
        wait_for(lambda: find_script(kernel), 30, "the script")
        os.kill(find_script(kernel), signal.SIGUSR1)
        wait_status(client, session, "RUNNING")
        if status == "PREPARING":
            assert client.send("PATCH", "/session/" + session).status in (200, 204)
    client.send("DELETE", f"/session/{session}?forced=true")
    wait_status(client, session, *ENDED)


TEMPLATE = """\
kind: task_template
api_version: v1
metadata: {name: with-input}
spec:
  session_type: batch
  kernel:
    image: host
    run: {bootstrap: "cat; echo script", startup: "cat"}
"""


def test_the_program_has_its_input_after_it(cluster):
    """The script has none, so that what is given is the program's."""
    reply = cluster.client().post("/template/session", {"payload": TEMPLATE})
    assert reply.status == 200, reply
    done = cluster.cli("run", "--template", "with-input", "--", "cat", says="given\n")
    assert done.stdout.replace("\r", "") == "script\ngiven\n", done


@pytest.mark.parametrize("runtime", RUNTIMES[:2])
def test_a_script_that_takes_too_long_is_ended(runtime):
    with Cluster(**settings_of(runtime), ALIQUOT_PROCESS_BOOTSTRAP_TIMEOUT="1s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        session = Session(cluster, "echo program", bootstrap_script=WAITS)
        shown = session.wait()
        assert (shown["result"], shown["reason"]) == ("FAILURE", "bootstrap-timeout"), shown
        assert "took longer than" in shown["text"] and "fetching; x" in shown["text"], shown
        assert "RUNNING" not in statuses(session) and "program" not in session.log
        cluster.check_nothing_left()
        cluster.stop()
