# SPDX-License-Identifier: Apache-2.0
"""Rollouts of a model service with replicas in real containers, while clients ask all the time through
aliquot-proxy: no request may fail, whatever the strategy is and however the rollout ends."""

import re

import pytest

from client import USER
from cluster import wait_for
from images import Layout, archive, file, folder
from runtimes import settings_of
from test_apps import python_layer
from test_model_service import PATH, SERVER, Load, shown
from test_proxy import Proxied

# Fails, or answers late, where a revision says so, and is healthy all the same.
BROKEN = SERVER.replace("self.answer(200, {\"word\"",
                        "self.answer(500 if \"BROKEN\" in os.environ else 200, {\"word\"")
SLOW = BROKEN.replace(".get(\"seconds\", 0)",
                      ".get(\"seconds\", 0) + float(os.environ.get(\"LATE\", 0))")
assert len({SERVER, BROKEN, SLOW}) == 3


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    with Proxied(**{**settings_of("crun"), "ALIQUOT_RESOURCE_CPUS": "8",
                    "ALIQUOT_SESSIONS_KILL_GRACE": "5s"}, ALIQUOT_IMAGE_ALLOW="* host oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        layout = Layout(cluster.folder / "layout")
        own = archive([folder("tmp", mode=0o1777), folder("app"),
                       file("app/serve.py", SLOW.encode())])
        layout.image("model", [python_layer(), own], Labels={})
        cluster.image = layout.reference("model")
        cluster.start_proxy()
        cluster.user = cluster.client(USER)
        yield cluster
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(name="serve")
def serve_fixture(cluster):
    """Make the service, with two ready replicas of revision 1 and this rollout."""
    made = []

    def serve(**rollout):
        reply = cluster.user.post(PATH, {
            "name": "digits", "image": cluster.image, "command": "exec python3 /app/serve.py 8000",
            "port": 8000, "replicas": 2, "resources": {"cpu": "1", "mem": "128m"},
            "environ": {"WORD": "first"}, "health": {"path": "/health", "interval": 1},
            "rollout": rollout})
        assert reply.status == 201, reply
        made.append(reply.json["id"])
        cluster.key = cluster.user.post(f"{PATH}/digits/tokens", {"label": "test"}).json["token"]
        settled(cluster, 1)
    yield serve
    for one in made:
        cluster.user.delete(f"{PATH}/digits", {"force": True})
        wait_for(lambda one=one: shown(cluster, one)["status"] == "ended", 60)


def settled(cluster, revision):
    """Two ready replicas of the revision, and no others."""
    wait_for(lambda: [(one["revision"], one["health"]) for one in shown(cluster)["replica_list"]]
             == [(revision, "ready")] * 2, 180,
             lambda: f"two replicas of {revision}: {shown(cluster)}")


def reaches(cluster, phase):
    wait_for(lambda: shown(cluster)["rollout"]["state"]["phase"] == phase, 180,
             lambda: f"the phase {phase}: {shown(cluster)}")


def deploy(cluster, **change):
    made = cluster.user.post(f"{PATH}/digits/revisions", change or {"environ": {"WORD": "second"}})
    assert made.status == 201, made


def says_only(load, word):
    """Clients hear nothing else from now on."""
    wait_for(lambda: len(load.words) > 20 and set(load.words[-20:]) == {word}, 60,
             lambda: f"only {word}: {load.words[-20:]}")


def test_rolling_with_two_more_at_a_time(cluster, serve):
    serve(max_surge="100%")
    with Load(cluster) as load:
        says_only(load, "first")
        deploy(cluster)
        reaches(cluster, "done")
        says_only(load, "second")
    assert not load.failed, load.failed[:5]
    settled(cluster, 2)


def test_a_second_group_gets_no_request_until_it_is_promoted(cluster, serve):
    serve(strategy="blue-green", keep=2)
    promote = f"{PATH}/digits/rollout/promote"
    assert cluster.user.post(promote).status == 409
    with Load(cluster) as load:
        says_only(load, "first")
        deploy(cluster)
        reaches(cluster, "ready")
        assert len(shown(cluster)["replica_list"]) == 4
        count = len(load.words)
        wait_for(lambda: len(load.words) > count + 20)
        assert set(load.words) == {"first"}
        reply = cluster.user.post(promote)
        assert reply.status == 200 and reply.json["rollout"]["state"]["promoted"], reply
        says_only(load, "second")
        reaches(cluster, "done")
        says_only(load, "second")
    assert not load.failed, load.failed[:5]
    settled(cluster, 2)


def test_a_canary_gets_a_part_until_its_step_is_over(cluster, serve):
    serve(strategy="canary", steps=[50], step_interval=3600)
    with Load(cluster) as load:
        says_only(load, "first")
        deploy(cluster)
        wait_for(lambda: "second" in load.words, 120, lambda: f"the canary: {shown(cluster)}")
        wait_for(lambda: [one["revision"] for one in shown(cluster)["replica_list"]] == [1, 2], 60,
                 lambda: f"one of each: {shown(cluster)}")
        count = len(load.words)
        wait_for(lambda: {*load.words[count:]} == {"first", "second"})
        wait_for(lambda: cluster.user.post(f"{PATH}/digits/rollout/promote").status == 200)
        reaches(cluster, "done")
        says_only(load, "second")
    assert not load.failed, load.failed[:5]
    settled(cluster, 2)


def test_a_revision_that_fails_is_taken_back(cluster, serve):
    serve(abort={"failures": 2})
    with Load(cluster) as load:
        says_only(load, "first")
        deploy(cluster, command="echo no model >&2; exit 3", environ={"WORD": "never"})
        reaches(cluster, "aborted")
    assert not load.failed and set(load.words) == {"first"}, load.failed[:5]
    assert shown(cluster)["revision"]["number"] == 1
    assert shown(cluster)["rollout"]["state"]["reason"] == "2 replicas of revision 2 failed"
    settled(cluster, 1)


def test_a_revision_that_answers_with_errors_is_taken_back(cluster, serve):
    serve(strategy="canary", steps=[50], step_interval=3600,
          abort={"error_ratio": 0.2, "requests": 10})
    with Load(cluster) as load:
        says_only(load, "first")
        deploy(cluster, environ={"WORD": "never", "BROKEN": "1"})
        reaches(cluster, "aborted")
        says_only(load, "first")
        count = len(load.failed)
        says_only(load, "first")
    assert {status for status, _ in load.failed} == {500} and len(load.failed) == count
    assert shown(cluster)["revision"]["number"] == 1
    reason = shown(cluster)["rollout"]["state"]["reason"]
    assert "of requests to revision 2 failed" in reason, reason
    settled(cluster, 1)


def test_a_revision_that_answers_late_is_taken_back(cluster, serve):
    serve(strategy="canary", steps=[50], step_interval=3600,
          abort={"latency_ratio": 2, "requests": 10})
    with Load(cluster) as load:
        says_only(load, "first")
        deploy(cluster, environ={"WORD": "late", "LATE": "1"})
        wait_for(lambda: "late" in load.words, 120, lambda: f"the canary: {shown(cluster)}")
        reaches(cluster, "aborted")
        says_only(load, "first")
    assert not load.failed, load.failed[:5]
    assert shown(cluster)["revision"]["number"] == 1
    settled(cluster, 1)
    reason = shown(cluster)["rollout"]["state"]["reason"]
    found = re.fullmatch(r"revision 2 answers in (\S+) s, revision 1 in (\S+) s", reason)
    assert found and float(found[1]) > 1 and float(found[1]) > 2 * float(found[2]), reason
    history = cluster.cli("service", "history", "digits").stdout
    assert f"rollout to revision 2 is aborted: {reason}; going back to revision 1" in history
    assert "revision 1 is back after the aborted rollout to revision 2" in history, history


def test_aborted_by_hand(cluster, serve):
    serve(strategy="canary", steps=[50], step_interval=3600)
    abort = f"{PATH}/digits/rollout/abort"
    assert cluster.user.post(abort).status == 409
    with Load(cluster) as load:
        deploy(cluster)
        wait_for(lambda: "second" in load.words, 120, lambda: f"the canary: {shown(cluster)}")
        reply = cluster.user.post(abort)
        assert reply.status == 200 and reply.json["revision"]["number"] == 1, reply
        reaches(cluster, "aborted")
        says_only(load, "first")
    assert not load.failed, load.failed[:5]
    settled(cluster, 1)


def test_rolled_back_during_a_rollout(cluster, serve):
    serve(max_surge=1)
    with Load(cluster) as load:
        deploy(cluster)
        wait_for(lambda: "second" in load.words, 120, lambda: f"the rollout: {shown(cluster)}")
        assert cluster.user.post(f"{PATH}/digits/rollback", {"revision": 1}).status == 200
        reaches(cluster, "done")
        says_only(load, "first")
    assert not load.failed, load.failed[:5]
    settled(cluster, 1)
