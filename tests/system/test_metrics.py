# SPDX-License-Identifier: Apache-2.0
"""/metrics of manager and agent, as promtool and a Prometheus server read them."""

import http.client
import json
import re
import subprocess
import urllib.parse

import pytest

from cluster import Cluster, wait_for
from ports import free_port
from test_accelerators import A, TWO_GPUS
from test_statistics import QUICK, begin, end


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_SESSIONS_KILL_GRACE="0.3s",
                 **QUICK) as cluster:
        file = cluster.folder / "mock-accelerator.toml"
        file.write_text(TWO_GPUS)
        cluster.ports = {"manager": free_port(), "agent": free_port()}
        cluster.start_manager(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{cluster.ports['manager']}")
        cluster.start_agent(ALIQUOT_ACCELERATORS_MOCK=str(file),
                            ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{cluster.ports['agent']}")
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


def fetch(port, path="/metrics"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    reply = connection.getresponse()
    assert reply.status == 200, reply.status
    return reply.read().decode()


def status_of(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    return connection.getresponse().status


def promtool(text):
    """What it has to say of the text."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                          capture_output=True)
    return done.stdout + done.stderr + ("" if done.returncode == 0 else "failed")


@pytest.mark.gate
def test_promtool(cluster):
    session = begin(cluster, "checked", **{"cuda.shares": "0.5"})
    text = wait_for(lambda: (lambda t: t if session in t and "cuda_util" in t else None)(
        fetch(cluster.ports["agent"])), 60, "samples")
    assert promtool(text) == ""
    assert f'device_id="{A}"' in text and 'project_id="undefined"' not in text
    text = fetch(cluster.ports["manager"])
    assert promtool(text) == ""
    assert 'aliquot_sessions{state="running"} 1' in text and "aliquot_agents_alive 1" in text
    end(cluster, session)
    wait_for(lambda: session not in fetch(cluster.ports["agent"]), 30, "its series to go")


def test_mock_devices_are_as_warm_as_real_ones(cluster):
    seen = set()

    def look():
        seen.update(re.findall(r'"cuda_temperature".*value_type="current"} (\S+)',
                               fetch(cluster.ports["agent"])))
        return len(seen) >= 20
    wait_for(look, 60, "temperatures")
    assert all(30 <= float(value) <= 90 for value in seen), seen


def test_agents_of_one_machine_have_a_port_each():
    """Unless the settings say which."""
    with Cluster(ALIQUOT_RESOURCE_CPUS="2", **QUICK) as cluster:
        del cluster.env["ALIQUOT_METRICS_LISTEN"]
        cluster.start_manager(ALIQUOT_METRICS_LISTEN="off")
        ports = {}
        for name in ("first", "second"):
            cluster.start_agent(name)
            ports[name] = int(re.search(r"serving /metrics on port (\d+)", cluster.log_of(name))[1])
            wait_for(lambda: f'agent_id="{name}"' in fetch(ports[name]), 60, "samples")
        assert ports["first"] != ports["second"]
        assert all(6003 <= port <= 6018 for port in ports.values()), ports
        # an address that is set and in use is a warning
        cluster.start_agent("third", ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{ports['first']}")
        assert "/metrics is not served" in cluster.log_of("third")
        cluster.stop()


@pytest.fixture(scope="module")
def prometheus(cluster):
    """A function that asks a server, which scrapes both daemons."""
    port, folder = free_port(), cluster.folder / "prometheus"
    folder.mkdir()
    targets = [f"127.0.0.1:{n}" for n in cluster.ports.values()]
    (folder / "prometheus.yml").write_text(json.dumps(
        {"global": {"scrape_interval": "1s"},
         "scrape_configs": [{"job_name": "aliquot", "static_configs": [{"targets": targets}]}]}))
    with (cluster.folder / "prometheus.out").open("wb") as log:
        server = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml",
             f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
            cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(query):
        try:
            reply = json.loads(fetch(port, "/api/v1/query?" + urllib.parse.urlencode(
                {"query": query})))
        except OSError:
            return None
        return reply["data"]["result"]

    def is_ready():
        try:
            return status_of(port, "/-/ready") == 200
        except OSError:
            return False
    wait_for(is_ready, 60, "Prometheus")
    yield ask
    server.terminate()
    server.wait()


def test_prometheus(cluster, prometheus):
    session = begin(cluster, "scraped")
    mine = f'backendai_container_utilization{{session_id="{session}",'
    used = f'rate({mine}container_metric_name="cpu_used",value_type="current"}}[10s])'
    found = wait_for(lambda: [r for r in prometheus(used) or [] if float(r["value"][1]) > 0],
                     60, lambda: f"a rate: {prometheus(mine + '}')}")
    assert found[0]["metric"]["agent_id"] == "agent" and found[0]["metric"]["user_id"], found
    assert prometheus('aliquot_sessions{state="running"}')[0]["value"][1] == "1"
    assert len(prometheus("up == 1")) == 2
    end(cluster, session)
    wait_for(lambda: prometheus(mine + "}") == [], 60, "its series to go")
