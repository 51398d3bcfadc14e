# SPDX-License-Identifier: Apache-2.0
"""What the command line writes, on terminals of several widths and into pipes."""

import contextlib
import http.server
import json
import os
import re
import ssl
import subprocess
import threading
import time

import pytest

from client import ADMIN, USER
from cluster import Cluster, wait_for
from terminal import Terminal
from world import BUILD

ALIQUOT = str(BUILD / "aliquot")
LONG = "a-name-of-a-session-that-is-rather-long"
SMALL = ("-r", "cpu=1", "-r", "mem=32m")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1", TZ="UTC-2") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        assert cluster.cli("run", *SMALL, "--name", LONG, "true").returncode == 0
        for more in (["-t", "large", "-r", "cpu=1000", "--wait-for-capacity"],
                     ["-t", "later", *SMALL, "--starts-at", "1h"]):
            assert cluster.cli("session", "create", *more, "--", "true").returncode == 0
        wait_for(lambda: all(json.loads(cluster.cli("session", "info", name, "-o", "json").stdout)[
            "reason"] for name in ("large", "later")))
        yield cluster
        cluster.stop()


def on_terminal(cluster, columns, *words):
    shown = Terminal(ALIQUOT, *words, env={**cluster.env, **cluster.cli_env()}, columns=columns)
    return shown.read_all().decode().replace("\r", "")


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("words", [("ps", "--all"), ("session", "why", "large"),
                                   ("session", "info", "nobody"), ("ps", "--columns", "bogus"),
                                   ("session", "history", LONG), ("config", "show")])
def test_lines_end_at_words(cluster, columns, words):
    """All words arrive whole, but reasons broken after a hyphen, and only a word that is longer
    than the terminal leaves its line."""
    narrow = on_terminal(cluster, columns, *words)
    done = cluster.cli(*words)
    ages = r"\b\d+ (s|min)\b"  # pass between the two
    narrow_words, said = (set(re.split(r"\s+|(?<=-)(?=\w)", re.sub(ages, "", shown).strip()))
                          for shown in (narrow, done.stdout + done.stderr))
    assert sorted(narrow_words) == sorted(said)
    for line in narrow.splitlines():
        assert len(line) <= columns or len(line.split()) <= 2, line


@pytest.mark.parametrize("words", [("help",), ("session",), ("admin",), ("session", "ls", "--help"),
                                   ("admin", "usage", "--help"), ("admin", "freeze", "--help"),
                                   ("help", "exit-codes"), ("help", "environment")])
def test_lines_of_help_end_at_words(cluster, words):
    test_lines_end_at_words(cluster, 80, words)


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_wide_has_no_width(cluster, columns):
    rows = on_terminal(cluster, columns, "ps", "--all", "-o", "wide").splitlines()
    assert len(rows) == 4 and rows[0].split()[-1] == "REASON", rows


def test_history_has_times_and_durations(cluster):
    lines = cluster.cli("session", "history", LONG).stdout.splitlines()
    assert lines[0].split() == ["TIME", "KERNEL", "STATUS", "LASTED", "REASON"]
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +- +PENDING +\d+ s ", lines[1]), lines
    tries = lines.index("") + 1
    assert re.split("  +", lines[tries]) == ["FIRST TRY", "LAST TRY", "TRIES", "RESULT"]
    rows = json.loads(cluster.cli("session", "history", LONG, "-o", "json").stdout)["items"]
    local = time.gmtime(time.mktime(time.strptime(rows[0]["at"][:19], "%Y-%m-%dT%H:%M:%S")) + 7200)
    assert lines[1].startswith(time.strftime("%Y-%m-%d %H:%M:%S", local))


def test_times_in_sentences_are_local(cluster):
    said = cluster.cli("session", "why", "later").stdout
    assert re.search(r"Before start time \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(in \d+ min\)", said), said
    assert "+00:00" not in said and "limit-or-condition" in said


def test_records_leave_out_what_is_empty(cluster):
    agent = cluster.cli("agent", "ls", "-o", "name").stdout.strip()
    shown = cluster.cli("agent", "info", agent).stdout
    assert not [line for line in shown.splitlines() if line.endswith("  -")], shown
    assert "DRAINED" not in shown and "STATUS" in shown
    assert cluster.cli("agent", "info", agent, "--columns", "drain_reason").stdout.startswith(
        "DRAINED  -\n")


def test_sentences_of_the_scheduler(cluster):
    said = cluster.cli("session", "why", "large").stdout
    assert "1 requirement could not be placed" in said and "cpu: " in said, said
    assert not re.search(r"missing=|containers=|arch=any|requirement\(s\)", said), said


def test_a_session_that_is_not_there_is_named_once(cluster):
    said = cluster.cli("session", "info", "nobody").stderr
    assert said.startswith("aliquot: you have no session 'nobody'\n"), said


def test_a_reader_that_has_enough(cluster):
    reader, writer = os.pipe()
    os.close(reader)
    for words in (["ps", "--all"], ["help"], ["agent", "ls", "-o", "json"]):
        done = subprocess.run([ALIQUOT, *words], env={**cluster.env, **cluster.cli_env()},
                              stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode in (141, -13) and done.stderr == "", (words, done)
    os.close(writer)


def test_columns_are_listed_whole(cluster):
    said = cluster.cli("ps", "--columns", "bogus").stderr.splitlines()[0]
    listed, more = said.split("there are: ")[1].split(" and ")
    known = list(json.loads(cluster.cli("session", "info", LONG, "-o", "json").stdout))
    assert set(listed.split(", ")) <= set(known) and re.match(r"\d+ more", more), said


def test_the_bare_command_is_a_page(cluster):
    groups = cluster.cli().stdout.splitlines()
    assert len(groups) <= 22 and any("aliquot help" in line for line in groups)
    assert len(cluster.cli("help").stdout.splitlines()) > 60


def test_where_files_go_is_said_to_people(cluster):
    """Once for a session that people work in, not for batch sessions, scripts and --quiet."""
    note = "the session's home directory is deleted when it ends"
    create = ("session", "create", *SMALL)
    try:
        assert on_terminal(cluster, 200, *create, "-t", "told").count(note) == 1
        for name, words in (("quiet", ["--quiet"]), ("rows", ["-o", "json"]), ("batch", ["--", "true"])):
            shown = on_terminal(cluster, 200, *create, "-t", name, *words)
            assert note not in shown and "error" not in shown, shown
        assert note not in cluster.cli(*create, "-t", "piped").stderr
    finally:
        cluster.cli("rm", "--wait", "--yes", "told", "quiet", "rows", "piped")


# ---- who may do what, and where ----

def test_a_user_is_told_the_role_and_the_list_of_nodes(cluster):
    done = cluster.run("aliquot", "agent", "ls", **cluster.cli_env(USER))
    assert done.returncode == 6 and "role 'admin' or 'superadmin'" in done.stderr, done
    assert "aliquot nodes" in done.stderr and "log in" not in done.stderr
    nodes = cluster.run("aliquot", "nodes", **cluster.cli_env(USER)).stdout.splitlines()
    assert nodes[0].split() == ["NODE", "RESOURCE-GROUP", "STATUS", "SCHEDULABLE", "FREE", "TOTAL",
                                "REASON"]
    assert re.search(r"default +ALIVE +yes +cpu=\d+", nodes[1]), nodes


@pytest.mark.parametrize("words, says", [
    (["run", "-v", "kep:/x", "--", "true"], "aliquot: --mount: sessions without an image"),
    (["run", "-v", "kep:/x", "--image", "host", "--", "true"], "see what there is: aliquot folder ls"),
    (["run", "--resource-group", "nope", "--", "true"], "does not exist, or you may not use it"),
    (["folder", "files", "keep:runs"], "aliquot folder files keep runs"),
    (["folder", "files", "keep:"], "aliquot folder files keep ."),
])
def test_a_wrong_name_is_answered_with_the_next_command(cluster, words, says):
    done = cluster.cli(*words)
    assert done.returncode != 0 and says in done.stderr, done


def test_many_that_are_detached_from_have_their_logs_named(cluster):
    words = ("run", "--detach", "--count", "2", "-r", "cpu=1", "-r", "mem=32m")
    try:
        assert "aliquot logs many-1" in cluster.cli(*words, "--name", "many", "--", "true").stderr
        for name, *more in (["rows", "-o", "json"], ["silent", "--quiet"]):
            done = cluster.cli(*words, "--name", name, *more, "--", "true")
            assert done.returncode == 0 and not done.stderr, done
    finally:
        cluster.cli("rm", "--all", "--wait", "--yes")


def test_gpu_is_not_taken_for_cpu(cluster):
    said = cluster.cli("run", "-r", "gpu=1", "--", "true").stderr
    assert "cuda.shares" in said and "did you mean 'cpu'" not in said, said


@pytest.mark.parametrize("how", ["argument", "--endpoint", "ALIQUOT_ENDPOINT"])
def test_profiles_are_kept_side_by_side(cluster, tmp_path, how):
    """A file of before has one profile; the login to another address makes a second."""
    file = tmp_path / "aliquot/profiles.json"
    keys = {"access_key": ADMIN[0], "secret_key": ADMIN[1]}
    endpoint = cluster.cli_env()["ALIQUOT_ENDPOINT"]
    other = endpoint.replace("127.0.0.1", "127.0.0.2")
    file.parent.mkdir()
    file.touch(0o600)
    file.write_text(json.dumps({"current": "default", "profiles": {
        "default": {**keys, "endpoint": other, "image": "mine"}}}))
    bare = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}

    def aliquot(*words, **more):
        return subprocess.run([ALIQUOT, *words], env={**cluster.env, **bare, **more}, text=True,
                              capture_output=True, input=ADMIN[1] + "\n", timeout=60, check=False)

    words = {"argument": [endpoint], "--endpoint": [how, endpoint]}.get(how, [])
    variables = {how: endpoint} if how == "ALIQUOT_ENDPOINT" else {}
    assert aliquot("login", *words, "--access-key", ADMIN[0], "--password-stdin",
                   **variables).returncode == 0
    name = endpoint.split("//")[1]
    assert aliquot("profile", "ls", "-o", "name").stdout.split() == ["default", name]
    assert [line[0] for line in aliquot("profile", "ls", "--no-header").stdout.splitlines()] == [" ", "*"]
    kept = json.loads(file.read_text())["profiles"]
    assert kept["default"] == {**keys, "endpoint": other, "image": "mine"}
    assert kept[name]["endpoint"] == endpoint and aliquot("whoami").returncode == 0
    assert aliquot("profile", "use", "default").returncode == 0
    assert json.loads(file.read_text())["current"] == "default"
    assert aliquot("ps").returncode == 8 and aliquot("ps", "--profile", name).returncode == 0
    assert aliquot("ps", ALIQUOT_PROFILE=name).returncode == 0
    changed = json.loads(file.read_text())
    changed["profiles"][name]["access_key"] = USER[0]
    changed["profiles"]["admin"] = {**keys, "endpoint": endpoint}
    file.write_text(json.dumps(changed))
    assert aliquot("login", *words, "--access-key", ADMIN[0], "--password-stdin",
                   **variables).returncode == 0
    assert json.loads(file.read_text()) == {**changed, "current": "admin"}
    assert aliquot("profile", "rm", "admin").returncode == 0
    assert aliquot("completion", "words", "--", "profile", "use", "d").stdout == f"default\t{other}\n"
    assert "there are: default, " + name in aliquot("profile", "use", "nowhere").stderr
    assert ADMIN[1] not in aliquot("profile", "ls", "-o", "json").stdout
    assert aliquot("profile", "rm", "default").returncode == 0
    assert list(json.loads(file.read_text())["profiles"]) == [name]


def test_logins_at_once(cluster, tmp_path):
    """Each leaves its profile."""
    words = [ALIQUOT, "login", cluster.cli_env()["ALIQUOT_ENDPOINT"], "--access-key", ADMIN[0],
             "--password-stdin", "--profile"]
    names = [f"profile{number}" for number in range(12)]
    env = {**cluster.env, "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    with contextlib.ExitStack() as stack:
        logins = [stack.enter_context(subprocess.Popen([*words, name], env=env, text=True,
                                                       stdin=subprocess.PIPE,
                                                       stderr=subprocess.PIPE)) for name in names]
        for login in logins:
            login.stdin.write(ADMIN[1] + "\n")
            login.stdin.close()
        assert [login.wait(60) for login in logins] == [0] * len(names)
    assert sorted(json.loads((tmp_path / "aliquot/profiles.json").read_text())["profiles"]) == sorted(names)


def test_login_elsewhere_does_not_take_settings_of_another_profile(tmp_path):
    """One cluster's certificate is not verified: the password for another goes to nobody unverified."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=other",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_error(500)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"https://127.0.0.1:{server.server_address[1]}"
    file = tmp_path / "aliquot/profiles.json"
    file.parent.mkdir()
    file.touch(0o600)

    def login(**profiles):
        file.write_text(json.dumps({"current": "lab", "profiles": profiles}))
        return subprocess.run([ALIQUOT, "login", url, "me@example.com", "--password-stdin"], text=True,
                              env={"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)},
                              capture_output=True, input="S3cret-words\n", timeout=60, check=False)
    try:
        lab = {"endpoint": "https://127.0.0.2:1", "skip_verify": "yes", "domain": "labs"}
        done = login(lab=lab)
        assert done.returncode and "certificate" in done.stderr and not seen, (done, seen)
        # its own profile says so, or has its authority
        for own in {"skip_verify": "yes"}, {"ca_file": str(tmp_path / "cert.pem")}:
            assert login(lab={**lab, "skip_verify": "no"}, own={"endpoint": url, **own}).returncode
            assert json.loads(seen.pop())["domain"] == "default" and not seen
    finally:
        server.shutdown()
        server.server_close()
