# SPDX-License-Identifier: Apache-2.0
"""Agents are stopped and restarted by the systemctl of their machine, at the manager's command."""

import pytest

from cluster import Cluster, batch, wait_for, wait_status

UNIT = "aliquot-agent.service"
# It does what systemd would do: the unit's process gets SIGTERM.
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "{folder}/asked"
case "$*" in
*show*) printf 'NRestarts=2\\nActiveState=active\\nSubState=running\\n' ;;
*) test -e "{folder}/broken" && {{ echo "Access denied" >&2; exit 4; }}
   kill -TERM "$(cat "{folder}/pid")" ;;
esac
"""
WATCHER = "/resource/watcher"


@pytest.fixture(name="served")
def served_fixture():
    with Cluster() as cluster:
        systemctl = cluster.folder / "systemctl"
        systemctl.write_text(SYSTEMCTL.format(folder=cluster.folder))
        systemctl.chmod(0o755)
        cluster.start_manager()
        cluster.start_agent(ALIQUOT_SERVICE_UNIT=UNIT, ALIQUOT_SERVICE_SYSTEMCTL=systemctl)
        (cluster.folder / "pid").write_text(str(cluster.programs["agent"].pid))
        yield cluster, cluster.client()
        cluster.stop()


def asked(cluster):
    """The last words that systemctl was given."""
    return (cluster.folder / "asked").read_text().splitlines()[-1].split()


def test_its_state(served):
    cluster, admin = served
    shown = admin.get(WATCHER + "?agent_id=agent").json
    assert shown == {"message": f"agent agent runs, {UNIT}", "agent": "agent", "unit": UNIT,
                     "state": {"NRestarts": "2", "ActiveState": "active", "SubState": "running"}}
    assert asked(cluster)[-1] == UNIT and "show" in asked(cluster)


@pytest.mark.parametrize("action, word", [("restart", "restarted"), ("stop", "stopped")])
def test_sessions_outlive_it(served, action, word):
    cluster, admin = served
    session = admin.post("/session", batch("stays", "sleep 600")).json["sessionId"]
    wait_status(admin, session, "RUNNING")
    program = cluster.programs["agent"]
    program.may_end = True
    done = cluster.cli("agent", action, "agent", *(["--yes"] if action == "stop" else []))
    assert done.returncode == 0 and f"agent agent is {word}" in done.stderr, done
    assert asked(cluster)[-3:] == [action, "--", UNIT]
    assert program.process.wait(60) == 0
    wait_for(lambda: not admin.get("/aliquot/v1/agents/agent").json["connected"], 60, "its end")
    gone = [admin.get(WATCHER + "?agent_id=agent"),
            admin.post(WATCHER + "/agent/start", {"agent_id": "agent"})]
    for reply in gone:
        assert reply.status == 503 and "on its machine" in reply.json["msg"], reply
    program.start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    assert admin.get("/aliquot/v1/sessions/stays").json["status"] == "RUNNING"
    assert admin.delete("/session/stays?forced=true").status == 200


def test_what_systemctl_refuses_is_said(served):
    cluster, admin = served
    (cluster.folder / "broken").touch()
    refused = admin.post(WATCHER + "/agent/restart", {"agent_id": "agent"})
    assert refused.status == 503 and "Access denied" in refused.json["msg"], refused
    assert cluster.agent()["connected"]
