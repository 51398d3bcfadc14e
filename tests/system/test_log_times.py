# SPDX-License-Identifier: Apache-2.0
"""When the lines of a log were printed: recorded by the node, whatever their text says."""

import contextlib
import datetime
import json
import os
import re
import signal
import subprocess

import pytest

from cluster import Cluster, wait_for
from world import BUILD, processes_of

pytestmark = pytest.mark.gate

SMALL = ("-r", "cpu=1", "-r", "mem=32m")
STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) (.*)")
JUMP = 300  # seconds that the clocks gain between two lines; a few may not spoil signatures


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_SESSIONS_KILL_GRACE="1s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


class Speaker:
    """A session that prints a line each time it is told to, 'one' at first."""

    def __init__(self, cluster, name, folder):
        self.cluster, self.name, self.folder, self.wall = cluster, name, folder, 0
        # the text's own date says nothing
        self.cli("session", "create", *SMALL, "-t", name, "--", "sh", "-c",
                 f"echo 2001-02-03 04:05:06 one; for word in two three end; do "
                 f"until test -e {folder}/$word; do sleep 0.05; done; echo $word; done")
        self.wait_for("one")

    def cli(self, *words, status=0):
        done = self.cluster.cli(*words)
        assert done.returncode == status, f"{words}: {done}"
        return done.stdout

    def logs(self, *options):
        return self.cli("logs", *options, self.name)

    def words(self, *options):
        """The last word of each line."""
        return [line.split()[-1] for line in self.logs(*options).splitlines()]

    def times(self, *options):
        found = [STAMP.fullmatch(line) for line in self.logs("-t", *options).splitlines()]
        assert all(found), found
        return {match[2].split()[-1]: datetime.datetime.fromisoformat(match[1][:-1] + "+00:00")
                for match in found}

    def wait_for(self, word):
        wait_for(lambda: word in self.words(), 60, lambda: f"{word} in {self.words()}")

    def jump(self):
        self.wall += JUMP
        self.cluster.jump(self.wall)

    def say(self, word):
        (self.folder / word).touch()

    def end(self):
        for word in ("two", "three", "end"):
            self.say(word)
        wait_for(lambda: self.cli("ps", "-q", "--filter", "name=" + self.name) == "", 60, "its end")

    @property
    def kernel_folder(self):
        shown = json.loads(self.cli("session", "info", self.name, "-o", "json"))
        return self.cluster.folder / "agent" / "kernels" / shown["kernels"][0]["id"]


@pytest.fixture
def speaker(cluster, tmp_path, request):
    speaker = Speaker(cluster, request.node.name.replace("_", "-")[:40].rstrip("-"), tmp_path)
    yield speaker
    cluster.cli("rm", "--all", "--yes", "--wait")
    cluster.jump(0)


def check_two_times(speaker):
    """The clocks have gained JUMP between them."""
    times = speaker.times()
    assert JUMP <= (times["two"] - times["one"]).total_seconds() < 2 * JUMP, times
    return times


def test_lines_have_the_times_of_their_printing(speaker):
    speaker.jump()
    speaker.say("two")
    speaker.wait_for("two")
    times = check_two_times(speaker)
    between = times["one"] + datetime.timedelta(seconds=1)
    for since in (between.isoformat(), between.isoformat().replace("+00:00", "Z"),
                  between.astimezone(datetime.timezone(datetime.timedelta(hours=5))).isoformat(),
                  str(between.timestamp()), "4m"):
        assert speaker.words("--since", since) == ["two"], since
    assert list(speaker.times("--tail", "1")) == ["two"]
    assert list(speaker.times("--grep", "^2001.*one")) == ["one"], "the pattern is for the text"
    assert speaker.words("--since", "4m", "--grep", "one") == []
    assert speaker.words("--since", "1h", "--tail", "1", "--kernel", "main1") == ["two"]
    assert speaker.words("--since", "2001-02-03") == ["one", "two"]
    speaker.end()
    kept = speaker.times()
    assert list(kept) == ["one", "two", "three", "end"] and kept["two"] == times["two"]
    assert speaker.words("--since", "4m") == ["two", "three", "end"]
    assert speaker.logs() == "2001-02-03 04:05:06 one\ntwo\nthree\nend\n", "as it was printed"


def test_lines_are_followed(cluster, speaker):
    speaker.jump()
    logs = subprocess.Popen([BUILD / "aliquot", "logs", "-f", "-t", "--since", "4m", speaker.name],
                            env={**cluster.env, **cluster.cli_env()}, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    for word in ("two", "three", "end"):
        speaker.say(word)
        assert STAMP.fullmatch(logs.stdout.readline().rstrip("\n"))[2] == word
    assert (logs.stdout.read(), logs.wait(60)) == ("", 0)


def monitor_of(cluster, folder):
    """Its pid; None while the second that a new agent starts has not ended yet."""
    found = [pid for pid, command in processes_of(cluster.folder).items()
             if "aliquot-monitor" in command and str(folder) in command]
    return found[0] if len(found) == 1 else None


def test_agent_and_monitor_are_killed(cluster, speaker):
    """What the monitor prints while there is no agent has its time, and all of it is kept
    when the monitor is killed, too."""
    folder = speaker.kernel_folder / "run" / "1"
    cluster.programs["agent"].kill()
    speaker.jump()
    speaker.say("two")
    wait_for(lambda: b"two" in (folder / "log").read_bytes(), 60, "a line without the agent")
    speaker.jump()
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    times = check_two_times(speaker)
    os.kill(wait_for(lambda: monitor_of(cluster, folder), 60, "one monitor"), signal.SIGKILL)
    wait_for(lambda: speaker.cli("ps", "-q", "--filter", "name=" + speaker.name) == "", 60, "its end")
    assert speaker.times() == times
    assert speaker.words("--since", "9m") == ["two"] and speaker.words("--since", "4m") == []


def test_times_that_were_not_recorded(cluster, speaker):
    """Of a monitor that did not: refused in one sentence; without the options it is shown."""
    (speaker.kernel_folder / "run" / "1" / "times").unlink()
    for options in (["-t"], ["--since", "10m"], ["-t", "--follow", "--tail", "1"]):
        done = cluster.cli("logs", *options, speaker.name)
        assert done.returncode == 4 and done.stdout == "", done
        assert "were not recorded" in done.stderr and done.stderr.count("\n") == 1, done
    assert speaker.words() == ["one"]


@pytest.mark.parametrize("text", ("soon", "10x", "2026-13-01", "-5m", "12:00"))
def test_since_that_cannot_be_read(cluster, text):
    done = cluster.cli("logs", "--since=" + text, "any")
    assert done.returncode == 2 and "--since" in done.stderr and text in done.stderr


# ---- how much, and of what ----

LONG = 3_000_000


@pytest.fixture(scope="module")
def printed(cluster):
    """One that has printed a line of three million characters, and others that are odd."""
    program = (f"import sys; out = sys.stdout.buffer; "
               f"out.write(b'first\\n' + b'x' * {LONG} + b' needle\\n'); "
               "out.write(b'nul\\0behind\\n\\x80\\xff\\x1b broken\\nterminal\\r\\n"
               "\\xc3\\xa9t\\xc3\\xa9\\nlast')")
    done = cluster.cli("run", *SMALL, "--name", "odd-lines", "-d", "--", "python3", "-c", program)
    assert done.returncode == 0, done
    cluster.cli("session", "wait", "odd-lines")

    def logs(*options):
        done = subprocess.run([BUILD / "aliquot", "logs", *options, "odd-lines"],
                              env={**cluster.env, **cluster.cli_env(), "LC_ALL": "C.UTF-8"},
                              capture_output=True)
        assert done.returncode == 0, done
        return done.stdout
    return logs


def test_a_long_line_is_one_line(printed):
    long = b"x" * LONG + b" needle\n"
    assert printed("--tail", "7").startswith(b"first\n" + long)
    assert printed("--tail", "6").startswith(long)
    assert printed("--grep", "^x+ needle$") == long
    stamped = printed("-t", "--grep", "^x+ needle$")
    assert re.fullmatch(rb"\S+Z x+ needle\n", stamped) and len(stamped) == len(long) + 28
    assert printed("-t").count(b"Z ") == 7


def test_grep_reads_all_bytes(printed):
    assert printed("--grep", "^behind|behind$") == b"nul\0behind\n"
    assert printed("-t", "--grep", "behind$").endswith(b"Z nul\0behind\n")
    assert printed("--grep", "broken") == b"\x80\xff\x1b broken\n"
    assert printed("--grep", "terminal$") == b"terminal\r\n", "what a terminal adds is not meant"
    assert printed("--grep", "^.t.$") == "\u00e9t\u00e9\n".encode()
    assert printed("--tail", "1") == b"last"
    assert printed("--tail", "2", "--grep", "t") == "\u00e9t\u00e9\nlast\n".encode()
    assert printed("--tail", "2", "--grep", "nul") == b""
    assert printed("--tail", "1000000").startswith(b"first\n")


def test_tail_of_nothing(cluster, printed, speaker):
    assert printed("--tail", "0") == printed("--tail=0", "-f") == printed("--tail", "0", "-t") == b""
    logs = subprocess.Popen([BUILD / "aliquot", "logs", "-f", "--tail", "0", speaker.name],
                            env={**cluster.env, **cluster.cli_env()}, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    wait_for(lambda: str(speaker.kernel_folder) in open_files(cluster), 60, "the reader")
    speaker.end()
    assert (logs.stdout.read(), logs.wait(60)) == ("two\nthree\nend\n", 0)


def open_files(cluster):
    """What the agent reads."""
    pid = cluster.programs["agent"].pid
    files = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            files.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return "\n".join(file for file in files if file.endswith("/log"))


@pytest.mark.parametrize("text, says", [
    ("-1", "--tail takes a whole number"), ("1.5", "--tail takes a whole number"),
    ("99999999999999999999", "--tail takes a whole number"),
    ("1000001", "--tail: 1000001 is not within 0..1000000")])
def test_tail_that_cannot_be(cluster, printed, text, says):
    done = cluster.cli("logs", "--tail", text, "odd-lines")
    assert done.returncode in (2, 4) and done.stdout == "" and says in done.stderr, done
