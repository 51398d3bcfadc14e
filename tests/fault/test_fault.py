# SPDX-License-Identifier: Apache-2.0
"""Every fault point kills the process that passes it first, once. What died is
restarted, the story goes on, and at its end nothing is missing, nothing
has happened twice and nothing is left."""

import fnmatch
import re
import subprocess

import pytest

from cluster import Cluster
from story import Story
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
# Those of images have stories of their own (test_image_fault.py).
POINTS = [point for point in POINTS if not point.startswith("agent.image.")]
# Those of networks have a node of their own in tests/system/test_network.py.
POINTS = [point for point in POINTS if not point.startswith(("agent.net.", "agent.cluster."))]
# Those of what such nodes are told need two of them (test_cluster_fault.py).
POINTS = [point for point in POINTS if not point.startswith(("agent.session-network.",
                                                             "core.network.",
                                                             "core.session.network."))]
# Those of slices of GPUs, too (test_gpu_fault.py).
POINTS = [point for point in POINTS if not point.startswith(("gpuhost.", "agent.gpu.", "core.gpu."))]
# Those of commands on a database have runs of their own (test_database_fault.py).
POINTS = [point for point in POINTS if not point.startswith(("store.move.", "store.transfer.",
                                                             "manager.backup.",
                                                             "manager.restore."))]
# Those of storage hosts are passed by uploads (test_storage_fault.py), and the unit test storage/folder;
# those of folders need such a host (test_folder_fault.py), that of logins a web server (web/test_life.py).
POINTS = [point for point in POINTS if not point.startswith(("storage.", "folder.", "api.web-login."))]
# Those of pipelines have a story of their own (test_pipeline_fault.py).
POINTS = [point for point in POINTS if not point.startswith("pipeline.")]
# That of mounted folders needs a storage host (tests/system/test_container_folders.py).
POINTS = [point for point in POINTS if not point.startswith("monitor.volumes.")]
# Idle checks need a limit (test_idle_fault.py).
POINTS = [point for point in POINTS if not point.startswith("core.idle.")]
# Those of removing old sessions need old sessions (test_retention_fault.py).
POINTS = [point for point in POINTS if not point.startswith(("core.retention.",
                                                             "store.retention."))]
# Those of arrays have runs of their own (test_array_fault.py).
POINTS = [point for point in POINTS if not point.startswith(("core.array.", "api.array."))]
# Those of the data path need a proxy and a container (test_data_path_fault.py).
POINTS = [point for point in POINTS if not point.startswith(("agent.data.", "data."))]
# Those of requests for model services are tried by test_model_service_fault.py.
POINTS = [point for point in POINTS if not point.startswith("api.service.")]
# Those of model services in the proxy have a manager of their own (test_serving_proxy_fault.py).
POINTS = [point for point in POINTS if not point.startswith("serving.services.")]
# Those of Backend.AI's requests for them are tried by test_model_service_fault.py.
POINTS = [point for point in POINTS if not point.startswith(("serving.backendai.", "serving.try."))]
# That of an agent that follows a new leader needs two (test_epoch_fault.py).
POINTS = [point for point in POINTS if not point.startswith("link.epoch.")]
# Those of bookings need times (test_booking_fault.py).
POINTS = [point for point in POINTS if not point.startswith(("core.booking.", "booking."))]
# Of managers that join and go: test_manager_join_fault.py
POINTS = [point for point in POINTS if not point.startswith(("manager.join.", "core.manager."))]
# Those of readiness need a probe (test_probe_fault.py).
POINTS = [point for point in POINTS if not point.startswith("agent.health.")]
# Those of metrics need rules of a model service (test_metrics_fault.py).
POINTS = [point for point in POINTS if not point.startswith(("agent.metrics.", "serving.metrics."))]
# Those of model services have a story of their own (test_serving_fault.py).
POINTS = [point for point in POINTS if not point.startswith("core.serving.")]
# Those of etcd need one (test_etcd_fault.py).
POINTS = [point for point in POINTS if not point.startswith("etcd.")]
SETTINGS = {
    "ALIQUOT_AGENTS_HEARTBEAT": "1s", "ALIQUOT_AGENTS_TIMEOUT": "3s",
    "ALIQUOT_SESSIONS_KILL_GRACE": "0.3s", "ALIQUOT_MANAGER_HEARTBEAT": "0.2s",
    "ALIQUOT_LOGS_KEEP_COUNT": "2", "ALIQUOT_RESOURCE_CPUS": "4",
}

# Which acts a point needs; the first row that fits. All others see the usual ones.
USUAL = ("first", "several", "living", "stubborn", "hopeless", "pause")
ACTS = (
    ("api.accounts.*", ("first", "accounts")),
    ("api.auth.*", ("first", "own_account")),
    ("api.agent.*|core.revoke.*", ("first", "banned_agent")),
    ("core.loss.kernels", ("first", "lost_kernel")),
    ("core.agent.lost.*|core.loss.*|core.requeue.*", ("first", "lost_agent")),
    ("core.kernel.placed|core.kernel.preempted|core.kernel.failed", ("first", "elastic")),
    ("core.preempt.*", ("first", "preempted")),
    ("core.rerun.*", ("first", "rerun")),
    ("core.drain.*", ("first", "drained")),
    ("api.retry.*", ("first", "repeated")),
    ("core.deadline.*", ("first", "overdue")),
    ("core.start.failed", ("first", "broken")),
    ("core.start.expired", ("first", "deaf")),
    ("core.start.vain", ("first", "vain")),
    ("core.deprioritize.*", ("first", "passed")),
    ("monitor.lease.*", ("first", "lost_agent")),
    ("agent.destroy.recorded", ("first", "hasty")),
    ("agent.log.pruned", ("first", "several")),
    ("agent.ready.*|agent.release.*|core.kernel.release.*", ("first", "together")),
    ("agent.recover.*", ("first", "kill_agent")),
    ("agent.devices.*|agent.describe.*", ("accelerated",)),
    ("monitor.leftovers.*", ("first", "kill_monitor")),
    ("monitor.cgroups.killed|monitor.cgroups.removed", ("contained_orphan",)),
    ("agent.bundle.*|agent.container.*|monitor.cgroups.*|monitor.scratch.*|monitor.rootfs.*",
     ("contained",)),
    ("manager.stop.*", ("first", "stop_manager")),
    ("core.join.*|core.token.*|link.join.*|store.migrate.*|store.key.*|store.open.*",
     ("first",)),
)


def acts_for(point):
    for patterns, acts in ACTS:
        if any(fnmatch.fnmatch(point, pattern) for pattern in patterns.split("|")):
            return acts
    return USUAL


def tell(point, acts=None):
    with Cluster(**SETTINGS) as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark),
                           ALIQUOT_FAULT_LOG=str(cluster.folder / "passed"))
        story = Story(cluster, point, mark)
        story.begin()
        for act in acts or acts_for(point):
            getattr(story, act)()
        story.end()
        assert mark.exists() or acts, f"no process has passed {point}"
        return set((cluster.folder / "passed").read_text().split())


def test_there_are_enough_points():
    assert set(GATE) <= set(POINTS)
    assert len(POINTS) >= 60 and len(set(POINTS)) == len(POINTS)
    assert all(re.fullmatch(r"[a-z]+(\.[a-z-]+)+", point) for point in POINTS)


# One of each kind: a request, a commit, a command, a kernel's start and its end.
GATE = ("api.create.durable", "core.schedule.decided", "core.kernel.create.sent",
        "core.terminate.proposed", "store.commit.before", "store.commit.after",
        "link.message.sent", "agent.create.durable", "agent.start.before", "agent.exit.seen",
        "agent.recover.adopted", "monitor.program.started", "monitor.exit.before",
        "monitor.scratch.mounted")


@pytest.mark.parametrize("point", [
    pytest.param(point, marks=pytest.mark.gate) if point in GATE else point for point in POINTS])
def test_point(point):
    tell(point)
