# SPDX-License-Identifier: Apache-2.0
"""Nobody is root on a node by a session without an image, unless its administrator wrote so."""

import os

import pytest

from cluster import ENDED, Cluster, batch, interactive, wait_status
from runtimes import SETTINGS, settings_of

pytestmark = pytest.mark.gate

if os.geteuid() != 0:
    pytest.skip("needs root: only then is the agent root", allow_module_level=True)


def shown_of(user, **settings):
    """What becomes of a session without an image, of root's agent with [process] user."""
    with Cluster(**SETTINGS, **settings) as cluster:
        del cluster.env["ALIQUOT_PROCESS_USER"]
        cluster.env.update({"ALIQUOT_PROCESS_USER": user} if user else {})
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        made = client.post("/session", {**batch("who", "id -un"), "image": "process"})
        assert made.status == 201, made
        shown = wait_status(client, made.json["sessionId"], *ENDED)
        log = client.get(f"/session/{made.json['sessionId']}/logs").json["result"]["logs"]
        cluster.check_nothing_left()
        cluster.stop()
        return shown, log


def test_a_root_agent_offers_none_by_itself():
    shown, log = shown_of(None, ALIQUOT_RUNTIME_DRIVER="auto")
    assert shown["status"] == "ERROR" and log == "", shown
    assert "[process] user" in shown["text"], shown


def test_with_a_user_they_are_that_users():
    shown, log = shown_of("nobody", ALIQUOT_RUNTIME_DRIVER="auto")
    assert (shown["result"], log) == ("SUCCESS", "nobody\n"), shown


def test_a_root_agent_for_processes_only_does_not_start_without_a_user():
    with Cluster(**SETTINGS) as cluster:
        del cluster.env["ALIQUOT_PROCESS_USER"]
        done = cluster.run("aliquot-agent", "--state", cluster.folder / "agent")
        assert done.returncode != 0 and "set [process] user" in done.stderr, done


# Ids of kernels are in the command lines of the node's processes, which everybody on it may read.
LOOK = """for kernel in $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' |
                       grep -oE '^FOLDER/.*/kernels/[0-9a-f-]{36}' | sort -u); do
    echo found; cat $kernel/config/environ.txt $kernel/config/*/id_*
done 2>/dev/null"""


def test_they_read_nothing_of_containers():
    with Cluster(**{**settings_of("crun"), "ALIQUOT_RUNTIME_DRIVER": "auto",
                    "ALIQUOT_PROCESS_USER": "nobody"}) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        body = interactive("victim", image="host")
        body["config"]["environ"] = {"TOKEN": "of another tenant"}
        victim = client.post("/session", body).json["sessionId"]
        wait_status(client, victim, "RUNNING")
        look = LOOK.replace("FOLDER", str(cluster.folder))
        reader = client.post("/session", {**batch("reader", look), "image": "process"})
        shown = wait_status(client, reader.json["sessionId"], *ENDED)
        log = client.get(f"/session/{reader.json['sessionId']}/logs").json["result"]["logs"]
        assert log.count("found") == 2 and "=reader" in log, (shown, log)  # it reads what is its own
        assert "of another tenant" not in log and "PRIVATE KEY" not in log, log
        client.send("DELETE", f"/session/{victim}?forced=true")
        wait_status(client, victim, *ENDED)
        cluster.check_nothing_left()
        cluster.stop()
