# SPDX-License-Identifier: Apache-2.0
"""An agent that is killed when it has recorded the epoch of a new leader, and done nothing else, follows
no leader of an earlier one, and has lost nothing."""

from cluster import Cluster, wait_for
from link_manager import lead, played_managers
from runtimes import Session, settings_of

POINT = "link.epoch.followed"


def test_killed_after_the_record():
    with Cluster(**settings_of("process")) as cluster:
        mark = cluster.folder / "died"
        cluster.start_manager()
        with played_managers(cluster, 1) as [manager]:
            cluster.start_agent(ALIQUOT_MANAGER_ADDRESS=f"{cluster.link},{manager.address}",
                                ALIQUOT_FAULT=POINT, ALIQUOT_FAULT_ONCE=str(mark))
            agent = cluster.programs["agent"]
            kernel = Session(cluster, "exec sleep 1000").kernel["id"]
            cluster.programs["manager"].may_end = True
            cluster.programs["manager"].kill()

            lead(manager, [], 1000)
            wait_for(mark.exists, 60, f"the agent to pass {POINT}")
            agent.process.wait(60)
            assert (cluster.folder / "agent" / "epoch").read_text() == "1000\n"
            assert not manager.last("heartbeat")

            manager.epoch = 999
            agent.start()
            wait_for(lambda: "leads epoch 999, and epoch 1000 has begun" in cluster.log_of("agent"),
                     60, "it to refuse")
            assert not manager.last("heartbeat")
            manager.epoch = 1000
            wait_for(lambda: manager.kernels().get(kernel) == "RUNNING", 60, "it to follow")
            manager.order("kernel.destroy", kernel_id=kernel, attempt=1, reason="user-requested")
            wait_for(lambda: manager.kernels().get(kernel) == "TERMINATED", 60, "the end")
            manager.order("kernel.forget", kernel_id=kernel, attempt=1)
            wait_for(lambda: kernel not in manager.kernels(), 30, "it to be forgotten")
        cluster.stop()
