# SPDX-License-Identifier: Apache-2.0
"""Manager, agent or monitor is killed at each step of a session's end: the end is known with the
values that its program has handed on, or not at all."""

import contextlib

import pytest

from cluster import GONE, Cluster, batch, wait_for

COMMAND = "echo 'answer=42' >>$ALIQUOT_OUTPUT; printf 'text<<E\\na\\nb\\nE\\n' >>$ALIQUOT_OUTPUT"
VALUES = {"answer": "42", "text": "a\nb"}
POINTS = ["core.status.received", "core.proposal.committed", "core.proposal.applied",
          "agent.exit.reported", "agent.heartbeat.sent", "agent.recover.adopted",
          "monitor.program.ended", "monitor.descendants.ended", "monitor.exit.before",
          "monitor.exit.recorded", "monitor.gone.sent"]


def wait_end(client, session):
    def look():
        with contextlib.suppress(*GONE):
            shown = client.get(f"/aliquot/v1/sessions/{session}").json
            return shown if shown.get("terminated_at") else None
    return wait_for(look, 60, "the session to end")


@pytest.mark.parametrize("point", POINTS)
def test_an_end_has_its_values(point):
    with Cluster(ALIQUOT_MANAGER_HEARTBEAT="0.2s", ALIQUOT_RESOURCE_CPUS="4") as cluster:
        mark = cluster.folder / "died"
        mark.touch()  # not yet
        cluster.env.update(ALIQUOT_FAULT=f"{point}:any", ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        cluster.supervise()
        client = cluster.client()
        reply = client.post("/session", batch("valued", f"sleep 1; {COMMAND}"))
        assert reply.status == 201, reply
        mark.unlink()
        shown = wait_end(client, reply.json["sessionId"])
        if shown["reason"] == "monitor-lost":  # nobody knows whether its program succeeded
            assert point.startswith("monitor.") and shown["outputs"] is None, shown
        else:
            assert (shown["result"], shown["outputs"]) == ("SUCCESS", VALUES), shown
        assert mark.exists() or point == "agent.recover.adopted", "it has not died"
        mark.touch()
        wait_for(cluster.is_serving, 60, "the manager")
        cluster.check_audits()
        cluster.stop()
