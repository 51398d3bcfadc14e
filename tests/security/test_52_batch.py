# SPDX-License-Identifier: Apache-2.0
"""Programs of a pipeline's tasks, and files and requests that use what they hand on."""

import pytest

from cluster import Cluster, wait_for
from two_domains import TwoDomains

V1 = "/aliquot/v1"
RUNS = V1 + "/pipeline-runs"
DEFAULTS = "defaults: {image: sh, resources: {cpu: 1, mem: 64m}}\n"


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        there = TwoDomains(cluster)
        there.cluster = cluster
        yield there
        cluster.check_audits()
        cluster.stop()


# ---- values of programs ----

def many_digits(rest):
    """A pipeline whose first task hands on 60000 digits."""
    return (f"name: digits\n{DEFAULTS}tasks:\n  a:\n    outputs: [x]\n    command: |\n"
            "      printf 'x=%060000d' 0 > $ALIQUOT_OUTPUT\n"
            f"  b:\n    needs: [a]\n    command: 'true'\n{rest}")


def end_of(client, text):
    """The states and reasons of the tasks of a run that has ended."""
    made = client.post(RUNS, {"payload": text})
    assert made.status == 201, made

    def ended():
        run = client.get(f"{RUNS}/{made.json['id']}").json
        return run if run["state"] != "running" else None
    return [(task["state"], task["reason"]) for task in wait_for(ended, 120)["tasks"]]


def test_a_value_in_many_variables_does_not_fill_the_managers_memory(there):
    env = "".join(f"      E{n}: \"${{{{ tasks.a.outputs.x }}}}\"\n" for n in range(200))
    first, *others = end_of(there.user, many_digits(
        f"    env:\n{env}    matrix: {{z: [{','.join(['1'] * 100)}]}}\n"))
    assert first == ("succeeded", None) and len(others) == 100
    for state, reason in others:
        assert state == "failed" and "more than 256 KiB with all values" in reason, reason


def test_long_values_are_not_compared_for_each_task(there):
    same = " and ".join(["tasks.a.outputs.x == tasks.a.outputs.x"] * 20)
    first, *others = end_of(there.user, many_digits(
        f"    when: {same}\n    matrix: {{z: [{','.join(['1'] * 100)}]}}\n"))
    assert first == ("succeeded", None) and len(others) == 100
    for state, reason in others:
        assert state == "failed" and "both values have more than 4096 bytes" in reason, reason
    whole = many_digits("    when: tasks.a.outputs.x != ''\n")
    assert end_of(there.user, whole)[1] == ("succeeded", None)
