# SPDX-License-Identifier: Apache-2.0
"""The manager dies between its decision and etcd, and between etcd's answer and its note of it: our
own write is never taken for one of others.
"""

import contextlib

import pytest

import etcd
from cluster import GONE, Cluster, wait_for


@pytest.mark.parametrize("point", ["etcd.push.decided:1", "etcd.push.decided:2",
                                   "etcd.push.answered:1", "etcd.push.answered:2"])
def test_it_dies_while_it_writes(point):
    with etcd.Server() as server, Cluster(ALIQUOT_ETCD_ENDPOINTS=server.url) as cluster:
        mark = cluster.folder / "died"
        server.put("theirs", "1")
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.supervise()
        cluster.start_manager()
        for value in range(40):  # meanwhile it goes on
            wait_for(cluster.is_serving, 60, "the manager")

            def is_set(value=str(value)):
                with contextlib.suppress(*GONE):
                    return cluster.client().post("/config/set", {"key": "ours",
                                                                 "value": value}).status == 200
            wait_for(is_set, 60, "the change")
            wait_for(lambda: mark.exists() or server.tree().get("ours") == str(value), 60, server.tree)
            if mark.exists() and value > 5:
                break
        assert mark.exists()
        wait_for(lambda: server.tree() == {"ours": str(value), "theirs": "1"}, 60, server.tree)
        got = cluster.client().post("/config/get", {"key": "ours"}).json["result"]
        assert got == str(value)
        assert "both here and in etcd" not in (cluster.folder / "manager.log").read_text()
        cluster.stop()
