# SPDX-License-Identifier: Apache-2.0
"""Sessions of several kernels of which one fails or is lost: what ends, what is said of it and how
soon, and that nothing of it runs twice."""

import re
import signal
import time

import pytest

from cluster import ENDED, Cluster, batch, wait_for, wait_status
from ports import free_port
from test_scheduling import set_group
from world import processes_of

pytestmark = pytest.mark.engines

HASTY = {"ALIQUOT_AGENTS_HEARTBEAT": "1s", "ALIQUOT_AGENTS_TIMEOUT": "3s",
         "ALIQUOT_MANAGER_HEARTBEAT": "0.2s", "ALIQUOT_SESSIONS_KILL_GRACE": "1s"}
SMALL = ("-r", "cpu=1", "-r", "mem=32m")
SOON = 10  # seconds until the user knows


@pytest.fixture
def cluster():
    """One agent for four kernels."""
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", **HASTY) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture
def nodes():
    """Three agents with room for one kernel each."""
    with Cluster(ALIQUOT_RESOURCE_CPUS="1", **HASTY) as cluster:
        cluster.start_manager()
        for name in ("a1", "a2", "a3"):
            cluster.start_agent(name)
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def submit(client, command, size=3, **more):
    reply = client.post("/session", batch("gang", command, clusterSize=size,
                                          **{"clusterMode": "multi-node", **more}))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def why(client, session):
    return client.get(f"/aliquot/v1/sessions/{session}/why").json


def kernels_of(shown):
    return {kernel["hostname"]: kernel for kernel in shown["kernels"]}


# ---- a kernel fails ----

@pytest.mark.parametrize("act, code, words", [
    ("exit 3", 3, "its program ended with exit status 3."),
    ("kill -9 $$", 137, "its program was killed by signal 9 (Killed)."),
    ("exit 255", 255, "its program ended with exit status 255."),
])
@pytest.mark.parametrize("rank, kernel", [(0, "main1"), (2, "sub2")])
def test_the_first_failure_ends_a_batch_session(cluster, act, code, words, rank, kernel):
    """The command line says which kernel it was, where, and exits as it did."""
    begin = time.monotonic()
    done = cluster.cli("run", *SMALL, "--cluster", "3", "--name", "gang", "--",
                       f"if [ $RANK = {rank} ]; then sleep 1; {act}; fi; sleep 100")
    assert time.monotonic() - begin < SOON
    said = f"Kernel {kernel} on agent 'agent' failed: {words}"
    assert done.returncode == code and said in done.stderr, done
    client = cluster.client()
    shown = client.get("/aliquot/v1/sessions/gang").json
    assert (shown["result"], shown["reason"]) == ("FAILURE", "task-failed"), shown
    assert shown["failure"] == {"kernel": kernel, "agent": "agent", "exit_code": code}, shown
    assert why(client, "gang")["text"] == said
    assert said in cluster.log_of("manager")
    others = [one["exit_code"] for name, one in kernels_of(shown).items() if name != kernel]
    assert others == [143, 143], shown


def test_the_others_may_go_on(cluster):
    go = cluster.folder / "go"
    client = cluster.client()
    session = submit(client, f"[ $RANK = 0 ] || exit 3; until test -e {go}; do sleep 0.1; done",
                     on_failure="continue")
    wait_for(lambda: [kernel["status"] for kernel in client.get(
        f"/aliquot/v1/sessions/{session}").json["kernels"]].count("TERMINATED") == 2, 30, "their end")
    wait_for(lambda: "RUNNING_DEGRADED" in [item["status"] for item in client.get(
        f"/aliquot/v1/sessions/{session}/history").json["items"]], 30, "the session to note it")
    go.touch()
    shown = wait_status(client, session, *ENDED)
    assert (shown["result"], shown["failure"]) == ("SUCCESS", None), shown


def test_an_exit_with_0_is_no_failure(cluster):
    client = cluster.client()
    session = submit(client, "[ $RANK = 0 ] || exit 0; sleep 2")
    shown = wait_status(client, session, *ENDED)
    assert (shown["result"], shown["failure"]) == ("SUCCESS", None), shown


def test_words_that_are_not_known(cluster):
    done = cluster.cli("run", *SMALL, "--on-failure", "ignore", "--", "true")
    assert done.returncode != 0 and "must be end or continue, not 'ignore'" in done.stderr, done
    done = cluster.cli("run", *SMALL, "--on-node-loss", "wait", "--", "true")
    assert done.returncode != 0 and "must be end, restart-kernel or restart-all" in done.stderr, done


def test_main1_ends_while_others_run(cluster):
    """They get the signal and the grace, and then they are killed; the session has succeeded."""
    client = cluster.client()
    session = submit(client, "[ $RANK = 0 ] && exec sleep 1\n"
                     "[ $RANK = 1 ] && trap '' TERM\nwhile :; do sleep 0.1; done")
    shown = wait_status(client, session, *ENDED, seconds=20)
    codes = {name: kernel["exit_code"] for name, kernel in kernels_of(shown).items()}
    assert codes == {"main1": 0, "sub1": 137, "sub2": 143}, shown
    assert (shown["result"], shown["reason"]) == ("SUCCESS", "task-finished"), shown


# ---- the start ----

@pytest.mark.parametrize("on_failure", ("end", "continue"))
def test_a_bootstrap_script_fails_in_one(cluster, on_failure):
    """No program of main1 starts: it would wait for sub1 in vain."""
    client = cluster.client()
    ran = cluster.folder / "ran"
    session = submit(client, f"echo $RANK >> {ran}; sleep 100", on_failure=on_failure,
                     bootstrap_script="[ $RANK != 1 ] || { echo no wheel; exit 7; }")
    shown = wait_status(client, session, *ENDED, seconds=SOON)
    assert (shown["result"], shown["reason"]) == ("FAILURE", "bootstrap-failed"), shown
    assert shown["failure"] == {"kernel": "sub1", "agent": "agent", "exit_code": 7}, shown
    text = why(client, session)["text"]
    assert text.startswith("In sub1 on agent 'agent' the bootstrap script failed") and "no wheel" in text
    assert not ran.exists() or "0" not in ran.read_text().split()


def test_an_image_is_not_there(cluster):
    """The agent says what failed while it tries again, and at the end everything that says why names
    kernel, node and cause."""
    client = cluster.client()
    registry = f"127.0.0.1:{free_port()}"
    cluster.programs.pop("agent").stop()
    cluster.start_agent(ALIQUOT_RUNTIME_DRIVER="auto", ALIQUOT_IMAGE_INSECURE=registry)
    session = submit(client, "sleep 100", image=f"{registry}/no/image:1", clusterMode="single-node")
    wait_for(lambda: re.search(r"^sub1 on agent 'agent': image .* could not be fetched .*; "
                               "retrying$", why(client, session)["text"] or "", re.M),
             SOON, lambda: f"the first error, not {why(client, session)}")
    shown = wait_status(client, session, *ENDED)
    said = re.match("Agent 'agent' could not start (main1|sub1|sub2): image "
                    f"'{registry}/no/image:1' could not be fetched", why(client, session)["text"])
    assert said and said.group() in cluster.log_of("manager"), why(client, session)
    past = client.get(f"/aliquot/v1/sessions/{session}/history").json["scheduling"]
    [detail] = [item["detail"] for item in past if item["kind"] == "give-up"]
    assert (detail["kernel"], detail["agent"]) == (said.group(1), "agent"), past
    assert shown["status"] == "ERROR", shown


# ---- a node is lost ----

def silence(cluster, session):
    """The agent of sub1 falls silent until it counts as lost; its name."""
    client = cluster.client()
    shown = wait_status(client, session, "RUNNING")
    agent = kernels_of(shown)["sub1"]["agent"]
    cluster.programs[agent].signal(signal.SIGSTOP)
    wait_for(lambda: client.get(f"/aliquot/v1/agents/{agent}").json["status"] == "LOST", 30, "loss")
    return agent


def test_a_lost_node_ends_the_session(nodes):
    client = nodes.client()
    set_group(nodes, agent_loss_policy="wait", agent_loss_grace_sec=0)
    session = submit(client, "sleep 100", on_node_loss="end")
    agent = silence(nodes, session)
    shown = wait_status(client, session, *ENDED, seconds=SOON)
    assert (shown["result"], shown["reason"]) == ("FAILURE", "agent-lost"), shown
    assert why(client, session)["text"] == f"Agent '{agent}' was lost with sub1 of this session."
    nodes.programs[agent].signal(signal.SIGCONT)
    wait_for(lambda: nodes.agent(agent), 30, "the agent to be back")


def test_a_lost_node_restarts_all(nodes):
    """Cut off, a node runs on; once it is back, nothing of the former attempt does."""
    client = nodes.client()
    ran = nodes.folder / "ran"
    set_group(nodes, agent_loss_policy="wait", agent_loss_grace_sec=0)
    session = submit(client, f"echo $RANK $$ >> {ran}; exec sleep 1234", on_node_loss="restart-all")
    wait_for(lambda: ran.exists() and len(ran.read_text().split("\n")) == 4, 30, "three programs")
    agent = silence(nodes, session)
    nodes.start_agent("a4")
    wait_for(lambda: len(ran.read_text().split("\n")) == 7, 30, "three programs again")
    shown = wait_status(client, session, "RUNNING")
    assert agent not in [kernel["agent"] for kernel in shown["kernels"]], shown
    nodes.programs[agent].signal(signal.SIGCONT)
    again = {line.split()[1] for line in ran.read_text().splitlines()[3:]}

    all_of_them = {line.split()[1] for line in ran.read_text().splitlines()}

    def running():
        return all_of_them & set(map(str, processes_of(nodes.folder)))
    wait_for(lambda: running() == again, 30, lambda: f"{running()} to be {again}")
    assert client.get(f"/aliquot/v1/sessions/{session}").json["status"] == "RUNNING"
    client.send("DELETE", f"/session/{session}?forced=true")
    wait_status(client, session, *ENDED)
