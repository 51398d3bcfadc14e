# SPDX-License-Identifier: Apache-2.0
"""Model services by the command line: from a folder to a URL, with real containers, a proxy and a
storage host."""

import contextlib
import http.client
import json
import re
import subprocess
import threading
import urllib.parse

import pytest

from cluster import wait_for
from mounts import Mounted
from runtimes import settings_of
from terminal import Terminal
from test_proxy import Proxied
from world import BUILD

# Says which word it was given; WORD=none has no model.
SERVE = r"""
import http.server, json, os, sys, time
if os.environ.get("WORD") == "none":
    print("no model here", flush=True)
    sys.exit(7)
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path.startswith("/slow"):
            time.sleep(1)
        text = json.dumps({"path": self.path, "word": os.environ.get("WORD"),
                           "kept": os.environ.get("KEPT")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *words):
        pass
print("serving", flush=True)
http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Page).serve_forever()
"""
SMALL = ("--image", "host", "-r", "cpu=1", "-r", "mem=64m", "--port", "8000", "--health", "/health",
         "--health-interval", "1s")
COMMAND = ("--", "python3", "/models/serve.py")


class Served(Proxied, Mounted):
    def service(self, *words, status=0, **more):
        """Output and errors of a command on services."""
        done = self.cli("service", *words, timeout=180, **more)
        assert done.returncode == status, done
        return done.stdout + (done.stderr if status else "")

    def info(self, name):
        return json.loads(self.service("info", name, "-o", "json"))

    def get(self, url, token=None):
        """Status and body."""
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", parts.path, headers={"Authorization": f"Bearer {token}"} if
                               token else {})
            reply = connection.getresponse()
            return reply.status, reply.read()

    @contextlib.contextmanager
    def made(self, name, *options, command=COMMAND):
        """A service that is ready: its URL and token."""
        said = self.service("create", name, "--model", "digits", *SMALL, "-o", "json", "--wait",
                            *options, *command)
        try:
            made = json.loads(said)
            yield made["url"], (made.get("token") or {}).get("token")
        finally:
            self.service("rm", "--yes", "--wait", "--force", name)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Served(**settings_of("crun"), ALIQUOT_NETWORK_ENABLED="true") as made:
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


@pytest.mark.gate
def test_a_folder_becomes_a_url(cluster):
    said = cluster.service("create", "digits", "--model", "digits", *SMALL, "--replicas", "2",
                           "--wait", *COMMAND)
    lines = dict(line.split(None, 1) for line in said.splitlines() if line)
    url, token = lines["URL"], lines["token"].split()[0]
    assert lines["service"] == "digits" and url.endswith("/serve/digits/")
    assert token.startswith("aqs-") and len(token) == 47
    try:
        paste = [line for line in said.splitlines() if line.startswith(("curl ", "export "))]
        done = subprocess.run(["bash", "-euc", "\n".join([paste[0].replace("curl ", "curl -fsS "), paste[
            1], 'curl -fsS -H "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/models"'])],
            capture_output=True, text=True, timeout=60)
        assert '"path": "/"' in done.stdout and '"path": "/v1/models"' in done.stdout, done
        assert cluster.get(url)[0] == 401
        row = json.loads(cluster.service("ls", "-o", "json"))[0]
        assert (row["name"], row["status"], row["ready"], row["goal"]) == ("digits", "ready", "2/2", 1)
        shown = cluster.service("info", "digits")
        assert re.search("READY +2/2", shown) and shown.count(" ready ") == 2, shown
        assert cluster.service("url", "digits").splitlines()[0] == url
        assert cluster.service("logs", "digits") == "serving\n"
        number = cluster.info("digits")["replica_list"][0]["number"]
        assert cluster.service("logs", "digits", "--replica", str(number)) == "serving\n"
        cluster.service("ratio", "digits", str(number), "0.5")
        assert cluster.info("digits")["replica_list"][0]["ratio"] == 0.5
        wait_for(lambda: cluster.info("digits")["requests"] == 2, 30, "requests to be counted")
        top = json.loads(cluster.service("top", "--once", "-o", "json"))
        assert (top[0]["requests"], top[0]["queued"]) == (2, 0)
        words = cluster.cli("completion", "words", "--", "service", "info", "di")
        assert words.stdout.startswith("digits\t"), words
    finally:
        cluster.service("rm", "--yes", "--wait", "digits")
    assert cluster.service("ls", "-o", "name") == ""
    assert cluster.get(url, token)[0] == 410


class Asking(threading.Thread):
    """Asks a service until it is stopped; (status, word) of each answer."""

    def __init__(self, cluster, url, token):
        super().__init__(daemon=True)
        self.cluster, self.url, self.token = cluster, url, token
        self.answers, self.is_over = [], threading.Event()
        self.start()

    def run(self):
        while not self.is_over.is_set():
            status, body = self.cluster.get(self.url + "slow", self.token)
            self.answers.append((status, json.loads(body).get("word")))

    def stop(self):
        self.is_over.set()
        self.join(60)
        return self.answers


def test_a_new_revision_comes_without_an_interruption(cluster):
    with cluster.made("rolling", "--replicas", "2", "-e", "WORD=one", "-e", "KEPT=yes") as (url, token):
        asking = [Asking(cluster, url, token) for _ in range(3)]
        wait_for(lambda: all(each.answers for each in asking), 60, "answers")
        said = cluster.service("deploy", "rolling", "-e", "WORD=two", "--note", "second", "--wait")
        assert said == "revision 2 of service rolling: its replicas replace the others\n"
        answers = [answer for each in asking for answer in each.stop()]
        assert {status for status, _ in answers} == {200}, answers
        assert {word for _, word in answers} >= {"one"}
        assert json.loads(cluster.get(url, token)[1]) == {"path": "/", "word": "two", "kept": "yes"}
        rows = json.loads(cluster.service("revisions", "rolling", "-o", "json"))
        assert [(row["number"], row["is_goal"], row["note"]) for row in rows] == [
            (2, True, "second"), (1, False, None)]
        said = cluster.service("rollback", "rolling", "--wait")
        assert len(said.splitlines()) == 2 and said.splitlines()[1].startswith("rolling "), said
        assert json.loads(cluster.get(url, token)[1])["word"] == "one"
        cluster.service("deploy", "rolling", "--unset", "env", "-e", "WORD=three", "--wait")
        assert json.loads(cluster.get(url, token)[1])["kept"] is None


def test_waiting_ends_with_what_went_wrong(cluster):
    said = cluster.service("create", "broken", "--model", "digits", *SMALL, "-e", "WORD=none",
                           "--wait", *COMMAND, status=1)
    try:
        assert "a replica of service 'broken' failed" in said and "no model here" in said, said
        assert "aliquot service deploy broken" in said
        wait_for(lambda: cluster.info("broken")["status"] == "failing", 60, "the next failure")
        shown = cluster.service("info", "broken")
        assert re.search(r"^PROBLEM\nreplica 'broken.r1.\d+' ended.*\nno model here$", shown,
                         re.M), shown
        assert cluster.service("logs", "broken", "--replica", "1") == "no model here\n"
        again = cluster.service("wait", "broken", status=1)
        assert "a replica of service 'broken' failed" in again
        cluster.service("deploy", "broken", "-e", "WORD=good", "--wait")
        assert cluster.info("broken")["status"] == "ready"
    finally:
        cluster.service("rm", "--yes", "--wait", "--force", "broken")


def word_of(cluster, url, token):
    status, text = cluster.get(url, token)
    return status == 200 and json.loads(text)["word"]


def test_a_failed_rollout_goes_back(cluster):
    with cluster.made("stays", "-e", "WORD=one") as (url, token):
        said = cluster.service("deploy", "stays", "-e", "WORD=none", "--wait", status=1)
        assert re.search("the rollout of revision 2 of service 'stays' was aborted: 3 replicas of "
                         r"revision 2 failed\nlast failure: replica 'stays.r2.\d+' ended: its program "
                         r"exited with status 7 before it was ready\nRevision 1 serves", said), said
        assert "no model here" in said, said
        assert word_of(cluster, url, token) == "one"
        cluster.service("wait", "stays")
        wait_for(lambda: cluster.service("rollout", "stays").startswith(
            "rollout of stays aborted: revision 1 serves, not 2\n"), 60, "the end of the rollout")
        assert cluster.info("stays")["goal"] == 1


def test_people_promote_and_abort(cluster):
    with cluster.made("green", "--strategy", "blue-green", "--keep", "1h", "-e",
                      "WORD=one") as (url, token):
        cluster.service("deploy", "green", "-e", "WORD=two", "--wait")
        assert word_of(cluster, url, token) == "one"
        shown = cluster.service("rollout", "green")
        assert re.search(r"^to   revision 2 .*1 of 1 ready, 0 % of requests$", shown, re.M), shown
        assert "'aliquot service promote green'" in shown, shown
        cluster.service("promote", "green", "--wait")
        wait_for(lambda: word_of(cluster, url, token) == "two", 30, "the new replicas' answers")
        assert re.search(r"^to   revision 2 .*, 100 % of requests$",
                         cluster.service("rollout", "green"), re.M)
        cluster.service("abort", "green", "--wait")
        wait_for(lambda: word_of(cluster, url, token) == "one", 30, "the old replicas' answers")
        assert cluster.info("green")["goal"] == 1


def test_replicas_are_scaled(cluster):
    with cluster.made("scaled") as (url, token):
        cluster.service("scale", "scaled", "2", "--wait")
        assert cluster.info("scaled")["ready"] == "2/2"
        cluster.service("scale", "scaled", "0", "--wait")
        wait_for(lambda: cluster.info("scaled")["status"] == "sleeping", 60, "the replicas' end")
        cluster.service("scale", "scaled", "1-4", "--wait")
        assert cluster.get(url, token)[0] == 200
        shown = cluster.info("scaled")["replicas"]
        assert (shown["wanted"], shown["min"], shown["max"]) == (1, 1, 4)


def test_tokens_let_in_until_they_are_revoked(cluster):
    with cluster.made("guarded", "--no-token") as (url, token):
        assert token is None and cluster.service("token", "ls", "guarded", "-o", "name") == ""
        token = cluster.service("token", "create", "guarded", "--label", "bench", "--duration", "3d",
                                "--path", "/v1", "--rate", "100").strip()
        assert cluster.get(url + "v1/x", token)[0] == 200
        assert cluster.get(url + "other", token)[0] == 403
        rows = json.loads(cluster.service("token", "ls", "guarded", "-o", "json"))
        assert (rows[0]["label"], rows[0]["paths"], rows[0]["rate"]) == ("bench", ["/v1"], 100)
        assert "token" not in rows[0]
        assert token not in cluster.service("info", "guarded", "-o", "json")
        cluster.service("token", "rm", "guarded", "bench")
        wait_for(lambda: cluster.get(url + "v1/x", token)[0] == 401, 30, "the token's end")


def test_a_public_service_needs_no_token(cluster):
    with cluster.made("open-to-all", "--public") as (url, token):
        assert token is None and cluster.get(url)[0] == 200
        cluster.service("update", "open-to-all", "--public", "no")
        wait_for(lambda: cluster.get(url)[0] == 401, 30, "the door to close")


def test_settings_change_at_once(cluster):
    with cluster.made("settled"):
        cluster.service("update", "settled", "--cap", "3", "--queue-timeout", "20s", "--affinity",
                        "header:X-User", "--tag", "mine")
        shown = cluster.info("settled")
        assert (shown["limits"]["cap"], shown["limits"]["queue_timeout"], shown["tag"]) == (3, 20, "mine")
        assert shown["limits"]["affinity"] == "header:X-User" and shown["goal"] == 1
        said = cluster.service("update", "settled", "--affinity", "nonsense", status=4)
        assert "--affinity" in said and "nonsense" in said, said


def test_settings_of_rollouts_and_who_changed_what(cluster):
    with cluster.made("recorded", "--strategy", "canary", "--steps", "5,25", "--step-interval", "5m",
                      "--abort-errors", "2%"):
        rollout = cluster.info("recorded")["rollout"]
        assert (rollout["strategy"], rollout["steps"], rollout["step_interval"]) == (
            "canary", [5, 25], 300)
        assert rollout["abort"]["error_ratio"] == 0.02 and rollout["state"] is None
        cluster.service("update", "recorded", "--max-surge", "50%", "--note", "more room")
        said = cluster.service("info", "recorded")
        assert "canary steps=5,25 max-surge=50% step-interval=5m when-full=wait" in said, said
        cluster.service("update", "recorded", "--strategy", "blue-green", "--promote-after", "1m")
        assert cluster.service("rollout", "recorded") == \
            "recorded has had no rollout; the next one is blue-green\n"
        shown = json.loads(cluster.service("rollout", "recorded", "-o", "json"))
        assert (shown["auto_promote"], shown["promote_delay"], shown["state"]) == (True, 60, None)
        cluster.service("scale", "recorded", "0", "--note", "exam week")
        for verb in "promote", "abort":
            said = cluster.service(verb, "recorded", status=7)
            assert "recorded" in said, said
        for words, status, part in (
                (("--steps", "5,x"), 2, "--steps"), (("--max-surge", "much"), 2, "--max-surge"),
                (("--steps", "5"), 4, "strategy 'canary'"), (("--keep", "60d"), 4, "--keep")):
            said = cluster.service("update", "recorded", *words, status=status)
            assert part in said, (words, said)
        reasons = [row["reason"] for row in
                   json.loads(cluster.service("history", "recorded", "-o", "json"))]
        who = cluster.info("recorded")["owner"]
        for wanted in (f"scaled to 0 by {who}: exam week", f"created by {who}",
                       f"rollout settings changed by {who}: more room"):
            assert wanted in reasons, reasons
        said = cluster.service("history", "recorded", "--limit", "1")
        assert said.splitlines()[0].split() == ["WHEN", "REPLICAS", "SHARE", "REVISION", "WHY"]
        assert len(said.splitlines()) == 2 and said.endswith("exam week\n"), said


def test_mistakes_are_named(cluster):
    for words, status, part in (
            (("info", "nothing"), 5, "nothing"),
            (("create", "x", *SMALL), 4, "name"),
            (("create", "dots.are.bad", *SMALL), 4, "name"),
            (("create", "bounds", *SMALL, "--replicas", "two"), 2, "--replicas"),
            (("create", "models", *SMALL, "--model", "/home"), 2, "aliquot folder cp"),
            (("create", "ports", "--image", "host", "--port", "70000", *COMMAND), 4, "--port"),
            (("create", "runtimes", "--image", "host", "--runtime", "vlm"), 4, "--runtime"),
            (("create", "missing", *SMALL, "--model", "no-such-folder", *COMMAND), 5, "no-such-folder"),
            (("update", "nothing"), 2, "--cap"),
            (("rm", "nothing"), 2, "--yes"),
            (("deploy", "nothing", "--note", "x"), 5, "nothing")):
        said = cluster.service(*words, status=status)
        assert part in said, (words, said)
    assert cluster.service("ls", "-o", "name") == ""
    assert cluster.service("top", "--once", "-o", "json") == "[]\n"
    done = cluster.cli("service", "top", "--once")
    assert done.stdout == "" and "you have no model services" in done.stderr, done


MADE = ("create", "mistaken", "--image", "host", "-r", "cpu=1", "-r", "mem=64m", "--port", "8000")


@pytest.mark.parametrize("words, status, says", [
    (("create", "abc", "--image", "host"), 4, "name: 'abc' is not a service's name: 4 to 24 ASCII"),
    ((*MADE[:4], "-r", "cpu=1", *COMMAND), 4, "--port: is missing, and runtime 'custom' has no"),
    ((*MADE[:-1], "99999"), 4, "--port: 99999 is not within 1..65535"),
    ((*MADE, "--ready-timeout", "0"), 4, "--ready-timeout: 0 is not within 1..604800 seconds"),
    ((*MADE[:4], "-r", "cpu=1000", "-r", "mem=64m", "--port", "8000"), 4, "-r cpu: No agent has cpu=1000: ask for 4 at most.\n"),
    ((*MADE, "--model", "digits", "--definition", "other.yaml"), 4,
     "--definition: folder 'digits' has no file 'other.yaml'"),
    ((*MADE, "--shmem", "1x"), 4, "--shmem: '1x' has no known unit"),
    ((*MADE, "--affinity", "cookie"), 4, "--affinity: expected prompt or header:NAME, got 'cookie'"),
    ((*MADE, "--max-surge", "0"), 4, "--max-surge: max_surge and max_unavailable must not both"),
    ((*MADE, "--strategy", "canary", "--steps", "50,20"), 4,
     "--steps: expected percentages that grow, an integer from 51 to 99 here, got 20"),
    ((*MADE, "--keep", "10m"), 4, "--keep: is only for the strategy 'blue-green'"),
    ((*MADE, "--abort-errors", "200%"), 4, "--abort-errors: expected a number from 0 to 1, got 2"),
    ((*MADE, "--abort-latency", "0.5"), 4, "--abort-latency: expected 0 or a factor from 1"),
    ((*MADE, "-n", "1-2", "--target", "use=2"), 4,
     "scaling.rules[0].target: expected a part of the GPU share from 0 to 1, got 2"),
    (("create", "mistaken", "--model", "digits", "--runtime", "vllm"), 2, "--image is missing: folders"),
    ((*MADE, "--token", ""), 2, "--token takes a label"),
    (("update", "x", "--port", "1"), 2,
     "unknown option '--port'\n  --port is an option of: service create, service try, service deploy\n"),
    (("deploy", "x", "--cap", "3"), 2, "--cap is an option of: service create, service update"),
    (("update", "x", "-e", "A=1"), 2, "-e is an option of: service create, service try, service deploy"),
    (("ls", "--filter", "ready"), 2, "--filter takes COLUMN=VALUE"),
    (("token", "create", "x", "--budget", "0"), 2, "--budget takes a number of tokens from 1"),
], ids=lambda words: words[-1] if isinstance(words, tuple) else None)
def test_errors_name_the_option_and_the_value(cluster, words, status, says):
    said = cluster.service(*words, status=status)
    assert says in said, said
    assert cluster.service("ls", "-o", "name") == ""


def test_a_program_that_ends_at_once_is_described_by_its_end(cluster):
    """Not by a probe that met the container on its way out."""
    said = cluster.service("create", "short", *SMALL, "--timeout", "60s", "--", "sh", "-c",
                           "echo lost the weights; exit 9", status=1)
    try:
        assert re.search(r"replica 'short.r1.\d+' ended: its program exited with status 9 before it was "
                         r"ready\nlost the weights\n", said), said
        assert said.count("exited with status 9") == 1, said
        cluster.service("deploy", "short", "--note", "more time", "--", "sleep", "600")
        said = cluster.service("wait", "short", "--timeout", "4s", status=3)
        assert "not ready after the time given with --timeout: replica 'short.r2." in said, said
        assert "is not ready: " in said, said
        said = cluster.service("rollback", "short", "9", status=4)
        assert "'aliquot service revisions short' lists those that are kept" in said, said
    finally:
        cluster.service("rm", "--yes", "--wait", "--force", "short")


def on_terminal(cluster, *words):
    env = {**cluster.env, **cluster.cli_env(), "TERM": "xterm"}
    return Terminal(str(BUILD / "aliquot"), "service", *words, env=env, rows=24, columns=120)


def test_a_model_is_tried(cluster):
    options = ("--model", "digits", *SMALL)
    done = cluster.cli("service", "try", *options, *COMMAND, timeout=180)
    assert done.returncode == 0, done
    assert re.fullmatch(r"ready after [0-9.]+ s; the replica was ended again", done.stderr.splitlines()[-1])
    done = cluster.cli("service", "try", *options, "-e", "WORD=none", *COMMAND, timeout=180)
    assert done.returncode == 1 and "exited with status 7" in done.stderr, done
    assert "no model here" in done.stderr.splitlines(), done
    for words, status, says in ((("--port", "0"), 4, "--port: 0 is not within"),
                                (("--model", "nowhere"), 5, "there is no folder 'nowhere'")):
        done = cluster.cli("service", "try", *options, *words, *COMMAND, timeout=180)
        assert done.returncode == status and says in done.stderr, done
    assert not json.loads(cluster.service("ls", "-o", "json"))


def test_the_view_is_live_and_the_end_is_asked_for(cluster):
    with cluster.made("watched") as (url, token):
        view = on_terminal(cluster, "top")
        view.expect(b"REQ/S")
        view.expect(b"watched")
        view.send(b"q")
        assert view.wait() == 0
        question = on_terminal(cluster, "rm", "watched")
        question.expect(b"End service watched")
        question.send(b"n\r")
        assert question.wait() == 1
        assert cluster.get(url, token)[0] == 200


def test_waiting_outlives_the_manager(cluster):
    process = subprocess.Popen(
        [BUILD / "aliquot", "service", "create", "lasting", "--model", "digits", *SMALL, "--wait",
         "--", "sh", "-c", "sleep 4; exec python3 /models/serve.py"],
        env={**cluster.env, **cluster.cli_env()}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    try:
        assert process.stdout.readline().split() == ["service", "lasting"]
        url = process.stdout.readline().split()[1]
        token = process.stdout.readline().split()[1]
        cluster.programs["manager"].kill()
        cluster.programs["manager"].start()
        assert process.wait(120) == 0, process.stderr.read()
        wait_for(lambda: cluster.get(url, token)[0] == 200, 30, "the service")
    finally:
        process.kill()
        process.communicate()
        wait_for(cluster.is_serving, 60, "the manager")
        cluster.service("rm", "--yes", "--wait", "--force", "lasting")
