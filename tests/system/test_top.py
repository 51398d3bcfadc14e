# SPDX-License-Identifier: Apache-2.0
"""'aliquot top' and 'session stats' on a terminal, as a person would use them."""

import json
import os
import re
import shlex
import signal
import subprocess

import pytest

from client import ADMIN, USER
from cluster import Cluster, wait_for, wait_status
from terminal_screen import Screen
from test_accelerators import TWO_GPUS
from test_statistics import BUSY, QUICK, begin, end, measured
from world import BUILD

ALIQUOT = str(BUILD / "aliquot")
UP, DOWN, PAGE_UP, PAGE_DOWN = b"\x1b[A", b"\x1b[B", b"\x1b[5~", b"\x1b[6~"
HOME, END, ENTER, ESCAPE = b"\x1b[H", b"\x1b[F", b"\r", b"\x1b"
IDLE = "exec sleep 10000"


@pytest.fixture(scope="module")
def gpus():
    """An agent with mock GPUs, and three sessions that differ in all that "top" sorts by."""
    with Cluster(ALIQUOT_RESOURCE_CPUS="16", ALIQUOT_SESSIONS_KILL_GRACE="0.3s",
                 **QUICK) as cluster:
        file = cluster.folder / "mock-accelerator.toml"
        file.write_text(TWO_GPUS)
        cluster.start_manager()
        cluster.start_agent(ALIQUOT_ACCELERATORS_MOCK=str(file))
        cluster.ids = {"zebra": begin(cluster, "zebra", BUSY, cpu="2"),
                       "Apple": begin(cluster, "Apple", IDLE, **{"cuda.shares": "1"}),
                       "mango": begin(cluster, "mango", IDLE)}
        measured(cluster.client(), cluster.ids["zebra"], "cpu_util", "mem",
                 condition=lambda s: s["cpu_util"]["current"] != "0")
        measured(cluster.client(), cluster.ids["Apple"], "cuda_util", "mem")
        measured(cluster.client(), cluster.ids["mango"], "mem")
        yield cluster
        for session in cluster.ids.values():
            end(cluster, session)
        cluster.check_nothing_left()
        cluster.stop()


def env_of(cluster, who=ADMIN, **more):
    return {**cluster.env, **cluster.cli_env(who), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8",
            **more}


def look(cluster, *words, who=ADMIN, rows=24, columns=120, **more):
    return Screen(ALIQUOT, *words, env=env_of(cluster, who, **more), rows=rows, columns=columns)


def rows_of(lines):
    return [line for line in lines if re.match(r"(> |  )(zebra|Apple|mango|lent) +\[", line)]


def names(lines):
    return [row[2:].split()[0] for row in rows_of(lines)]


def selected(lines):
    return next((row[2:].split()[0] for row in rows_of(lines) if row.startswith(">")), None)


def show(cluster, *words, **more):
    """'top' with its rows on the screen."""
    screen = look(cluster, *(words or ["top"]), **more)
    screen.until(lambda lines: len(names(lines)) == 3, "three sessions")
    return screen


# ---- staying and leaving ----

@pytest.mark.gate
@pytest.mark.parametrize("key", [b"q", ESCAPE, b"\x03"], ids=["q", "Esc", "Ctrl-C"])
def test_a_key_leaves(gpus, key):
    screen = show(gpus)
    assert screen.is_alternate and not screen.has_cursor and screen.is_raw
    assert screen.leave(key) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_leaves_the_terminal_as_it_was(gpus, number):
    screen = show(gpus)
    os.kill(screen.pid, number)
    assert screen.see_end() == (0 if number == signal.SIGINT else -number)


def shell(cluster):
    """A shell with job control, as it is at a prompt."""
    screen = Screen("/bin/bash", "--norc", "--noprofile", "--noediting", "-i",
                    env=env_of(cluster, PS1="ready> "), columns=200)
    screen.until_shown("ready>")
    screen.send(f"{shlex.quote(ALIQUOT)} top\r".encode())
    screen.until(lambda lines: screen.is_alternate and len(names(lines)) == 3)
    return screen


def test_it_can_be_stopped_and_goes_on(gpus):
    screen = shell(gpus)
    for _ in range(2):
        screen.send(b"\x1a")
        screen.until_shown("Stopped")
        screen.until_line(r"ready>$")
        assert not screen.is_alternate and screen.has_cursor and not screen.is_raw
        screen.send(b"fg\r")
        screen.until(lambda lines: screen.is_alternate and len(names(lines)) == 3)
        assert screen.is_raw
    screen.send(b"q")
    screen.until_line(r"ready>$")
    assert screen.leave(b"exit 0\r") == 0


def test_ended_while_it_is_stopped(gpus):
    """It must not touch the terminal again, which is the shell's."""
    screen = shell(gpus)
    screen.send(b"\x1a")
    screen.until_shown("Stopped")
    screen.until_line(r"ready>$")
    screen.send(b"jobs -p\r")
    pid = screen.until_line("^(?:ready> )?([0-9]+)$")[1]
    screen.send(b"kill %1\r")
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), 60, "its end")
    screen.send(b"echo go''ne\r")
    screen.until_line("^(ready> )?gone$")
    assert not screen.is_alternate
    assert screen.leave(b"exit 0\r") == 0


def test_it_follows_the_size_of_the_terminal(gpus):
    screen = show(gpus, rows=24, columns=120)
    for rows, columns in [(30, 130), (12, 60), (24, 120)]:
        screen.resize(rows, columns)
        screen.until(lambda lines: "q quit" in lines[rows - 1] and len(names(lines)) == 3)
        screen.is_settled = True
        screen.send(b"s\x0c")
        screen.until(lambda lines: len(names(lines)) == 3)
    assert screen.leave(b"q") == 0


def test_nothing_is_erased_before_it_is_drawn(gpus):
    screen = show(gpus, "top", "--interval", "0.1s")
    for _ in range(5):
        before = screen.lines[0]
        screen.until(lambda lines: lines[0] != before, "another second")
    assert screen.leave(b"q") == 0 and screen.erased == 0


# ---- what keys do ----

@pytest.mark.gate
def test_sorting(gpus):
    screen = show(gpus)
    screen.until_shown("CPU CORES▼")
    screen.until(lambda lines: names(lines)[0] == "zebra")
    screen.send(b"c")
    screen.until_shown("CPU CORES▲")
    screen.until(lambda lines: names(lines)[-1] == "zebra")
    screen.send(b"g")
    screen.until_shown("ACCELERATORS▼")
    screen.until(lambda lines: names(lines)[0] == "Apple")
    screen.send(b"n")
    screen.until_shown("SESSION▲")
    screen.until(lambda lines: names(lines) == ["Apple", "mango", "zebra"])
    screen.send(b"n")
    screen.until_shown("SESSION▼")
    screen.until(lambda lines: names(lines) == ["zebra", "mango", "Apple"])
    screen.send(b"a")
    screen.until(lambda lines: names(lines) == ["zebra", "Apple", "mango"], "by age")
    screen.send(b"a")
    screen.until(lambda lines: names(lines) == ["mango", "Apple", "zebra"], "by age")
    screen.send(b"m")
    screen.until_shown("MEMORY▼")
    assert screen.leave(b"q") == 0


def test_the_selected_row_stays_selected(gpus):
    screen = show(gpus)
    screen.send(b"n" + END)
    screen.until(lambda lines: selected(lines) == "zebra")
    screen.send(UP)
    screen.until(lambda lines: selected(lines) == "mango")
    screen.send(b"n")
    screen.until(lambda lines: names(lines)[0] == "zebra" and selected(lines) == "mango")
    screen.send(HOME)
    screen.until(lambda lines: selected(lines) == "zebra")
    screen.send(DOWN + DOWN + DOWN)
    screen.until(lambda lines: selected(lines) == "Apple")
    screen.send(UP)
    screen.until(lambda lines: selected(lines) == "mango")
    assert screen.leave(b"q") == 0


def test_scrolling(gpus):
    """A terminal with one row to spare shows the one that is selected."""
    screen = look(gpus, "top", rows=5, columns=120)
    screen.until(lambda lines: "q quit" in lines[4] and names(lines))
    screen.send(b"dn")
    screen.until_shown("SESSION▲")
    screen.send(HOME)
    screen.until(lambda lines: names(lines) == ["Apple", "mango"])
    screen.send(PAGE_DOWN)
    screen.until(lambda lines: selected(lines) == "zebra" and names(lines) == ["mango", "zebra"])
    screen.send(PAGE_UP)
    screen.until(lambda lines: selected(lines) == "Apple" and names(lines) == ["Apple", "mango"])
    assert screen.leave(b"q") == 0


@pytest.mark.gate
def test_search(gpus):
    screen = show(gpus)
    screen.send(b"/AP")
    screen.until(lambda lines: names(lines) == ["Apple"] and lines[23].startswith("/AP_"))
    screen.send(b"\x7f\x7fngo")
    screen.until(lambda lines: names(lines) == ["mango"], "a key of the search, not of the list")
    screen.send(ENTER)
    screen.until(lambda lines: names(lines) == ["mango"] and "matching 'ngo'" in lines[0]
                 and "q quit" in lines[23])
    screen.send(ESCAPE)
    screen.until(lambda lines: len(names(lines)) == 3 and "matching" not in lines[0])
    screen.send(b"/nobody")
    screen.until_shown("no session matches")
    screen.send(ESCAPE)
    screen.until(lambda lines: len(names(lines)) == 3)
    screen.send(b"/admin@")
    screen.until(lambda lines: len(names(lines)) == 3, "by user")
    assert screen.leave(b"\x03") == 0


def test_a_pause_stops_the_picture(gpus):
    screen = show(gpus, "top", "--interval", "0.1s")
    screen.send(b" ")
    screen.until_shown("PAUSED")
    before = screen.lines
    screen.send(b"n")  # it still sorts
    screen.until(lambda lines: names(lines) == ["Apple", "mango", "zebra"])
    assert screen.lines[0] == before[0]
    screen.send(b"p")
    screen.until_hidden("PAUSED")
    screen.until(lambda lines: lines[0] != before[0].replace("  PAUSED", ""), "it goes on")
    assert screen.leave(b"q") == 0


def test_help_and_devices(gpus):
    screen = show(gpus)
    screen.until_shown("agent  ALIVE")
    screen.send(b"?")
    screen.until_shown("sort by accelerators")
    screen.send(b"x")
    screen.until(lambda lines: len(names(lines)) == 3)
    screen.send(b"d")
    screen.until_hidden("agent  ALIVE")
    screen.send(b"d")
    screen.until_shown("agent  ALIVE")
    assert screen.leave(b"q") == 0


@pytest.mark.gate
def test_details_of_a_session(gpus):
    screen = show(gpus)
    screen.send(b"g")
    screen.until(lambda lines: names(lines)[0] == "Apple")
    screen.send(HOME + ENTER)
    screen.until_shown("Apple  RUNNING")
    screen.until_line(r"cuda_util .*%?")
    screen.send(ESCAPE)
    screen.until(lambda lines: len(names(lines)) == 3)
    screen.send(ENTER)
    screen.until_shown("Apple  RUNNING")
    assert screen.leave(b"q") == 0


# ---- what it shows ----

@pytest.fixture
def still(gpus):
    """No sample comes, so all look at the same one."""
    agent = gpus.programs["agent"]
    agent.signal(signal.SIGSTOP)
    yield gpus
    agent.signal(signal.SIGCONT)


def stats_of(cluster, session, *options):
    done = cluster.cli("session", "stats", session, *options)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.gate
def test_the_same_numbers_everywhere(still):
    def samples():
        return json.loads(stats_of(still, "zebra", "-o", "json"))
    wait_for(lambda: samples() == samples(), 30, "what was on its way")
    raw = {row["metric"]: row for row in samples()}
    top = json.loads(still.cli("top", "-o", "json").stdout)
    used = next(s for s in top["sessions"] if s["name"] == "zebra")
    assert used["requested_slots"]["cpu"] == "2" and used["access_key"] == ADMIN[0]
    for key, metric in used["used"].items():
        assert (metric["current"], metric["capacity"], metric["pct"]) == (
            raw[key]["now"], raw[key]["of"], raw[key]["pct"]), key

    table = stats_of(still, "zebra").split("\n\n")[0]  # the summary follows
    shown = {line.split()[1]: line for line in table.splitlines()}
    cores = f"{float(raw['cpu_util']['now']) / 1000:.2f}".rstrip("0").rstrip(".")
    assert shown["cpu_util"].split()[2:4] == [cores, "2"]
    percent = float(raw["cpu_util"]["now"]) / 20
    assert float(shown["cpu_util"].split()[4]) == pytest.approx(percent, abs=0.006)

    screen = show(still)
    row = next(row for row in rows_of(screen.lines) if "zebra" in row)
    found = re.search(r"\[([#.]+)\] ([0-9.]+)/2  \[[#.]+\] ([0-9.]+ \wiB)", row)
    assert found, row
    assert found[2] == cores
    assert found[3] == " ".join(shown["mem"].split()[2:4])
    assert found[1].count("#") == round(percent / 100 * len(found[1]) + 1e-9)
    once = next(line for line in still.cli("top", "--once").stdout.splitlines() if "zebra" in line)
    assert f"{float(raw['cpu_util']['now']) / 10:.1f}" in once.split()
    assert screen.leave(b"q") == 0


def test_colours_mean_load(gpus):
    screen = show(gpus, NO_COLOR="")
    screen.until(lambda lines: screen.colours & {"31", "32", "33"}, "a colour")
    assert screen.leave(b"q") == 0
    for words, more in [(["top"], {"NO_COLOR": "1"}), (["top", "--color", "never"], {})]:
        screen = show(gpus, *words, **more)
        screen.leave(b"q")
        assert screen.colours <= {"0"}, screen.colours  # as it leaves


def test_narrow_terminals_and_wide_characters(gpus):
    """The screen fails if a line is longer than it, or if it scrolls."""
    screen = show(gpus, columns=40, rows=20)
    screen.until_line(r"zebra +\[[#.]+\] [0-9.]+/2")
    screen.send("/日本語日本語日本語日本語日本語日本語".encode())
    screen.until_line("^/日本語.*…$")
    screen.until_line(" 0 of 3 running .*…$")
    screen.send(ESCAPE)
    screen.until(lambda lines: len(names(lines)) == 3)
    screen.send(ENTER)
    screen.until_line(r"^cpu_util +[0-9.]+")
    screen.send(b"?")
    screen.until_shown("sort by name")
    screen.send(b"x")
    assert screen.leave(b"q") == 0


def test_ascii_where_the_locale_has_no_more(gpus):
    screen = show(gpus, LC_ALL="C", columns=60)
    screen.send(b"n")
    screen.until_shown("SESSION^")
    screen.send(ENTER)
    screen.until_line(r"^cpu_util +[0-9.]+ +[_.:=+*#-]+ ")
    assert screen.leave(b"q") == 0 and str(screen).isascii()


def test_a_picture_where_there_is_no_terminal(gpus):
    screen = look(gpus, "top", "--once")
    screen.until_shown("mango")
    assert screen.see_end() == 0 and b"1049" not in screen.text
    piped = subprocess.run([ALIQUOT, "top"], env=env_of(gpus), capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, timeout=60)
    assert piped.returncode == 0 and "zebra" in piped.stdout and "\x1b" not in piped.stdout
    screen = look(gpus, "top", "-o", "json", columns=200)
    assert screen.see_end() == 0
    assert json.loads(screen.text)["running"] == 3


def test_a_manager_that_does_not_answer(gpus):
    screen = show(gpus, "top", "--interval", "0.2s")
    manager = gpus.programs["manager"]
    manager.may_end = True
    assert manager.stop() == 0
    screen.until_line("^! cannot reach the manager")
    screen.send(b"n")
    screen.until(lambda lines: names(lines) == ["Apple", "mango", "zebra"], "it still sorts")
    gpus.start_manager()
    screen.until_hidden("cannot reach")
    assert screen.leave(b"q") == 0


def test_accelerators_of_a_users_sessions(gpus):
    """Users see no nodes; administrators see the details of users' sessions."""
    body = {"name": "lent", "image": "sh", "type": "batch", "startupCommand": IDLE,
            "enqueueOnly": True,
            "config": {"resources": {"cpu": "1", "mem": "64m", "cuda.shares": "0.5"}}}
    user = gpus.client(USER)
    session = user.post("/session", body).json["sessionId"]
    wait_status(user, session, "RUNNING")
    screen = look(gpus, "top", who=USER)
    screen.until_line(r"  lent cuda +\[[#.]+\] +[0-9.]+ %  \[[#.]+\] [0-9.]+ \wiB of 1 GiB")
    screen.until(lambda lines: names(lines) == ["lent"])
    assert "agent  ALIVE" not in str(screen) and screen.leave(b"q") == 0
    screen = look(gpus, "top", "--all")
    screen.send(b"/lent\r\r")
    screen.until_shown("lent  RUNNING")
    screen.until_shown("cuda_mem")
    assert screen.leave(b"q") == 0
    user.delete(f"/session/{session}")
    wait_status(user, session, "TERMINATED")


# ---- session stats ----

@pytest.mark.gate
def test_stats_on_a_terminal(gpus):
    screen = look(gpus, "session", "stats", "--watch", "--interval", "0.1s", "zebra")
    screen.until_line(r"^cpu_util +[0-9.]+  [▁-█]{5,20} +2 ")
    assert screen.is_alternate and screen.leave(b"q") == 0
    assert "cpu_util" in str(screen) and "RATE" in str(screen), "the last one stays"


def test_stats_end_with_the_session(gpus):
    session = begin(gpus, "brief", IDLE)
    screen = look(gpus, "session", "stats", "--watch", "--interval", "0.1s", "brief")
    screen.until_shown("brief  RUNNING")
    end(gpus, session)
    assert screen.see_end() == 0
    assert "'brief' has ended" in str(screen) and "cpu_util" in str(screen)


def test_stats_again_and_again_without_a_terminal(gpus):
    session = begin(gpus, "piped", IDLE)
    process = subprocess.Popen([ALIQUOT, "session", "stats", "--watch", "--interval", "0.1s",
                                "piped"], env=env_of(gpus), stdout=subprocess.PIPE, text=True,
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for line in process.stdout:
        assert "\x1b" not in line
        if line.startswith("main1   cpu_used"):
            break
    end(gpus, session)
    rest, notes = process.communicate(timeout=60)
    assert process.returncode == 0 and "KERNEL" in rest and "'piped' has ended" in notes


def queue(cluster, name, **slots):
    """A session that waits."""
    body = {"name": name, "image": "sh", "type": "batch", "startupCommand": IDLE,
            "enqueueOnly": True, "config": {"resources": {"mem": "64m", **slots}}}
    reply = cluster.client().post("/session", body)
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def test_stats_wait_for_the_first_sample(gpus):
    """Of a session that waits, then runs, then is measured."""
    blocker = begin(gpus, "blocker", IDLE, cpu="10")
    late = queue(gpus, "late", cpu="5")
    done = gpus.cli("session", "stats", "late", "--timeout", "0.5s")
    assert done.returncode == 3 and not done.stdout, done
    assert "it is PENDING and was not measured within" in done.stderr
    assert "aliquot session why late" in done.stderr
    process = subprocess.Popen([ALIQUOT, "session", "stats", "late", "--timeout", "60s"],
                               env=env_of(gpus), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, stdin=subprocess.DEVNULL)
    note = next(line for line in process.stderr if "wait" in line.lower())
    assert note and process.poll() is None
    end(gpus, blocker)
    out, notes = process.communicate(timeout=60)
    assert process.returncode == 0 and "cpu_used" in out, (out, notes)
    end(gpus, late)


def test_stats_of_what_never_ran(gpus):
    blocker = begin(gpus, "blocker", IDLE, cpu="10")
    never = queue(gpus, "never", cpu="5")
    gpus.client().delete(f"/session/{never}?forced=true")
    wait_status(gpus.client(), never, "CANCELLED", "TERMINATED")
    done = gpus.cli("session", "stats", never)
    assert done.returncode == 1 and not done.stdout, done
    assert "has ended (CANCELLED) and was never measured" in done.stderr
    end(gpus, blocker)


def test_stats_say_what_excludes_each_other(gpus):
    done = gpus.cli("session", "stats", "--watch", "--history", "zebra")
    assert done.returncode == 2 and "--history and --watch exclude each other" in done.stderr
