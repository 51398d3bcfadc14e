# SPDX-License-Identifier: Apache-2.0
"""What the command line says to one who asked for too much, or typed another program's words."""

import contextlib
import os
import re
import socket
import subprocess
import threading

import pytest

from cluster import Cluster, wait_for
from terminal import Terminal
from world import BUILD

pytestmark = pytest.mark.gate

SMALL = ("-r", "cpu=1", "-r", "mem=32m")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="2") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def ended(cluster):
    cluster.cli("session", "create", "--name", "ended", "-r", "cpu=1000", "--wait-for-capacity",
                "--", "true")
    assert cluster.cli("rm", "--wait", "ended").returncode == 0


# ---- refusals ----

@pytest.mark.parametrize("words, says", [
    (["-r", "cpu=1000"], "-r cpu: No agent has cpu=1000: ask for 2 at most"),
    (["--count", "2", "-r", "cpu=3"], "-r cpu: No agent has cpu=3"),
    (["-r", "cpu=many"], "-r cpu: 'many' is not a number"),
    (["-r", "cpu=1.5"], "-r cpu: cores are given whole"),
    (["-r", "cpus=1"], "-r cpus: unknown slot type 'cpus'"),
    (["-r", "mem=100"], "mem=100 is that many bytes: say mem=100m for MiB"),
    (["--timeout", "366d"], "--timeout: 31622400 is not within 0..31536000 seconds"),
    (["--timeout", "-5"], "--timeout takes a duration: seconds, or numbers with s, m, h, d or w"),
    (["--timeout", "nan"], "--timeout takes a duration"),
    (["--timeout", "00:30:00"], "--timeout takes a duration"),
    (["--timeout", "99999999999999999999"], "--timeout takes a duration"),
    (["--port", "99999"], "--port: 99999 is not within 1024..65535"),
    (["--cluster-size", "0"], "--cluster-size: a session has 1 to 1000 kernels, not 0"),
    (["--starts-at", "soon"], "--starts-at: 'soon' is neither a date nor a duration"),
    (["--name", "a b"], "--name: the name may have letters"),
    (["--after", "nobody"], "no session or array of yours is called 'nobody'\n"),
])
def test_what_is_refused_is_called_as_it_was_typed(cluster, words, says):
    done = cluster.cli("run", *words, "--", "true")
    assert done.returncode == 125 and done.stderr.startswith(f"aliquot: {says}"), done.stderr


@pytest.mark.parametrize("words, says", [
    (["logs", "nobody"], "you have no session 'nobody'"),
    (["agent", "drain", "nobody"], "agent 'nobody': there is no agent 'nobody'"),
    (["admin", "user", "rm", "no@example.com"], "there is no user 'no@example.com'"),
    (["admin", "keypair", "rm", "nokey"], "there is no keypair 'nokey'"),
    (["admin", "project", "create", "x", "--domain", "nowhere"], "there is no domain 'nowhere'"),
])
def test_what_is_missing_is_said_once(cluster, words, says):
    done = cluster.cli(*words)
    assert done.returncode == 5 and done.stderr.splitlines()[0] == f"aliquot: {says}", done.stderr


def test_a_status_of_others(cluster):
    done = cluster.cli("ps", "--all", "--filter", "status=failed")
    assert done.returncode == 4 and "result FAILURE" in done.stderr, done
    assert cluster.cli("ps", "--all", "--filter", "result=failure").returncode == 0


def test_a_name_that_is_taken_is_said_once(cluster):
    for _ in range(2):
        done = cluster.cli("session", "create", "--starts-at", "1h", "-t", "taken", "--", "true")
    cluster.cli("rm", "taken")
    assert done.stderr.startswith("aliquot: a live session of yours is already called 'taken'")
    assert "(" not in done.stderr, done


# ---- words of others ----

@pytest.mark.parametrize("words, says", [
    (["--gpus", "1"], "-r cuda.shares="),
    (["--mem", "4g"], "-r mem=4g"),
    (["-c", "2"], "-r cpu=N"),
    (["--partition", "gpu"], "--resource-group NAME"),
    (["-p", "gpu"], "a partition is --resource-group NAME, a port --port N"),
    (["-p", "8080:80"], "--port N"),
    (["--volume", "/data:/data"], "--mount FOLDER"),
    (["--job-name=x"], "--name NAME"),
    (["-t", "10:00"], "a time limit is given with --timeout 10m, not -t 10:00"),
    (["-t", "5"], "--timeout"),
])
def test_options_of_others_are_told_ours(cluster, words, says):
    done = cluster.cli("run", *words, "true")
    assert done.returncode == 125 and says in done.stderr, done.stderr
    assert "did you mean" not in done.stderr


def test_a_directory_of_this_machine_is_no_folder(cluster):
    done = cluster.cli("run", "-v", "/data:/data", "true")
    assert done.returncode == 125 and "aliquot folder cp -r /data NAME:" in done.stderr, done.stderr


def test_a_time_limit_is_told_on_a_terminal(cluster):
    env = {**cluster.env, **cluster.cli_env(), "TERM": "xterm"}
    terminal = Terminal(str(BUILD / "aliquot"), "run", "-t", "1-12:00", "true", env=env)
    terminal.expect(b"--timeout 10m")
    assert terminal.wait() == 125


def test_other_options_keep_their_errors(cluster):
    done = cluster.cli("run", "--priorty", "5", "true")
    assert "did you mean '--priority'" in done.stderr
    assert "instead of" not in cluster.cli("ps", "--mem", "4g").stderr


@pytest.mark.parametrize("word, says", [
    ("sbcast", "aliquot cp FILE SESSION:PATH"),
    ("build", "aliquot image pull"), ("pause", "aliquot rm"),
])
def test_what_is_not_there_yet_says_so(cluster, word, says):
    done = cluster.cli(word, "a", "b")
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert f"there is no command '{word}' yet" in done.stderr
    assert f"  {word} " in cluster.cli("help", "other-names").stdout


@pytest.mark.parametrize("words, says", [
    (["stats"], "aliquot top"), (["logs"], "aliquot ps"), (["exec"], "aliquot ps"),
])
def test_a_session_that_is_not_named(cluster, words, says):
    done = cluster.cli(*words)
    assert done.returncode in (2, 125) and says in done.stderr, done.stderr


@pytest.mark.parametrize("words", [["ubuntu", "bash"], ["python:3.12", "python3"], ["trainer", "x"],
                                   ["debian"]])
def test_an_image_where_a_program_is_wanted(cluster, words):
    cluster.cli("image", "alias", "trainer", "registry.example.com/ml/trainer:1")
    done = cluster.cli("run", *SMALL, *words)
    assert done.returncode == 127, done
    assert f"aliquot run --image {words[0]} {' '.join(words[1:] or ['COMMAND'])}\n" in done.stderr


def test_an_image_on_a_terminal(cluster):
    env = {**cluster.env, **cluster.cli_env(), "TERM": "xterm"}
    terminal = Terminal(str(BUILD / "aliquot"), "run", "-it", *SMALL, "ubuntu", "bash", env=env,
                        columns=200)
    terminal.expect(b"aliquot run -it --image ubuntu bash")
    assert terminal.wait() == 127


@pytest.mark.parametrize("words", [["no-such-program", "x"], ["./missing", "x"],
                                   ["exit 127"], ["/bin/ubuntu"]])
def test_no_image_is_guessed(cluster, words):
    done = cluster.cli("run", *SMALL, "--", *words)
    assert done.returncode == 127 and "--image" not in done.stderr, done


# ---- why ----

@pytest.mark.parametrize("command, lines", [
    ("exit 0", ["Its program ended with exit status 0."]),
    ("exit 3", ["Its program ended with exit status 3.", "What it has printed: aliquot logs {}"]),
    ("kill -SEGV $$", ["Its program ended with exit status 139, that of signal 11 (Segmentation "
                       "fault).", "What it has printed: aliquot logs {}"]),
])
def test_why_says_how_a_program_ended(cluster, command, lines):
    name = cluster.cli("run", "--detach", "-o", "name", *SMALL, command).stdout.strip()
    cluster.cli("session", "wait", name)
    shown = cluster.cli("why", name).stdout.splitlines()
    assert [line.strip() for line in shown[2:]] == [line.format(name) for line in lines]


def test_why_says_where_it_runs(cluster):
    cluster.cli("session", "create", "-t", "running", *SMALL)
    wait_for(lambda: "RUNNING" in cluster.cli("why", "running").stdout, 30, "it to run")
    assert "  It runs on agent.\n" in cluster.cli("why", "running").stdout
    cluster.cli("rm", "--wait", "running")
    assert "It was ended: it was asked to end." in cluster.cli("why", "running").stdout


def test_why_says_until_when_it_waits(cluster):
    cluster.cli("run", "--detach", "--name", "holds", "-r", "cpu=2", "-r", "mem=32m", "--timeout",
                "10m", "--", "sleep", "600")
    cluster.cli("run", "--detach", "--name", "waits", *SMALL, "--", "true")
    wait_for(lambda: "at the latest" in cluster.cli("why", "waits").stdout, 30, "an estimate")
    assert re.search(r"it starts at 20\d\d-\d\d-\d\d [\d:]{8} \(in \d+ \w+\) at the latest",
                     cluster.cli("why", "waits").stdout)
    cluster.cli("rm", "--wait", "holds", "waits")


# ---- what helps, by what has failed ----

START = "start a cluster here"
LOOK = "see where it looks: aliquot config show"
HINTS = (START, LOOK, "aliquot ps --all", "aliquot agent ls", "aliquot login", "aliquot whoami")


@contextlib.contextmanager
def answering(reply):
    """The address of a server that answers each connection so, None: not at all."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    peer = listener.accept()[0]
                    with peer:
                        peer.recv(65536)
                        peer.sendall(reply)
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def hints_after(done):
    assert done.returncode not in (0, None), done
    return [hint for hint in HINTS if hint in done.stderr]


def answer(status):
    return b"HTTP/1.1 %d No\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}" % status


@pytest.mark.parametrize("endpoint, hints", [
    ("http://127.0.0.1:1", [START, LOOK]),
    ("http://name.invalid:8081", [LOOK]),
])
def test_a_manager_that_is_not_reached(cluster, endpoint, hints):
    done = cluster.cli("ps", "--endpoint", endpoint)
    assert done.returncode == 8 and hints_after(done) == hints, done


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 2", b"SSH-2.0-OpenSSH\r\n", answer(502),
                                   answer(503), answer(500), answer(404)])
def test_a_server_that_is_reached_and_fails(cluster, reply):
    with answering(reply) as endpoint:
        assert hints_after(cluster.cli("ps", "--endpoint", endpoint)) == []


def test_tls_where_there_is_none(cluster):
    endpoint = cluster.cli_env()["ALIQUOT_ENDPOINT"].replace("http:", "https:")
    assert hints_after(cluster.cli("ps", "--endpoint", endpoint)) == []


@pytest.mark.parametrize("words, hints", [
    (["session", "info", "nobody"], ["aliquot ps --all"]),
    (["exec", "nobody", "true"], ["aliquot ps --all"]),
    (["agent", "drain", "nobody"], ["aliquot agent ls"]),
    (["session", "create", "--group", "nowhere", "--", "true"], []),
    (["cp", "/no/such/file", "ended:x"], []),
    (["submit", "/no/such/script"], []),
    (["submit", "/proc/self/mem"], []),
    (["exec", "ended", "true"], []),
    (["session", "attach", "ended"], []),
])
def test_what_is_not_there(cluster, ended, words, hints):
    assert hints_after(cluster.cli(*words)) == hints, cluster.cli(*words)


@pytest.mark.parametrize("text, mode, says", [("{", 0o600, "is not a file of profiles"),
                                              ("{}", 0o644, "others may read it")])
def test_settings_that_cannot_be_read(cluster, tmp_path, text, mode, says):
    file = tmp_path / "aliquot/profiles.json"
    file.parent.mkdir()
    file.write_text(text)
    file.chmod(mode)
    done = cluster.cli("ps", XDG_CONFIG_HOME=str(tmp_path))
    assert says in done.stderr and hints_after(done) == [], done


def test_output_that_nobody_reads(cluster):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([BUILD / "aliquot", "ps", "--all"], env={**cluster.env,
                          **cluster.cli_env()}, stdout=writer, stderr=subprocess.PIPE, text=True,
                          check=False)
    os.close(writer)
    assert not [hint for hint in HINTS if hint in done.stderr], done


def test_a_key_that_is_refused(cluster):
    done = cluster.run("aliquot", "ps", **{**cluster.cli_env(), "ALIQUOT_SECRET_KEY": "wrong"})
    assert done.returncode == 6 and hints_after(done) == ["aliquot login", "aliquot whoami"]
