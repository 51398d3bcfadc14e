# SPDX-License-Identifier: Apache-2.0
"""Manager, agent or monitor is killed at each step of a session's end: the end is known with the
values that its program has handed on, or not at all."""

import contextlib

import pytest

from cluster import GONE, Cluster, batch, wait_for, wait_status

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


def test_the_values_of_many_sessions_arrive_after_a_long_absence():
    """They are more than a heartbeat carries, and agent and manager have both been restarted."""
    count, size = 30, 60000
    with Cluster(ALIQUOT_MANAGER_HEARTBEAT="0.2s", ALIQUOT_RESOURCE_CPUS=str(count)) as cluster:
        gate = cluster.folder / "gate"
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        sessions = []
        for i in range(count):
            command = (f"while ! test -e {gate}; do sleep 0.2; done; "
                       f"{{ printf v{i}=; head -c {size} /dev/zero | tr '\\0' x; }} "
                       ">>$ALIQUOT_OUTPUT")
            reply = client.post("/session", batch(f"many-{i}", command))
            assert reply.status == 201, reply
            sessions.append(reply.json["sessionId"])
        for session in sessions:
            wait_status(client, session, "RUNNING")
        cluster.programs["manager"].kill()
        gate.touch()
        wait_for(lambda: len(list(cluster.folder.rglob("exit.json"))) == count, 60,
                 "the ends of all")
        cluster.programs["agent"].kill()
        cluster.programs["manager"].start()
        cluster.programs["agent"].start()
        wait_for(cluster.is_serving, 60, "the manager")
        for i, session in enumerate(sessions):
            shown = wait_end(client, session)
            assert shown["result"] == "SUCCESS", shown
            assert shown["outputs"] == {f"v{i}": "x" * size}
        cluster.check_audits()
        cluster.stop()


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
