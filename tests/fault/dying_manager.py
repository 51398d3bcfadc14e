# SPDX-License-Identifier: Apache-2.0
"""A manager that dies around the commit of a change: the change and its entry in the audit log are
both there, or neither is."""

import contextlib

import pytest

from cluster import GONE, Cluster, wait_for

# Before the commit nothing is kept, after it everything.
POINTS = {"store.commit.before:any": False, "store.commit.after:any": True}


@contextlib.contextmanager
def dying_manager(point):
    """Dies at the point each time that the mark is taken away: cluster, mark, what is kept."""
    with Cluster() as cluster:
        mark = cluster.folder / "died"
        mark.touch()
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.supervise()
        yield cluster, mark, POINTS[point]
        mark.touch()
        wait_for(cluster.is_serving, 60, "the manager")
        cluster.check_audits()
        cluster.stop()


def count(client, action):
    return client.get(f"/aliquot/v1/audit-log?limit=1&action={action}").json["total"]


def check_change(dying, action, ask, has_happened):
    """Ask, which fails if it is refused, until the manager dies by the commit of the change;
    then what has not happened is asked for once more."""
    cluster, mark, kept = dying
    client = cluster.client()
    before = count(client, action)
    for _ in range(5):
        mark.unlink()
        with contextlib.suppress(*GONE):
            ask(client)
        wait_for(mark.exists, 60, "the manager to die")
        wait_for(cluster.is_serving, 60, "the manager")
        happened = has_happened(client)
        assert happened == (count(client, action) == before + 1)
        if happened == kept:
            break  # else it was another commit, such as of when a key was used, by which it died
    else:
        pytest.fail(f"it never died by the commit of {action}")
    if not kept:
        ask(client)
        assert has_happened(client)
        assert count(client, action) == before + 1
