# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI: the license, and agents through their watchers."""

import pytest

from cluster import Cluster, wait_for

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")
UNIT = "aliquot-agent.service"
SYSTEMCTL = """#!/bin/sh
# It stops and restarts as systemd would: by SIGTERM.
case "$*" in *show*) echo ActiveState=active ;; *) kill -TERM "$(cat "${0%/*}/pid")" ;; esac
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        systemctl = made.folder / "systemctl"
        systemctl.write_text(SYSTEMCTL)
        systemctl.chmod(0o755)
        made.start_manager()
        made.start_agent(ALIQUOT_SERVICE_UNIT=UNIT, ALIQUOT_SERVICE_SYSTEMCTL=systemctl)
        yield made
        made.stop()


@pytest.mark.backendai("admin license show")
def test_the_license(bai):
    assert "Apache-2.0" in bai.does("admin", "license", "show")


@pytest.mark.backendai("admin watcher status", "admin watcher agent-start",
                       "admin watcher agent-restart", "admin watcher agent-stop")
def test_watchers(cluster, bai):
    program = cluster.programs["agent"]
    program.may_end = True
    assert UNIT in bai.does("admin", "watcher", "status", "agent")
    assert "agent agent runs" in bai.does("admin", "watcher", "agent-start", "agent")
    for action in ("restart", "stop"):
        (cluster.folder / "pid").write_text(str(program.pid))
        assert "agent agent is" in bai.does("admin", "watcher", "agent-" + action, "agent")
        assert program.process.wait(60) == 0
        program.start()
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
