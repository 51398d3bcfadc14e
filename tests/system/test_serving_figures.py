# SPDX-License-Identifier: Apache-2.0
"""Figures of a model service: llama.cpp in a real container, asked through aliquot-proxy; the proxy and
the manager die."""

import http.client
import json
import urllib.request

import pytest

import model_server
from client import USER
from cluster import wait_for
from database import sql
from ports import free_port
from runtimes import settings_of
from test_proxy import Proxied

PATH = "/aliquot/v1/model-services"
STORY = "Once upon a time there was a model that was asked the same question again and again. " * 3


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    with Proxied(**{**settings_of("crun"), "ALIQUOT_RESOURCE_CPUS": "8"},
                 ALIQUOT_IMAGE_ALLOW="* host oci:/", ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.metrics_port = free_port()
        cluster.start_manager(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{cluster.metrics_port}")
        cluster.start_agent()
        cluster.start_proxy()
        cluster.user = cluster.client(USER)
        made = cluster.user.post(PATH, {
            "name": "llama", "image": model_server.llama_image(cluster), "port": model_server.PORT,
            "command": model_server.llama_command(), "health": {"path": "/health"},
            "resources": {"cpu": "1", "mem": "512m"}})
        assert made.status == 201, made
        cluster.key = cluster.user.post(f"{PATH}/llama/tokens", {"label": "crawler",
                                                                 "budget": 100000}).json["token"]
        wait_for(lambda: shown(cluster)["status"] == "ready", 180, lambda: str(shown(cluster)))
        yield cluster
        cluster.user.delete(f"{PATH}/llama", {"force": True})
        cluster.check_audits()
        cluster.stop()


def shown(cluster):
    return cluster.user.get(f"{PATH}/llama").json


def chat(cluster, **more):
    """The usage that the answer ends with; None if there was no whole answer."""
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    try:
        connection.request("POST", "/serve/llama/v1/chat/completions", json.dumps({
            "messages": [{"role": "user", "content": STORY}], "max_tokens": 20, "temperature": 0,
            "stream": True, "stream_options": {"include_usage": True}, **more}),
            {"Content-Type": "application/json", "Authorization": f"Bearer {cluster.key}"})
        reply = connection.getresponse()
        lines = reply.read().decode(errors="replace").splitlines()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    events = [line[6:] for line in lines if line.startswith("data: ")]
    if reply.status != 200 or not events or events[-1] != "[DONE]":
        return None
    return json.loads(events[-2])["usage"]


def metrics(cluster):
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.metrics_port}/metrics") as reply:
        lines = [line for line in reply.read().decode().splitlines() if line[:1] != "#"]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def figures_of(cluster, requests):
    """Those of the service once so many requests have ended."""
    def look():
        figures = shown(cluster)["figures"]
        return figures["ok"] >= requests and not figures["in_flight"] and figures
    return wait_for(look, 30, lambda: str(shown(cluster)["figures"]))


def test_usage_and_times_are_those_of_the_model(cluster):
    before = shown(cluster)["figures"]
    usages = [chat(cluster) for _ in range(4)]
    assert all(usages)
    figures = figures_of(cluster, before["ok"] + 4)
    for name in ("prompt_tokens", "completion_tokens"):
        assert figures[name] - before[name] == sum(usage[name] for usage in usages)
    cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
    assert figures["cached_tokens"] - before["cached_tokens"] == cached > 0
    recent = figures["recent"]
    assert 0 < recent["p50_first_byte_ms"] <= recent["p50_ms"] <= recent["p99_ms"]
    assert recent["tokens_per_second"] > 0 and recent["error_ratio"] == 0
    whole = shown(cluster)
    (revision,), (replica,) = whole["revision_figures"], whole["replica_list"]
    assert revision["prompt_tokens"] == replica["prompt_tokens"] == figures["prompt_tokens"]
    (token,) = cluster.user.get(f"{PATH}/llama/tokens").json["items"]
    assert token["figures"]["completion_tokens"] == figures["completion_tokens"]
    assert token["figures"]["ok"] == figures["ok"]
    assert metrics(cluster)['aliquot_service_tokens_total{service="llama",kind="cached"}'] \
        == figures["cached_tokens"]


def test_commands_show_them(cluster):
    assert chat(cluster)
    figures_of(cluster, 1)
    for words, wanted in ((("top", "--once", "--everyone"), ("REQ/S", "P99 MS", "llama")),
                          (("top", "llama", "--once"), ("REPLICA", "REVISION", "TOKENS/S")),
                          (("info", "llama"), ("LAST MINUTE", "requests/s", "MODEL TOKENS")),
                          (("token", "ls", "llama"), ("SPENT", "crawler", "/100000"))):
        said = cluster.cli("service", *words)
        assert said.returncode == 0 and all(text in said.stdout for text in wanted), said
    rows = json.loads(cluster.cli("service", "top", "llama", "-o", "json").stdout)
    assert rows[0]["revision"] == 1 and rows[0]["requests"] >= 1
    said = cluster.cli("service", "top", "llama", "--everyone")
    assert said.returncode != 0 and "--everyone" in said.stderr


def test_a_proxy_that_is_killed_is_counted_once(cluster):
    assert chat(cluster)
    before = figures_of(cluster, 1)
    cluster.programs["proxy"].kill()
    wait_for(lambda: shown(cluster)["figures"]["in_flight"] == 0, 30)
    cluster.programs["proxy"].start()
    wait_for(lambda: chat(cluster), 60, "the proxy")
    figures = wait_for(lambda: shown(cluster)["figures"]["ok"] > before["ok"]
                       and shown(cluster)["figures"], 30)
    assert figures["ok"] == before["ok"] + 1
    assert figures["prompt_tokens"] > before["prompt_tokens"]


def totals(cluster):
    """What outlives the manager: counts of the service, the revision and the token."""
    whole = shown(cluster)
    (token,) = cluster.user.get(f"{PATH}/llama/tokens").json["items"]
    kept = ("requests", "ok", "client_errors", "server_errors", "prompt_tokens",
            "completion_tokens", "cached_tokens")
    return [{name: figures[name] for name in kept}
            for figures in (whole["figures"], whole["revision_figures"][0], token["figures"])]


def start_again(cluster):
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 60, "the manager")


def test_totals_outlive_the_manager(cluster):
    had = shown(cluster)["figures"]["ok"]
    assert chat(cluster)
    figures_of(cluster, had + 1)
    before = totals(cluster)
    cluster.programs["manager"].stop()
    usages = [chat(cluster) for _ in range(3)]  # the proxy goes on
    assert all(usages)
    start_again(cluster)
    ok = before[0]["ok"] + 3
    figures_of(cluster, ok)
    after = totals(cluster)
    for one, then in zip(after, before):
        assert one["ok"] == then["ok"] + 3, (before, after)
        assert one["completion_tokens"] == then["completion_tokens"] \
            + sum(usage["completion_tokens"] for usage in usages)
    # Counters for Prometheus begin with 0, as it expects.
    assert metrics(cluster)['aliquot_service_requests_total{service="llama",class="ok"}'] == 3

    stored = f"SELECT COUNT(*) FROM model_service_totals WHERE counts LIKE '%\"ok\":{ok},%'"
    wait_for(lambda: sql(cluster, stored) == 3, 90, "the totals to be stored")
    used = cluster.user.get(f"{PATH}/llama/tokens").json["items"][0]["used"]
    cluster.programs["manager"].kill()
    start_again(cluster)
    wait_for(lambda: totals(cluster) == after, 30, lambda: f"{after}: {totals(cluster)}")
    assert cluster.user.get(f"{PATH}/llama/tokens").json["items"][0]["used"] == used
    assert all(value >= 0 for value in metrics(cluster).values())
