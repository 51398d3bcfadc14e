# SPDX-License-Identifier: Apache-2.0
"""Shares of GPUs that follow the requests of a model service, with real containers, simulated GPUs and a
proxy: what runs grows before others are added."""

import contextlib
import json
import re
import threading

import pytest

import containers
from cluster import wait_for
from gpu_cluster import GpuCluster, body_of
from runtimes import Session
from test_gpu_resize import resource_txt
from test_service_cli import COMMAND, SERVE, Served

BOUNDED = ("-r", "cuda.shares=0.2", "--share-min", "0.2", "--share-max", "1")
# Four and a half requests under way for each replica of the largest share.
RULES = ("--target", "in_flight=5", "--window", "3s")


class GpuServed(GpuCluster, Served):
    pass


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if why := containers.why_not("crun"):
        pytest.skip(why)
    with GpuServed(devices=2, ALIQUOT_NETWORK_ENABLED="true") as made:
        made.start()
        made.port = None  # that of the storage host: the proxy has its own
        made.start_proxy()
        model = tmp_path_factory.mktemp("model")
        (model / "serve.py").write_text(SERVE)
        for words in ("create", "digits"), ("cp", "-r", f"{model}/.", "digits:"):
            done = made.cli("folder", *words)
            assert done.returncode == 0, done
        yield made
        made.check_audits()
        made.check_nothing_left()
        made.stop()


class Load:
    """So many requests are under way, always."""

    def __init__(self, cluster, url, token, count):
        self.is_over, self.answers = threading.Event(), []
        self.threads = [threading.Thread(target=self.ask, args=(cluster, url, token), daemon=True)
                        for _ in range(count)]

    def ask(self, cluster, url, token):
        while not self.is_over.is_set():
            self.answers.append(cluster.get(url + "slow", token)[0])

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join(60)
        assert {*self.answers} == {200}


def shown(cluster, name, samples=None):
    """The number of replicas and the share that are wanted, and the shares of those that are there."""
    info = cluster.info(name)
    seen = (info["replicas"]["wanted"], info["share"]["wanted"],
            [replica["share"] for replica in info["replica_list"] if not replica["draining"]])
    if samples is not None:
        samples.append(seen)
    return seen


@pytest.mark.gate
def test_shares_grow_before_replicas(cluster):
    with cluster.made("grown", "--replicas", "1-2", *BOUNDED, *RULES) as (url, token):
        assert shown(cluster, "grown") == (1, 0.2, [0.2])
        first = cluster.info("grown")["replica_list"][0]
        with Load(cluster, url, token, 3):
            wait_for(lambda: shown(cluster, "grown") == (1, 0.7, [0.7]), 60,
                     lambda: f"a larger share: {shown(cluster, 'grown')}")
        shares = re.search("CUDA.SHARES_SHARES=.*", resource_txt(cluster, kernel_of(cluster, first)))
        assert shares[0].endswith(":0.70"), shares
        assert "requests in flight" in cluster.info("grown")["scaling_reason"]
        assert "0.7 of 0.2-1" in cluster.service("info", "grown")
        with Load(cluster, url, token, 8):
            wait_for(lambda: shown(cluster, "grown") == (2, 1, [1, 1]), 60,
                     lambda: f"another replica: {shown(cluster, 'grown')}")
        samples = []
        wait_for(lambda: shown(cluster, "grown", samples) == (1, 0.2, [0.2]), 60,
                 lambda: f"the share at the beginning: {samples[-1]}")
        assert not [seen for seen in samples if seen[0] > 1 and seen[1] < 1], samples
        assert cluster.info("grown")["replica_list"][0]["session"] == first["session"]
        reply = cluster.client().send("PATCH", f"/aliquot/v1/sessions/{first['session']}",
                                      {"resources": {"cuda.shares": "0.5"}})
        assert reply.status == 400 and "model service 'grown'" in reply.body.decode(), reply


def kernel_of(cluster, replica):
    shown = cluster.client().get(f"/aliquot/v1/sessions/{replica['session']}").json
    return shown["kernels"][0]["id"]


@contextlib.contextmanager
def holding(cluster, amount):
    """A session that has this of one card: the card's device."""
    session = Session(cluster, 'exec python3 -c "$MAIN"',
                      **body_of(amount, "say('holds')\ntime.sleep(600)"))
    wait_for(lambda: "holds" in session.log, 60, "a session on a card")
    try:
        shown = session.client.get(f"/aliquot/v1/sessions/{session.id}").json
        yield device_of(cluster, shown["kernels"][0]["id"])
    finally:
        session.end(forced=True)
        session.wait()


def device_of(cluster, kernel):
    return re.search(r"CUDA.SHARES_SHARES=(.*):", resource_txt(cluster, kernel))[1]


def test_a_replica_is_added_where_the_card_is_full(cluster):
    """The card of the first one has half a share left: it grows so far, and another one comes."""
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        cards = {first.enter_context(holding(cluster, "1.5")): second,
                 second.enter_context(holding(cluster, "1.5")): first}
        assert len(cards) == 2
        with cluster.made("kept", "--replicas", "1-3", *BOUNDED, *RULES) as (url, token):
            replica = cluster.info("kept")["replica_list"][0]
            with Load(cluster, url, token, 4):
                wait_for(lambda: cluster.info("kept")["share"]["wanted"] == 1
                         and shown(cluster, "kept")[2][:1] == [0.5], 60,
                         lambda: f"half of what is wanted: {shown(cluster, 'kept')}")
                wait_for(lambda: cluster.info("kept")["replicas"]["ready"] >= 2, 60,
                         lambda: f"another replica: {shown(cluster, 'kept')}")
                row = cluster.info("kept")["replica_list"][0]
                assert row["session"] == replica["session"] and row["share"] == 0.5
                assert "cuda.shares" in row["share_problem"], row
                assert f"replica {row['number']} keeps 0.5: " in cluster.service("info", "kept")
                # The other session on its card ends: it is tried again.
                on = device_of(cluster, kernel_of(cluster, replica))
                (first if cards[on] is second else second).close()
                wait_for(lambda: cluster.info("kept")["replica_list"][0]["share"] == 0.9, 90,
                         lambda: f"what it needs: {cluster.info('kept')['replica_list'][0]}")
                assert cluster.info("kept")["replica_list"][0]["share_problem"] is None


def test_a_rollout_without_room_shares_the_cards(cluster):
    """Both cards are full: an old replica and a new one have half of a card each for a while."""
    with cluster.made("tight", "-r", "cuda.shares=2", "--replicas", "2", "--when-full", "share",
                      "-e", "WORD=one") as (url, token):
        halved = set()

        def is_over():
            info = cluster.info("tight")
            halved.update(r["revision"] for r in info["replica_list"] if r["share"] == 1)
            return info["rollout"]["state"]["phase"] == "done" and all(
                r["share"] == 2 for r in info["replica_list"])
        with Load(cluster, url, token, 2):
            cluster.service("deploy", "tight", "-e", "WORD=two")
            wait_for(is_over, 180, lambda: cluster.service("info", "tight"))
        assert halved == {1, 2}
        assert json.loads(cluster.get(url, token)[1])["word"] == "two"


def test_the_manager_dies_while_a_share_changes(cluster):
    with cluster.made("killed", "--replicas", "1", *BOUNDED, *RULES) as (url, token):
        with Load(cluster, url, token, 4):
            wait_for(lambda: cluster.info("killed")["share"]["wanted"] > 0.2, 60, "a larger share")
            cluster.programs["manager"].kill()
            cluster.start_manager()
            wait_for(lambda: cluster.agent().get("connected"), 60, "the agent to be back")
            wait_for(lambda: shown(cluster, "killed") == (1, 0.9, [0.9]), 60,
                     lambda: f"a larger share: {shown(cluster, 'killed')}")
        wait_for(lambda: shown(cluster, "killed") == (1, 0.2, [0.2]), 60, "the least share")
        cluster.check_audits()


def test_bounds_are_checked_and_changed(cluster):
    def refused(status, words, *options):
        said = cluster.service("create", "wrong", "--model", "digits", "--image", "host", "-r", "cpu=1",
                               "-r", "mem=64m", "--port", "8000", *options, *COMMAND, status=status)
        assert words in said, said
    refused(4, "scaling.share", "--share-min", "0.25", "--share-max", "1")
    refused(4, "is missing", "-r", "cuda.shares=0.25", "--share-max", "1")
    refused(4, "more than the max", "-r", "cuda.shares=1", "--share-min", "1", "--share-max", "0.5")
    refused(4, "is not within the bounds", "-r", "cuda.shares=2", "--share-min", "0.25",
            "--share-max", "1")
    refused(4, "scaling.share.max", "-r", "cuda.shares=1", "--share-min", "1", "--share-max", "50")
    refused(4, "is not a multiple of 0.1", "-r", "cuda.shares=1", "--share-min", "0.255",
            "--share-max", "1")
    refused(2, "--share-min takes a part of a device", "--share-min", "much", "--share-max", "1")
    with cluster.made("bounds", "--replicas", "0-2", *BOUNDED, *RULES):
        cluster.service("update", "bounds", "--share-max", "2")
        scaling = cluster.info("bounds")["scaling"]
        assert scaling["share"]["min"] == 0.2 and scaling["share"]["max"] == 2
        assert scaling["rules"] == [{"signal": "in_flight", "target": 5}] and scaling["window"] == 3
        cluster.service("scale", "bounds", "1-2")
        assert cluster.info("bounds")["share"] == {"wanted": 0.2, "min": 0.2, "max": 2}
        said = cluster.service("deploy", "bounds", "-r", "cuda.shares=3", status=4)
        assert "is not within the bounds" in said
        cluster.service("update", "bounds", "--share-max", "none")
        assert cluster.info("bounds")["share"] == {"wanted": 0.2, "min": None, "max": None}
        assert "share" not in json.dumps(cluster.info("bounds")["scaling"])
