# SPDX-License-Identifier: Apache-2.0
"""Job scripts as others write them: they run as they are, or are refused with file, line, remedy."""

import hashlib
import json
import socket
import subprocess

import pytest

from cluster import Cluster, wait_status
from world import BUILD

pytestmark = pytest.mark.gate


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


@pytest.fixture
def submit(cluster, tmp_path):
    """Submit the bytes, or the text, as a file; the command's result."""
    def run(script, *words, name="job.sh", options=(), **more):
        script = script.encode() if isinstance(script, str) else script
        (tmp_path / name).write_bytes(script)
        return subprocess.run([BUILD / "aliquot", "submit", *options, f"./{name}", *words],
                              capture_output=True, text=True, cwd=tmp_path, timeout=100, check=False,
                              env={**cluster.env, **cluster.cli_env(), **more})
    return run


def session_of(done):
    assert done.returncode == 0, done
    return done.stdout.split()[-1]


def output_of(cluster, done):
    session = session_of(done)
    wait_status(cluster.client(), session, "TERMINATED")
    return cluster.cli("logs", session).stdout


def info_of(cluster, done):
    return json.loads(cluster.cli("session", "info", session_of(done), "-o", "json").stdout)


@pytest.mark.parametrize("name, called", [
    ('"nf-align_(sample 1)"', "nf-align_sample-1"),
    ("x", "job-x"),
    ("a" * 100, "a" * 64),
    ("'Prüfung 1'", "Pr-fung-1"),
    ("한국어", None),
    ("''", None),
])
def test_a_name_only_decorates(cluster, submit, name, called):
    done = submit(f"#!/bin/sh\n#SBATCH -J {name}\necho \"$SLURM_JOB_NAME\"\n")
    assert output_of(cluster, done) == name.strip("\"'") + "\n"
    shown = info_of(cluster, done)["name"]
    assert shown == called if called else shown.startswith("job.sh-"), shown
    assert "job.sh: line 2: --job-name: " in done.stderr and (called or "another") in done.stderr


def test_a_long_name_may_live_twice_and_be_counted(cluster, submit):
    script = f"#!/bin/sh\n#SBATCH -J {'a' * 70}\nsleep 1000\n"
    made = [submit(script, options=options) for options in ((), (), ("--count", "2"))]
    assert len({session_of(done) for done in made}) == 3
    sessions = [line.split()[-1] for done in made for line in done.stdout.splitlines()]
    assert len(sessions) == 4 and cluster.cli("rm", "--yes", "--wait", *sessions).returncode == 0


def test_a_comment_only_decorates(cluster, submit):
    done = submit("#!/bin/sh\n#SBATCH --comment='" + "é" * 45 + "'\ntrue\n")
    assert info_of(cluster, done)["tag"] == "é" * 32
    assert "job.sh: line 2: --comment: the tag is 'é" in done.stderr
    done = submit("#!/bin/sh\n#SBATCH --comment=\ntrue\n")
    assert info_of(cluster, done)["tag"] in ("", None) and done.stderr == "", done


@pytest.mark.parametrize("name, called", [
    ("1.sh", "1.sh-"), ("run (copy).sh", "run-copy.sh-"), ("x", "job-x-"), ("작업", "session-")])
def test_any_file_name_will_do(cluster, submit, name, called):
    done = submit("#!/bin/sh\nbasename \"$0\"\n", name=name)
    assert output_of(cluster, done) == name + "\n"
    assert info_of(cluster, done)["name"].startswith(called)


def test_a_script_without_a_name_is_called_script(cluster):
    for words in (["-"], ["/dev/stdin"]):
        done = subprocess.run([BUILD / "aliquot", "submit", *words], input="#!/bin/sh\ntrue\n",
                              capture_output=True, text=True, timeout=100, check=False,
                              env={**cluster.env, **cluster.cli_env()})
        assert info_of(cluster, done)["name"].startswith("script-"), done


@pytest.mark.parametrize("options, slots, notes", [
    ("-N 1-1 -n1 -c 1 --mem=64M", {"cpu": "1", "mem": 64 << 20}, 0),
    ("--gpus-per-node=0 --gres=gpu:0 --mem 64", {"mem": 64 << 20}, 0),
    ("--gres=none --mem=65536K", {"mem": 64 << 20}, 0),
    ("--nodes=1-2 --mem=64mb", {"mem": 64 << 20}, 1),
    ("-Qc2 --mem-per-c=32M --job=short", {"cpu": "2", "mem": 64 << 20}, 0),
    ("--mem=0", {}, 1),
    ("--tres-per-task=cpu=2 --ntasks=1", {"cpu": "2"}, 0),
])
def test_values_are_read_as_sbatch_reads_them(cluster, submit, options, slots, notes):
    done = submit(f"#!/bin/sh\n#SBATCH {options}   # a comment\ntrue\n")
    assert output_of(cluster, done) == ""
    shown = info_of(cluster, done)["requested_slots"]
    assert {slot: str(amount) for slot, amount in slots.items()}.items() <= shown.items(), shown
    assert len(done.stderr.splitlines()) == notes, done


@pytest.mark.parametrize("more", [
    b"# Pr\xfcfung von J\xf6rg\n",                               # Latin-1
    b"exit\n" + bytes(range(1, 256)).replace(b"\r\n", b"\n"),   # all that is no NUL
    b"echo it\\'s 100%% '\xe9'\n",
    "# Prüfung 한국어 %s \\n\n".encode(),
    b"#" + b"x" * 60_000,
], ids=["latin1", "bytes", "quotes", "utf8", "long"])
def test_a_script_arrives_byte_for_byte(cluster, submit, more):
    script = b"#!/bin/sh\n#SBATCH -c 1\nsha256sum <\"$0\"\n" + more
    done = submit(script)
    assert hashlib.sha256(script).hexdigest() in output_of(cluster, done)
    assert done.stderr == ""


@pytest.mark.parametrize("script, says", [
    (b"#!/bin/bash\n#SBATCH -c 1\r\necho\n", "job.sh: line 2 ends as in DOS (\\r\\n); dos2unix"),
    (b"#!/bin/bash\recho\r", "job.sh: line 1 has a carriage return"),
    (b"\xef\xbb\xbf#!/bin/bash\necho\n", "job.sh: line 1: a byte order mark is before the #!; save"),
    ("#!/bin/bash\n".encode("utf-16"), "job.sh: line 1: the text is UTF-16; save it as UTF-8"),
    (b"#!/bin/bash\necho\n\x00", "job.sh: line 3: a NUL byte"),
    (b"#!/bin/bash\n#SBATCH -A J\xf6rg\n", "job.sh: line 2: a value is not UTF-8; iconv"),
    (b"#!/bin/bash\n#ALIQUOT --tag J\xf6rg\n", "job.sh: line 2: word 2 is not UTF-8; iconv"),
    (b"#!/bin/bash\n#" + b"\xe9" * 20_000, "each byte that is no ASCII is four; at most 65536"),
])
def test_bytes_that_cannot_run_are_named(submit, script, says):
    done = submit(script)
    assert done.returncode == 125 and says in done.stderr and done.stdout == "", done


def test_standard_input_is_read_from_where_it_stands(cluster, tmp_path):
    env = {**cluster.env, **cluster.cli_env()}
    (tmp_path / "both").write_text("a line of its own\n#!/bin/sh\n#SBATCH -J rest\ntrue\n")
    with open(tmp_path / "both", encoding="utf-8") as both:
        done = subprocess.run(["sh", "-c", f"read -r line; {BUILD}/aliquot submit"], stdin=both,
                              capture_output=True, text=True, timeout=100, check=False, env=env)
    assert info_of(cluster, done)["name"] == "rest", done
    here, there = socket.socketpair()
    with here, there:
        here.sendall(b"#!/bin/sh\n#SBATCH -J socket\ntrue\n")
        here.shutdown(socket.SHUT_WR)
        done = subprocess.run([BUILD / "aliquot", "submit", "-"], stdin=there, text=True,
                              capture_output=True, timeout=100, check=False, env=env)
    assert info_of(cluster, done)["name"] == "socket", done


@pytest.mark.parametrize("words, text, says", [
    (["admin", "config", "import", "-"], "{", "'-' is not JSON: line 1"),
    (["admin", "import", "--dry-run", "-"], "what\n", "standard input"),
    (["ssh-key", "set", "-"], "what\n", "key"),
])
def test_other_commands_read_it_so_too(cluster, words, text, says):
    here, there = socket.socketpair()
    with here, there:
        here.sendall(text.encode())
        here.shutdown(socket.SHUT_WR)
        done = subprocess.run([BUILD / "aliquot", *words], stdin=there, text=True, timeout=100,
                              capture_output=True, check=False,
                              env={**cluster.env, **cluster.cli_env()})
    assert done.returncode != 0 and says in done.stderr and "open" not in done.stderr, done


@pytest.mark.parametrize("option, says", [
    ("-A nosuch", "--account: Invalid group: 'nosuch' is not one of yours"),
    ("-p nosuch", "--partition: You do not have access to the scaling group 'nosuch'; there are "
                  "default"),
    ("-d afterok:nosuch", "--dependency: no session of yours is called 'nosuch'"),
    ("-d " + ",".join(["afterok:nosuch"] * 300), "--dependency: no session of yours is called"),
    ("-N 100000", "--nodes: not within 1..1024"),
    ("-c 100000", "--cpus-per-task: No agent has cpu=100000"),
    ("--mem=100T", "--mem: No agent has mem=100t"),
    ("-G 1", "--gpus: unknown slot type"),
    ("-t 99999-0", "--time: not within"),
    ("-t 99999999-0", "--time"),
    ("--export==1", "--export takes"),
    ("--begin=late", "--begin takes now+1hour"),
])
@pytest.mark.parametrize("count", [(), ("--count", "2")], ids=["one", "two"])
def test_an_error_names_the_line_and_its_option(submit, option, says, count):
    done = submit(f"#!/bin/sh\n# what for\n#SBATCH {option}\ntrue\n", options=count)
    assert done.returncode == 125 and f"aliquot: ./job.sh: line 3: {says}" in done.stderr, done


def test_an_error_about_the_command_line_names_no_line(submit):
    done = submit("#!/bin/sh\n#SBATCH -A mine\ntrue\n", options=("--group", "nosuch"))
    assert done.returncode == 125 and "aliquot: --group: Invalid group: 'nosuch'" in done.stderr


def test_variables_that_are_not_set_stay_unset(cluster, submit):
    done = submit("#!/bin/sh\n#SBATCH --export=SET_HERE,NOT_SET_HERE,A='b c',ALL\n"
                  "echo \"$SET_HERE|${NOT_SET_HERE-unset}|$A\"\n", SET_HERE="1")
    assert output_of(cluster, done) == "1|unset|b c\n"
    assert done.stderr.count("\n") == 1 and "--export=ALL: the environment is" in done.stderr, done


SHOW = "env | grep ^SLURM | LC_ALL=C sort\n"


def slurm_of(cluster, done):
    lines = output_of(cluster, done).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_script_finds_the_variables_of_slurm(cluster, submit, tmp_path):
    done = submit("#!/bin/sh\n#SBATCH -J 'my job' -A default -p default\n"
                  "#SBATCH -n 2 -c 1 --mem-per-cpu=32M\n" + SHOW)
    found = slurm_of(cluster, done)
    assert found.pop("SLURM_TASK_PID").isdecimal()
    session = session_of(done)
    assert found == {
        "SLURM_JOB_ID": session, "SLURM_JOBID": session, "SLURM_JOB_NAME": "my job",
        "SLURM_JOB_ACCOUNT": "default", "SLURM_JOB_PARTITION": "default",
        "SLURM_JOB_USER": "admin", "SLURM_SUBMIT_DIR": str(tmp_path),
        "SLURM_SUBMIT_HOST": socket.gethostname(),
        "SLURM_JOB_NODELIST": "main1", "SLURM_NODELIST": "main1", "SLURMD_NODENAME": "main1",
        "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1", "SLURM_NODEID": "0",
        "SLURM_PROCID": "0", "SLURM_LOCALID": "0",
        "SLURM_NTASKS": "2", "SLURM_NPROCS": "2", "SLURM_TASKS_PER_NODE": "2",
        "SLURM_CPUS_PER_TASK": "1", "SLURM_CPUS_ON_NODE": "2", "SLURM_JOB_CPUS_PER_NODE": "2",
        "SLURM_MEM_PER_CPU": "32"}


def test_several_nodes_have_variables_of_slurm(cluster, submit, tmp_path):
    done = submit("#!/bin/sh\n#SBATCH -N 2 --ntasks-per-node=1 --mem=64M\n"
                  "echo $SLURM_NODEID $SLURMD_NODENAME $SLURM_JOB_NODELIST $SLURM_NNODES "
                  "$SLURM_NTASKS \"$SLURM_TASKS_PER_NODE\" $SLURM_MEM_PER_NODE\n"
                  f"touch {tmp_path}/$SLURM_NODEID\n"
                  f"until test -e {tmp_path}/1; do sleep 0.1; done\n")
    session = session_of(done)
    wait_status(cluster.client(), session, "TERMINATED")
    for i, node in enumerate(("main1", "sub1")):
        log = cluster.cli("logs", "--kernel", node, session).stdout
        assert log == f"{i} {node} main1,sub1 2 2 1(x2) 64\n"


def test_no_variable_of_slurm_is_wrong(cluster, submit, tmp_path):
    script = "#!/bin/sh\n#SBATCH -c 2 --mem=64M --export=SLURM_NTASKS=7\n" + SHOW
    found = slurm_of(cluster, submit(script, options=("-r", "cpu=1", "--name", "other")))
    assert found["SLURM_CPUS_ON_NODE"] == "1" and "SLURM_CPUS_PER_TASK" not in found, found
    assert found["SLURM_MEM_PER_NODE"] == "64" and found["SLURM_NTASKS"] == "7", found
    assert found["SLURM_JOB_NAME"] == "other" and "SLURM_JOB_PARTITION" not in found, found
    assert "SLURM_ARRAY_JOB_ID" not in found and "SLURM_JOB_GPUS" not in found
    assert "SLURM" not in output_of(cluster, submit("#!/bin/sh\nenv | grep ^SLURM || true\n"))


def test_a_script_may_go_where_it_was_submitted(cluster, submit, tmp_path):
    script = "#!/bin/sh\n#SBATCH -c 1\nset -eu\ncd \"$SLURM_SUBMIT_DIR\"\npwd\n"
    assert output_of(cluster, submit(script)) == f"{tmp_path}\n"
    (tmp_path / "gone").mkdir()
    done = subprocess.run(["sh", "-c", f"rmdir $PWD; exec {BUILD}/aliquot submit"], input=script,
                          capture_output=True, text=True, timeout=100, check=False,
                          cwd=tmp_path / "gone", env={**cluster.env, **cluster.cli_env()})
    assert "/kernels/" in output_of(cluster, done)
