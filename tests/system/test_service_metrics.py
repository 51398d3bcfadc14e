# SPDX-License-Identifier: Apache-2.0
"""Model services that are scaled by metrics of their own programs, and by queries to Prometheus. First
with a node and a Prometheus server that are played, then with real ones and real containers."""

import base64
import concurrent.futures
import contextlib
import http.server
import json
import ssl
import subprocess
import threading
import urllib.parse
import uuid

import pytest

import model_server
from cluster import wait_for
from ports import free_port
from runtimes import settings_of
from test_model_service_routes import PATH, make_fixture, ready, shown  # noqa: F401
from test_model_service_routes import there_fixture as routes_there
from test_service_cli import SMALL, Served

there = routes_there
WAITING = "vllm:num_requests_waiting"


# ---- a node that is played ----


class Watching:
    """What the node was told to read, and what it says of it."""

    def __init__(self, node):
        self.node, self.pages, self.count, take = node, [], 0, node.take

        def listen(message):
            if message["type"] == "metrics.watch":
                self.pages = message.get("pages", [])
                self.count += 1
            take(message)
        node.take = listen

    def say(self, page, *values, text=None):
        with self.node.lock:
            self.node.send({"type": "metrics.values", "kernel_id": page["kernel_id"],
                            "port": page["port"], "path": page["path"], "names": page["names"],
                            "values": [[i, value] for i, value in enumerate(values)],
                            **({"text": text} if text else {})})


@pytest.fixture(name="watching", scope="module")
def watching_fixture(there):  # noqa: F811
    return Watching(there.node)


def rule(name=WAITING, **more):
    return {"signal": "metric", "name": name, "target": 4, **more}


def test_an_agent_hears_what_rules_need(there, make, watching):  # noqa: F811
    make("read", replicas="1-4", scaling={"rules": [
        rule(), rule('depth{queue="a"}', path="/stats", port=9000)], "window": 600})
    ready(there, "read", 1)
    wait_for(lambda: len(watching.pages) == 2, what="two pages")
    by_port = {page["port"]: page for page in watching.pages}
    assert by_port[8000]["path"] == "/metrics" and by_port[8000]["names"] == [WAITING]
    assert by_port[9000]["path"] == "/stats" and by_port[9000]["names"] == ['depth{queue="a"}']
    watching.say(by_port[8000], 1)
    watching.say(by_port[9000], 10)  # 2.5 times the target
    wait_for(lambda: shown(there, "read")["replicas"]["wanted"] == 3, what="three replicas")
    assert "depth" in shown(there, "read")["scaling_reason"]
    # once they are ready their pages are read as well
    ready(there, "read", 3)
    wait_for(lambda: len(watching.pages) == 6, what="six pages")
    # the same after the connection was lost, by the same manager and by the next one
    for interrupt in there.node.stop, there.programs["manager"].kill:
        count = watching.count
        interrupt()
        if interrupt == there.programs["manager"].kill:
            there.node.stop()
            there.programs["manager"].start()
            wait_for(there.is_serving, what="the manager")
        there.node.incarnation = str(uuid.uuid4())
        assert there.node.connect(there.node.hello(slots=there.node.slots))
        there.node.send({"type": "heartbeat", "incarnation": there.node.incarnation, "seq": 1, "kernels": [
            {"kernel_id": order["kernel_id"], "session_id": session, "attempt": order["attempt"],
             "state": "RUNNING", "at_usec": 1} for session, order in there.node.kernels.items()]})
        for session in there.node.kernels:
            there.node.health(session)
        there.node.serve()
        wait_for(lambda: watching.count > count and len(watching.pages) == 6, 30,
                 lambda: f"the pages again: {watching.count} {count} {watching.pages} {shown(there, 'read')}")
    there.user.send("PATCH", f"{PATH}/read", {"scaling": None})
    wait_for(lambda: not watching.pages, what="nothing to be read")


def test_a_value_that_lacks_changes_nothing(there, make, watching):  # noqa: F811
    make("lacking", replicas="1-4", scaling={"rules": [rule()], "window": 1})
    ready(there, "lacking", 1)
    page = wait_for(lambda: watching.pages)[0]
    watching.say(page, text="GET /metrics on port 8000: 404 instead of 200")
    wait_for(lambda: "404" in (shown(there, "lacking")["scaling_problem"] or ""), what="the problem")
    one = shown(there, "lacking")
    assert one["scaling_problem"] == \
        "rule 0 has no value: GET /metrics on port 8000: 404 instead of 200"
    assert one["replicas"]["wanted"] == 1
    watching.say({**page, "port": 1}, 100)  # of a page, a kernel and a metric that nobody asked for
    watching.say({**page, "kernel_id": there.node.incarnation}, 100)
    watching.say({**page, "names": ["other"]}, 100)
    watching.say(page, 8)
    wait_for(lambda: shown(there, "lacking")["replicas"]["wanted"] == 2, what="two replicas")
    assert shown(there, "lacking")["scaling_problem"] is None
    there.user.send("PATCH", f"{PATH}/lacking", {"scaling": {"rules": [rule("other")]}})
    page = wait_for(lambda: [one for one in watching.pages if one["names"] == ["other"]])[0]
    watching.say(page, text="metric 'other' is not on the page, or is NaN")
    wait_for(lambda: shown(there, "lacking")["scaling_problem"], what="the next problem")
    there.user.send("PATCH", f"{PATH}/lacking", {"replicas": 2})
    wait_for(lambda: not shown(there, "lacking")["scaling_problem"], what="it to be forgotten")


def test_rules_that_cannot_be_measured(there, make):  # noqa: F811
    service = make("refused", replicas="1-2")
    for wrong, field, text in ((rule("a b"), "scaling.rules", "not the name of a metric"),
                               (rule("a{b=c}"), "scaling.rules", 'name{label="value"'),
                               (rule(path="metrics"), "scaling.rules[0].path", "begin with '/'"),
                               (rule(path="/a b"), "scaling.rules[0].path", "%XX"),
                               (rule(port=70000), "scaling.rules[0].port", "65535"),
                               (rule(source="kernel", path="/x"), "scaling.rules[0].path", "only for")):
        reply = there.user.send("PATCH", f"{PATH}/{service['id']}", {"scaling": {"rules": [wrong]}})
        assert reply.status == 400 and field in str(reply.json) and text in str(reply.json), reply
    again = there.user.send("PATCH", f"{PATH}/{service['id']}", {"scaling": {"rules": [
        {"signal": "prometheus", "query": "up", "target": 1}]}})
    assert again.status == 200, again
    wait_for(lambda: "[serving] of manager.toml" in (shown(there, "refused")["scaling_problem"] or ""))


# ---- a Prometheus server that is played ----


def number(value):
    return {"status": "success", "data": {"resultType": "scalar", "result": [1, value]}}


def vector(*values):
    return {"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"a": str(i)}, "value": [1, value]} for i, value in enumerate(values)]}}


# query -> status, answer, what the problem has, replicas that are wanted
ANSWERS = {
    "scalar": (200, number("6"), None, 3),
    "vector": (200, vector("8"), None, 4),
    "two": (200, vector("8", "9"), "results in 2 series", 1),
    "none": (200, vector(), "no series matches", 1),
    "nan": (200, number("NaN"), "not a number", 1),
    "infinite": (200, number("+Inf"), "not a number", 1),
    "matrix": (200, {"status": "success", "data": {"resultType": "matrix", "result": []}}, "matrix", 1),
    "wrong": (400, {"status": "error", "error": "parse error: x"}, "400: parse error: x", 1),
    "failed": (500, "<html>", "answers 500", 1),
    "html": (200, "<html>", "not that of a Prometheus server", 1),
    "huge": (200, "x" * (2 << 20), "does not answer", 1),
    "hangs": (0, None, "did not answer within 10 s", 1),
}


@pytest.fixture(name="played_prometheus", scope="module")
def played_prometheus_fixture():
    class Page(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            server.asked.append((self.path, form["query"][0], self.headers["Authorization"]))
            status, answer = ANSWERS[form["query"][0].split()[0]][:2]
            if not status:
                server.is_over.wait(60)
                return
            text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(text)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.daemon_threads, server.asked, server.is_over = True, [], threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.is_over.set()
    server.shutdown()


def test_answers_of_prometheus(there, make, played_prometheus, tmp_path):  # noqa: F811
    (tmp_path / "token").write_text("secret-1\n")
    there.programs["manager"].kill()
    there.start_manager(
        ALIQUOT_SERVING_PROMETHEUS=f"http://127.0.0.1:{played_prometheus.server_port}/prefix/",
        ALIQUOT_SERVING_PROMETHEUS_TOKEN_FILE=str(tmp_path / "token"))
    for name in ANSWERS:
        make(f"p-{name}", replicas="1-4", scaling={"rules": [
            {"signal": "prometheus", "query": name + ' {{service}}', "target": 2}]})
    for name, (_, _, problem, wanted) in ANSWERS.items():
        wait_for(lambda name=name, problem=problem, wanted=wanted: (
            shown(there, f"p-{name}")["replicas"]["wanted"] == wanted
            and (problem or "") in (shown(there, f"p-{name}")["scaling_problem"] or "")), 90,
            lambda name=name: f"{name}: {shown(there, f'p-{name}')}")
    assert all(path == "/prefix/api/v1/query" and authorization == "Bearer secret-1"
               for path, _, authorization in played_prometheus.asked)
    assert "scalar p-scalar" in {query for _, query, _ in played_prometheus.asked}
    assert there.log_of("manager").count("'p-two': scaling rule 0 has no value") == 1


def test_credentials_for_prometheus(there, make, played_prometheus, tmp_path):  # noqa: F811
    (tmp_path / "password").write_text("p:w\n")
    url = f"http://127.0.0.1:{played_prometheus.server_port}"
    there.programs["manager"].kill()
    there.start_manager(ALIQUOT_SERVING_PROMETHEUS=url, ALIQUOT_SERVING_PROMETHEUS_USER="ann",
                        ALIQUOT_SERVING_PROMETHEUS_PASSWORD_FILE=str(tmp_path / "password"))
    make("private", replicas="1-4", scaling={"rules": [
        {"signal": "prometheus", "query": "scalar", "target": 2}]})
    wait_for(lambda: shown(there, "private")["replicas"]["wanted"] == 3, what="three replicas")
    sent = "Basic " + base64.b64encode(b"ann:p:w").decode()
    assert ("/api/v1/query", "scalar", sent) in played_prometheus.asked
    # of settings that cannot be used the manager says which
    for settings, text in (({"": "ftp://x"}, "serving.prometheus"),
                           ({"": url, "_TOKEN_FILE": "/nosuch"}, "/nosuch"),
                           ({"": url, "_CA": "/nosuch"}, "serving.prometheus-ca"),
                           ({"": url, "_TOKEN_FILE": "/dev/null", "_USER": "x"},
                            "serving.prometheus-user")):
        done = there.run("aliquot-manager", "--dev", "--state", tmp_path / "state", "--listen",
                         f"127.0.0.1:{free_port()}", "--link", f"127.0.0.1:{free_port()}",
                         **{f"ALIQUOT_SERVING_PROMETHEUS{name}": value
                            for name, value in settings.items()})
        assert done.returncode and text in done.stderr, done


# ---- a Prometheus server with TLS ----


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_ca(folder, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt")


def sign(folder, name, names):
    """A certificate of the site's CA for these names, with its key."""
    (folder / "names").write_text(f"subjectAltName={names}\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")
    openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "site.crt", "-CAkey",
            folder / "site.key", "-CAcreateserial", "-extfile", folder / "names",
            "-out", folder / f"{name}.crt")


@contextlib.contextmanager
def served_by_tls(played, folder, name):
    """The played server again, with this certificate; its URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request, address):
            with contextlib.suppress(OSError):  # a client that refuses the certificate
                super().finish_request(context.wrap_socket(request, server_side=True), address)
    server = Server(("127.0.0.1", 0), played.RequestHandlerClass)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"https://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_prometheus_with_a_certificate_of_the_site(there, make, played_prometheus, tmp_path):  # noqa: F811
    make_ca(tmp_path, "site")
    make_ca(tmp_path, "other")
    sign(tmp_path, "right", "DNS:localhost")
    sign(tmp_path, "elsewhere", "DNS:prometheus.example.org")

    def settings(url, ca):
        return {"ALIQUOT_SERVING_PROMETHEUS": url,
                "ALIQUOT_SERVING_PROMETHEUS_CA": str(tmp_path / f"{ca}.crt")}

    def restart(url, ca):
        there.programs["manager"].kill()
        there.start_manager(**settings(url, ca))

    def doctor(url, ca):
        done = there.run("aliquot", "doctor", "manager", "-o", "json", **settings(url, ca))
        return [one for one in json.loads(done.stdout) if "rometheus" in str(one)]
    with served_by_tls(played_prometheus, tmp_path, "right") as url:
        restart(url, "site")
        make("sealed", replicas="1-4", scaling={"rules": [
            {"signal": "prometheus", "query": "scalar", "target": 2}]})
        wait_for(lambda: shown(there, "sealed")["replicas"]["wanted"] == 3, 30,
                 lambda: f"three replicas: {shown(there, 'sealed')}")
        assert shown(there, "sealed")["scaling_problem"] is None
        wrong = [(url, "other", "certificate refused")]
        with served_by_tls(played_prometheus, tmp_path, "elsewhere") as moved:
            wrong.append((moved, "site", "hostname mismatch"))
            for url, ca, text in wrong:
                restart(url, ca)
                asked = len(played_prometheus.asked)
                problem = wait_for(lambda: shown(there, "sealed")["scaling_problem"], 30)
                assert text in problem, problem
                log = f"model service 'sealed': scaling {problem}"
                wait_for(lambda log=log: log in there.log_of("manager"), 10,
                         lambda log=log: f"{log}: {there.log_of('manager')[-2000:]}")
                finding = doctor(url, ca)
                assert text in str(finding) and "prometheus-ca" in str(finding), finding
                assert len(played_prometheus.asked) == asked  # no credentials, and no query, were sent
                assert shown(there, "sealed")["replicas"]["wanted"] == 3


# ---- real containers ----

# Its page is what its clients set: /set/MODE/VALUE.
PROGRAM = r"""
import http.server, time
now = {"mode": "good", "value": "1"}
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/set/"):
            now["mode"], now["value"] = self.path.split("/")[2:4]
        if self.path.startswith("/slow/"):
            time.sleep(float(self.path.split("/")[2]))
        status, text = 200, "ok"
        if self.path == "/metrics":
            mode = now["mode"]
            if mode == "hang":
                time.sleep(30)
            if mode == "gone":
                status, text = 404, "gone"
            elif mode == "huge":
                text = None
            elif mode == "many":
                each = float(now["value"]) / 10000
                text = "".join(f'app_waiting{{n="{i}"}} {each}\n' for i in range(10000))
            else:
                text = "# TYPE app_waiting gauge\napp_waiting " + now["value"] + "\n"
        self.send_response(status)
        self.end_headers()
        if text is None:
            for _ in range(100):
                self.wfile.write((b"x" * 99 + b"\n") * 10485)
        else:
            self.wfile.write(text.encode())
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Page).serve_forever()
"""


class Measured(Served):
    def start_manager(self, *options, **settings):
        self.metrics_port, self.prometheus_port = free_port(), free_port()
        super().start_manager(
            *options, ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{self.metrics_port}",
            ALIQUOT_SERVING_PROMETHEUS=f"http://127.0.0.1:{self.prometheus_port}", **settings)


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture(tmp_path_factory):
    with Measured(**settings_of("crun"), ALIQUOT_NETWORK_ENABLED="true",
                  ALIQUOT_IMAGE_ALLOW="* host oci:/", ALIQUOT_IMAGE_KEEP_FREE="0") as made:
        made.start()
        made.port = None  # that of the storage host: the proxy has its own
        made.start_proxy()
        model = tmp_path_factory.mktemp("model")
        (model / "serve.py").write_text(PROGRAM)
        for words in ("create", "digits"), ("cp", "-r", f"{model}/.", "digits:"):
            done = made.cli("folder", *words)
            assert done.returncode == 0, done
        yield made
        made.check_audits()
        made.check_nothing_left()
        made.stop()


def wanted(cluster, name):
    return cluster.info(name)["replicas"]["wanted"]


@pytest.mark.gate
def test_replicas_follow_a_metric(cluster):
    with cluster.made("metered", "--replicas", "1-3", "--target", "metric:app_waiting=2",
                      "--window", "5m") as (url, token):
        assert cluster.get(url + "set/good/6", token)[0] == 200
        wait_for(lambda: wanted(cluster, "metered") == 3, 60, lambda: cluster.info("metered"))
        assert "metric app_waiting: 6 at a target of 2" in cluster.info("metered")["scaling_reason"]
        assert cluster.info("metered")["scaling_problem"] is None


def test_rules_go_on_after_manager_and_agent_were_killed(cluster):
    with cluster.made("killed", "--replicas", "1-3", "--target", "metric:app_waiting=2") as (url, token):
        cluster.programs["manager"].kill()
        cluster.programs["agent"].kill()
        cluster.programs["manager"].start()
        cluster.programs["agent"].start()
        wait_for(lambda: cluster.is_serving() and cluster.agent().get("connected"), 60, "the agent")
        wait_for(lambda: cluster.get(url + "set/many/4", token)[0] == 200, 60, "an answer")
        wait_for(lambda: wanted(cluster, "killed") == 2, 60, lambda: cluster.info("killed"))


def test_bad_pages_change_nothing(cluster):
    with cluster.made("faulty", "--replicas", "1-3", "--target", "metric:app_waiting=2") as (url, token):
        for mode, value, text in (("huge", "9", "longer than 4 MiB"), ("hang", "9", "within 5 s"),
                                  ("gone", "9", "404 instead of 200"), ("good", "NaN", "is NaN"),
                                  ("good", "1e999", "infinite"), ("good", "x", "cannot be read")):
            cluster.get(f"{url}set/{mode}/{value}", token)
            wait_for(lambda text=text: text in (cluster.info("faulty")["scaling_problem"] or ""), 90,
                     lambda: cluster.info("faulty"))
            assert wanted(cluster, "faulty") == 1
        cluster.get(url + "set/good/4", token)
        wait_for(lambda: wanted(cluster, "faulty") == 2, 60, lambda: cluster.info("faulty"))


def test_replicas_follow_llama_cpp(cluster):
    image = model_server.llama_image(cluster)
    said = cluster.service(
        "create", "llama", "--image", image, "-r", "cpu=1", "-r", "mem=1g", "--port", "8000",
        "--health", "/health", "--replicas", "1-2", "--target", "metric:llamacpp:requests_processing=1",
        "-o", "json", "--wait", "--", model_server.llama_command())
    made = json.loads(said)
    url, token = urllib.parse.urlsplit(made["url"]), made["token"]["token"]
    is_over = threading.Event()

    def ask():
        while not is_over.is_set():
            model_server.ask(url.port, "POST", url.path + "v1/completions",
                             json.dumps({"prompt": "hi", "max_tokens": 400}),
                             {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for _ in range(4):
                pool.submit(ask)
            try:
                wait_for(lambda: wanted(cluster, "llama") == 2, 120, lambda: cluster.info("llama"))
                assert "llamacpp:requests_processing" in cluster.info("llama")["scaling_reason"]
            finally:
                is_over.set()
    finally:
        cluster.service("rm", "--yes", "--wait", "--force", "llama")


@contextlib.contextmanager
def prometheus(cluster):
    """A server that scrapes the manager."""
    folder = cluster.folder / "prometheus"
    folder.mkdir()
    (folder / "prometheus.yml").write_text(json.dumps(
        {"global": {"scrape_interval": "1s"}, "scrape_configs": [{"job_name": "aliquot", "static_configs": [
            {"targets": [f"127.0.0.1:{cluster.metrics_port}"]}]}]}))
    with (cluster.folder / "prometheus.out").open("wb") as log:
        server = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml",
             f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{cluster.prometheus_port}"],
            cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        server.terminate()
        server.wait()


def test_replicas_follow_our_own_figures_in_prometheus(cluster):
    query = 'sum(max_over_time(aliquot_service_in_flight{service="{{service}}"}[1m]))'
    with cluster.made("queried", "--replicas", "1-3", "--target", f"prometheus:{query}=1") as (url, token):
        wait_for(lambda: "does not answer" in (cluster.info("queried")["scaling_problem"] or ""), 60,
                 "a problem without a server")
        with prometheus(cluster):
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                asked = [pool.submit(cluster.get, url + "slow/10", token) for _ in range(2)]
                wait_for(lambda: wanted(cluster, "queried") == 2, 90, lambda: cluster.info("queried"))
                assert "query" in cluster.info("queried")["scaling_reason"]
                assert {each.result()[0] for each in asked} == {200}
            assert cluster.info("queried")["scaling_problem"] is None
        # it has gone: nothing changes
        wait_for(lambda: "does not answer" in (cluster.info("queried")["scaling_problem"] or ""), 120,
                 "a problem")
        assert wanted(cluster, "queried") == 2
