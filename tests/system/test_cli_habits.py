# SPDX-License-Identifier: Apache-2.0
"""The command line as those type it who come from docker, Slurm or kubectl."""

import json
import os
import pathlib
import subprocess

import pytest

from cluster import Cluster, wait_for
from terminal import Terminal
from world import BUILD, World

ALIQUOT = str(BUILD / "aliquot")
SMALL = ("-r", "cpu=1", "-r", "mem=32m")


class User:
    """Somebody with a shell, in a folder of their own."""

    def __init__(self, env):
        self.env = env

    def run(self, *words, **options):
        return subprocess.run([ALIQUOT, *words], env=self.env, capture_output=True, text=True,
                              timeout=120, **options)

    def __call__(self, *words, status=0, **options):
        done = self.run(*words, **options)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def names(self, *words):
        return self(*words, "-o", "name").split()


@pytest.fixture(scope="module")
def cluster():
    with Cluster(TERM="xterm", LC_ALL="C.UTF-8") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def user(cluster):
    user = User({**cluster.env, **cluster.cli_env()})
    user("run", *SMALL, "--name", "ended-well", "true")
    user("run", *SMALL, "--name", "ended-badly", "exit 3", status=3)
    user("session", "create", "-t", "waits", "-r", "cpu=1", "-r", "mem=1m", "--starts-at", "1h", "--",
         "true")
    user("session", "create", *SMALL, "-t", "lives")
    wait_for(lambda: user.names("ps", "--filter", "status=running") == ["lives"])
    wait_for(lambda: json.loads(user("session", "info", "waits", "-o", "json"))["reason"])
    return user


# ---- words ----

@pytest.mark.gate
@pytest.mark.parametrize("theirs, ours", [
    ("images", "image ls"), ("queue", "ps"), ("agent list", "agent ls"),
    ("inspect lives", "session info lives"), ("history ended-well", "session history ended-well"),
    ("session show lives", "session info lives"), ("config get", "config show"),
])
def test_words_of_others_work(user, theirs, ours):
    def answer(words):
        said = json.loads(user(*words.split(), "-o", "json"))
        for row in said if isinstance(said, list) else []:
            row.pop("last_contact", None)  # of an agent: changes with each heartbeat
        return said
    assert answer(theirs) == answer(ours)


@pytest.mark.parametrize("word", ["stop", "kill", "cancel"])
def test_stop_ends_a_session(user, word):
    user("session", "create", "-t", f"to-{word}", "--starts-at", "1h", "--", "true")
    user(word, f"to-{word}")
    assert user.names("ps", "--filter", f"name=to-{word}") == []
    assert "Usage: aliquot rm " in user(word, "--help")


@pytest.mark.parametrize("typed, ours", [
    ("squeue", "ps"), ("sinfo", "nodes"), ("scancel 7", "rm"), ("srun hostname", "run"),
    ("salloc", "session create"), ("sbatch job.sh", "submit"), ("get pods", "ps"),
    ("get nodes", "nodes"), ("describe pod x", "session info"), ("describe node x", "agent info"),
    ("delete pod x", "rm"), ("container ls", "ps"), ("container logs x", "logs"),
    ("scontrol show node x", "agent info"), ("scontrol show jobs", "ps"), ("sacct -j 7", "session history"),
    ("srun --pty bash", "run -it"), ("sesion ls", "session"), ("tpo", "top"),
])
def test_other_words_are_told_ours(typed, ours):
    with World() as world:
        done = User(world.env).run(*typed.split())
    assert done.returncode == 2
    assert f"did you mean 'aliquot {ours}'?" in done.stderr


def test_every_other_name_has_a_command_of_ours():
    """The table in help: what works, works; what is told, is a command."""
    with World() as world:
        user = User(world.env)
        works, told = user("help", "other-names").split("type ours:")
        told = told.split("These are not there yet")[0]
        for text in (works, told):
            rows = [line.strip().split(" aliquot ") for line in text.splitlines()
                    if " aliquot " in line]
            assert len(rows) > 20
            for theirs, ours in rows:
                words = [word for word in ours.split() if word[0] not in "-N"]
                assert user("help", *words).startswith(f"Usage: aliquot {' '.join(words)}"), ours
                done = user.run(*theirs.split(), "--help")
                assert (done.returncode == 0) == (text is works), theirs
        overview = user("help")
        first = {line.split()[0] for line in overview.splitlines() if line.strip()}
        assert "ps" in first and not first & {"squeue", "stop"}


def test_start_of_what_has_ended_says_what_to_do(user):
    done = user.run("start", "ended-well")
    assert done.returncode == 5 and "aliquot run" in done.stderr


# ---- lists ----

@pytest.mark.gate
def test_quiet_lists_are_ids_alone(user):
    rows = json.loads(user("ps", "-o", "json"))
    assert user("ps", "-q").split() == [row["id"] for row in rows] and len(rows) == 2
    assert user("nodes", "-q").split() == user.names("agent", "ls")


@pytest.mark.gate
@pytest.mark.parametrize("filters, names", [
    (["status=running"], {"lives"}),
    (["status=Running,PENDING"], {"lives", "waits"}),
    (["status=running", "status=pending"], {"lives", "waits"}),
    (["status!=pending"], {"lives"}),
    (["name=l*s"], {"lives"}),
    (["name~ive"], {"lives"}),
    (["age<1h", "type=batch"], {"waits"}),
    (["age>1h"], set()),
    (["created_at>2020-01-01"], {"lives", "waits"}),
    (["resources.mem>=32m"], {"lives"}),
    (["resources~cpu=1"], {"lives", "waits"}),
    (["project=default", "user~@", "resource-group=default", "agents=*", "priority=10"],
     {"lives", "waits"}),
    (["status=terminated", "exit=3"], {"ended-badly"}),
    (["status=terminated", "result=success"], {"ended-well"}),
    (["name ilike \"%ive%\"", "status=running"], {"lives"}),
])
def test_filter_by_any_column(user, filters, names):
    options = [word for text in filters for word in ("--filter", text)]
    found = {name for name in user.names("ps", *options) if not name.startswith("to-")}
    assert found == names


def test_every_shown_column_filters_and_sorts(user):
    titles = user("ps", "-o", "wide").splitlines()[0].split()
    assert len(titles) > 12
    for title in titles:
        for key in (title, title.lower(), title.lower().replace("-", "_")):
            user("ps", "--sort", key)
            user("ps", "--filter", f"{key}~a")


def test_sort_by_age_begins_with_the_youngest(user):
    names = user.names("ps", "--all", "--sort", "age", "--filter", "name=ended-*")
    assert names == ["ended-badly", "ended-well"]
    assert user.names("ps", "--all", "--sort", "-age", "--filter", "name=ended-*") == names[::-1]
    assert user.names("ps", "--all", "--sort", "created_at", "--filter", "name=ended-*") == names[::-1]


@pytest.mark.parametrize("option, says", [
    ("--filter=colour=red", "there is no column 'colour'"),
    ("--filter=statis=running", "did you mean 'status'"),
    ("--filter=age>soon", "no span of time"),
    ("--filter=exit>many", "number or size"),
    ("--sort=colour", "there is no column 'colour'"),
])
def test_bad_filters_are_named(user, option, says):
    done = user.run("ps", option)
    assert done.returncode == 2 and says in done.stderr


def test_a_limit_cuts_what_matches(user):
    done = user.run("ps", "--all", "--filter", "name=ended-*", "-n", "1", "-o", "name")
    assert len(done.stdout.split()) == 1 and "1 of 2 shown" in done.stderr


@pytest.mark.parametrize("words, says", [
    (["ps", "--owner", "AKIANABBDUSEREXAMPLE"], "aliquot run"),
    (["image", "ls"], "aliquot image pull"),
    (["agent", "ls", "--status", "LOST"], "aliquot agent token"),
    (["ps", "--filter", "name=nobody"], "nothing matches"),
])
def test_empty_lists_say_what_would_fill_them(user, words, says):
    done = user.run(*words)
    assert done.returncode == 0 and says in done.stderr
    assert user.run(*words, "-q").stderr == ""


def test_names_of_two_characters(user):
    user("session", "create", "-t", "ab", "--starts-at", "1h", "--", "true")
    assert json.loads(user("inspect", "ab", "-o", "json"))["name"] == "ab"
    user("rm", "ab")
    assert "2 to 64 characters" in user.run("session", "create", "-t", "a", "--", "true").stderr


def test_rm_twice_exits_alike(user):
    user("session", "create", *SMALL, "-t", "twice")
    user("rm", "--wait", "twice")
    done = user.run("rm", "twice")
    assert done.returncode == 0 and "has ended already" in done.stderr
    assert user.run("rm", "--wait", "twice").returncode == 0
    assert user.run("rm", "never-there").returncode == 5


def test_colours_say_what_the_words_say(user):
    shown = user("ps", "--color=always")
    assert "\033[32mRUNNING\033[0m" in shown and "\033[33mPENDING\033[0m" in shown
    assert "RUNNING" in user("ps") and "\033" not in user("ps")


# ---- run, logs, config ----

@pytest.mark.gate
def test_run_dry_run_starts_nothing(user):
    assert "There is room" in user("run", "--dry-run", *SMALL, "--name", "only-asked", "true")
    assert user.names("ps", "--all", "--filter", "name=only-asked") == []


def test_run_rm_is_taken(user):
    assert user("run", "--rm", *SMALL, "echo as docker") == "as docker\n"


def test_progress_is_cleared_once(user):
    """On a terminal the line goes from stage to stage in place: it is not taken off
    and put back before the program prints."""
    terminal = Terminal(ALIQUOT, "run", *SMALL, "sleep 1; echo out", env=user.env)
    seen = b""
    while b"out\r\n" not in seen:
        seen += os.read(terminal.fd, 4096)
    assert terminal.wait() == 0 and seen.count(b"\r\x1b[K") <= 1, seen


@pytest.fixture(scope="module")
def logged(user):
    user("run", *SMALL, "--name", "logged", "echo begin; echo old error; echo new error; echo tail")
    return "logged"


@pytest.mark.parametrize("options, lines", [
    (["--grep", "err(or|ata)"], ["old error", "new error"]),
    (["--grep", "^tail"], ["tail"]),
    (["--grep", "nothing like it"], []),
])
def test_logs_are_filtered(user, logged, options, lines):
    shown = user("logs", *options, logged).splitlines()
    assert len(shown) == len(lines), shown
    for line, part in zip(shown, lines):
        assert part in line


def test_patterns_that_are_none(user, logged):
    assert user.run("logs", "--grep", "(", logged).returncode == 2


@pytest.mark.gate
def test_config_set_keeps_what_login_wrote(cluster):
    with World() as world:
        user = User(world.env)
        user("login", "--dev", "http://%s:%d" % cluster.address)
        user("config", "set", "image", "python:3")
        rows = {row["setting"]: row for row in json.loads(user("config", "show", "-o", "json"))}
        assert rows["image"]["value"] == "python:3" and rows["image"]["origin"] == "profile"
        user("login", "--dev", "http://%s:%d" % cluster.address)
        assert "python:3" in user("config", "show")
        user("config", "unset", "image")
        assert "python:3" not in user("config", "show") and user("whoami", "-o", "name")
        assert "did you mean 'image'" in user.run("config", "set", "imge", "x").stderr
        assert "seen by others" in user.run("config", "set", "secret_key", "x").stderr


# ---- the first minute ----

def test_without_a_cluster_there_are_two_ways():
    with World() as world:
        world.env.pop("ALIQUOT_ENDPOINT", None)
        said = User({**world.env, "ALIQUOT_ENDPOINT": ""})
        text = said()
        if "A cluster answers" not in text:  # one may be on the usual port of this machine
            assert "aliquot up --dev" in text and "aliquot login https://HOST" in text
        done = User({**world.env, "ALIQUOT_ENDPOINT": "http://127.0.0.1:1"}).run()
        assert done.returncode == 0 and "No cluster answers at http://127.0.0.1:1" in done.stdout


def test_login_is_asked_for_when_needed(cluster):
    with World() as world:
        user = User({**world.env, "ALIQUOT_ENDPOINT": "http://%s:%d" % cluster.address})
        assert "you are not logged in" in user() and "aliquot login" in user()
        for words in (["ps"], ["inspect", "x"], ["agent", "ls"], ["logs", "x"]):
            done = user.run(*words)
            assert done.returncode == 6, done.stderr
            assert "you are not logged in" in done.stderr and "aliquot login" in done.stderr
        user("login", "--dev")
        assert "Usage: aliquot COMMAND" in user()


def test_login_url_asks_for_keys_without_echo(cluster):
    url = "http://%s:%d" % cluster.address
    with World(TERM="xterm") as world:
        terminal = Terminal(ALIQUOT, "login", url, env=world.env)
        terminal.expect(b"e-mail or access key: ")
        terminal.send(b"AKIAIOSFODNN7EXAMPLE\r")
        terminal.expect(b"secret key: ")
        terminal.send(b"not-the-secret\r")
        assert terminal.wait() == 6
        profiles = pathlib.Path(world.env["XDG_CONFIG_HOME"], "aliquot", "profiles.json")
        assert not profiles.exists()
        terminal = Terminal(ALIQUOT, "login", url, "AKIAIOSFODNN7EXAMPLE", env=world.env)
        terminal.expect(b"secret key: ")
        terminal.send(b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\r")
        terminal.expect(b"\r\nLogged in to")  # nothing of the secret before it
        assert terminal.wait() == 0
        assert profiles.stat().st_mode & 0o777 == 0o600
        assert json.loads(profiles.read_text())["profiles"]["default"]["endpoint"] == url
        assert User(world.env)("whoami", "-o", "name")


def test_an_address_without_a_scheme_is_told_so():
    with World() as world:
        done = User(world.env).run("login", "cluster.example.com:8081")
    assert done.returncode == 2
    assert "did you mean 'aliquot login https://cluster.example.com:8081'" in done.stderr


# ---- completion, as it is typed ----

CASES = (
    (b"aliquot run -r c\t", b"cpu="),
    (b"aliquot run -r cpu=1,me\t", b"cpu=1,mem="),
    (b"aliquot run --resource-group de\t", b"default"),
    (b"aliquot run --resource-group=de\t", b"--resource-group=default"),
    (b"aliquot inspect liv\t", b"lives"),
    (b"aliquot logs ended-w\t", b"ended-well"),
    (b"aliquot admin keypair rm AKIAI\t", b"AKIAIOSFODNN7EXAMPLE"),
    (b"aliquot admin user set ad\t", b"admin@lablup.com"),
    (b"aliquot admin policy set def\t", b"default"),
    (b"aliquot session resize lives c\t", b"cpu="),
    (b"aliquot config set resource_\t", b"resource_group"),
)
START = {
    "bash": (["/usr/bin/bash", "--norc", "--noprofile", "-i"],
             b"PS1='ready''> '; source <(aliquot completion bash)\r"),
    "zsh": (["/usr/bin/zsh", "-f", "-i"],
            b"PS1='ready''> '; autoload -U compinit; compinit -D; source <(aliquot completion zsh)\r"),
    "fish": (["/usr/bin/fish", "--no-config", "-i"],
             b"function fish_prompt; echo -n 'ready''> '; end; aliquot completion fish | source\r"),
}


@pytest.mark.parametrize("shell", START)
def test_completion_as_typed(user, shell):
    """Real shells with their line editors: what is typed grows at a TAB."""
    command, start = START[shell]
    env = {**user.env, "PATH": f"{BUILD}:{user.env['PATH']}"}
    terminal = Terminal(*command, env=env, rows=50, columns=200)
    terminal.send(start)
    for typed, grown in CASES:
        terminal.expect(b"ready> ")
        terminal.send(typed)
        terminal.expect(grown[len(typed.split()[-1]):] if shell == "bash" else grown)
        terminal.send(b"\x15\r")
    terminal.kill()


def test_completion_of_images(cluster, user):
    user("image", "alias", "py", "registry.example.com/python:3.12")
    lines = user("completion", "words", "--", "run", "--image", "p").splitlines()
    assert lines == ["py\tregistry.example.com/python:3.12"]
    assert user("completion", "words", "--", "run", "--image=p").startswith("--image=py\t")
    user("image", "unalias", "py")


def test_completion_without_a_cluster_is_quiet():
    with World() as world:
        done = User({**world.env, "ALIQUOT_ENDPOINT": "http://127.0.0.1:1"}).run(
            "completion", "words", "--", "rm", "")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
