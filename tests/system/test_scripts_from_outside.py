# SPDX-License-Identifier: Apache-2.0
"""Job scripts as others write them: they run as they are, or are refused with file, line, remedy."""

import hashlib
import json
import os
import socket
import subprocess
import time
from typing import NamedTuple

import pytest

from cluster import Cluster, wait_for, wait_status
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
    (b"#!/bin/bash\n#SBATCH -A J\xf6rg\n", "job.sh: line 2: a value is not UTF-8; convert it"),
    (b"#!/bin/bash\n#ALIQUOT --tag J\xf6rg\n", "job.sh: line 2: word 2 is not UTF-8; convert it"),
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
    ("-d afterok:nosuch", "--dependency: no session or array of yours is called 'nosuch'"),
    ("-d " + ",".join(["afterok:nosuch"] * 300), "--dependency: no session or array of yours is called"),
    ("-N 100000", "--nodes: a session has 1 to 1000 kernels, not 100000"),
    ("-c 100000", "--cpus-per-task: No agent has cpu=100000"),
    ("--mem=100T", "--mem: No agent has mem=100t"),
    ("-G 1", "--gpus: unknown slot type"),
    ("-t 99999-0", "--time: 8639913600 is not within"),
    ("-t 99999999-0", "--time"),
    ("--export==1", "--export takes"),
    ("--begin=late", "--begin takes now+1hour"),
])
@pytest.mark.parametrize("count", [(), ("--count", "2")], ids=["one", "two"])
def test_an_error_names_the_line_and_its_option(submit, option, says, count):
    done = submit(f"#!/bin/sh\n# what for\n#SBATCH {option}\ntrue\n", options=count)
    assert done.returncode == 125 and f"aliquot: ./job.sh: line 3: {says}" in done.stderr, done


@pytest.mark.parametrize("line, options, says", [
    ("-A mine", ("--group", "nosuch"), "aliquot: --group: Invalid group: 'nosuch'"),
    ("-c 1", ("-r", "cpu=1000000"), "aliquot: -r cpu: No agent"),
    ("-G 1", ("-r", "cuda.device=1"), "aliquot: -r cuda.device: unknown slot"),
    ("-A mine", ("--group", "mine", "--endpoint", "http://127.0.0.1:1"), "aliquot: "),
])
def test_an_error_about_the_command_line_names_no_line(submit, line, options, says):
    done = submit(f"#!/bin/sh\n#SBATCH {line}\ntrue\n", options=options)
    assert done.returncode == 125 and says in done.stderr and "line 2" not in done.stderr, done


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
                  "#SBATCH -n 2 -c 1 --mem-per-cpu=32M -t 60\n" + SHOW)
    found = slurm_of(cluster, done)
    assert found.pop("SLURM_TASK_PID").isdecimal()
    number = found.pop("SLURM_JOB_ID")
    assert number.isdecimal() and found.pop("SLURM_JOBID") == number
    start, end = int(found.pop("SLURM_JOB_START_TIME")), int(found.pop("SLURM_JOB_END_TIME"))
    assert abs(start - time.time()) < 600 and end - start == 3600, (start, end)
    assert found.pop("SLURM_JOB_UID").isdecimal() and found.pop("SLURM_JOB_GID").isdecimal()
    assert found.pop("SLURM_JOB_GROUP")
    assert found == {
        "SLURM_CLUSTER_NAME": "aliquot", "SLURM_GTIDS": "0",
        "SLURM_PRIO_PROCESS": str(os.nice(0)),
        "SLURM_JOB_NAME": "my job",
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
    assert found["SLURM_JOB_NAME"] == "other" and found["SLURM_JOB_PARTITION"] == "default", found
    assert "SLURM_ARRAY_JOB_ID" not in found and "SLURM_JOB_GPUS" not in found
    assert "SLURM_JOB_END_TIME" not in found and "SLURM_RESTART_COUNT" not in found
    assert "SLURM" not in output_of(cluster, submit("#!/bin/sh\nenv | grep ^SLURM || true\n"))


def test_what_no_line_asks_for_is_as_the_session_has_it(cluster, submit):
    """sbatch always sets these, whatever was asked for."""
    first = submit("#!/bin/sh\n#SBATCH -J first\ntrue\n")
    done = submit(f"#!/bin/sh\n#SBATCH -J bare -d afterok:{session_of(first)}\n" + SHOW)
    found, has = slurm_of(cluster, done), info_of(cluster, done)["requested_slots"]
    assert found["SLURM_CPUS_ON_NODE"] == found["SLURM_JOB_CPUS_PER_NODE"] == has["cpu"], (found, has)
    assert int(found["SLURM_MEM_PER_NODE"]) == int(has["mem"]) >> 20, (found, has)
    assert found["SLURM_JOB_PARTITION"] == "default", found
    assert found["SLURM_JOB_DEPENDENCY"] == f"afterok:{session_of(first)}", found
    assert "SLURM_GPUS_ON_NODE" not in found and "SLURM_JOB_GPUS" not in found, found


def test_several_nodes_that_ask_for_nothing(cluster, submit):
    done = submit("#!/bin/sh\n#SBATCH -N 2\necho \"$SLURM_JOB_CPUS_PER_NODE\" $SLURM_GTIDS\nsleep 2\n")
    session = session_of(done)
    wait_status(cluster.client(), session, "TERMINATED")
    assert cluster.cli("logs", "--kernel", "sub1", session).stdout == "1(x2) 1\n"


def test_a_restarted_script_knows_how_often(cluster, submit, tmp_path):
    done = submit("#!/bin/sh\n#SBATCH -J again\necho \"count ${SLURM_RESTART_COUNT-unset}\"\n"
                  f"test -n \"$SLURM_RESTART_COUNT\" || {{ touch {tmp_path}/ran; exec sleep 1000; }}\n")
    client, session = cluster.client(), session_of(done)
    wait_for((tmp_path / "ran").exists, 60, "its first run")
    assert client.send("PATCH", f"/session/{session}").status < 300
    wait_status(client, session, "TERMINATED")
    assert cluster.cli("logs", session).stdout.endswith("count 1\n")
    shown = client.get(f"/aliquot/v1/sessions/{session}").json
    assert [one["reason"] for one in shown["attempts"]] == ["restarting", "task-finished"]


def test_a_script_that_is_run_again_knows_how_often(cluster, submit):
    done = submit("#!/bin/sh\n#SBATCH -J retried\n#ALIQUOT --retry 2 --retry-delay 0.2s\n"
                  "echo \"count ${SLURM_RESTART_COUNT-unset}\"\ntest \"$SLURM_RESTART_COUNT\" = 2\n")
    session = session_of(done)
    assert wait_status(cluster.client(), session, "TERMINATED")["result"] == "SUCCESS"
    assert [cluster.cli("logs", "--attempt", n, session).stdout for n in "123"] == [
        "count unset\n", "count 1\n", "count 2\n"]


def test_a_script_may_go_where_it_was_submitted(cluster, submit, tmp_path):
    script = "#!/bin/sh\n#SBATCH -c 1\nset -eu\ncd \"$SLURM_SUBMIT_DIR\"\npwd\n"
    assert output_of(cluster, submit(script)) == f"{tmp_path}\n"
    (tmp_path / "gone").mkdir()
    done = subprocess.run(["sh", "-c", f"rmdir $PWD; exec {BUILD}/aliquot submit"], input=script,
                          capture_output=True, text=True, timeout=100, check=False,
                          cwd=tmp_path / "gone", env={**cluster.env, **cluster.cli_env()})
    assert "/kernels/" in output_of(cluster, done)


@pytest.mark.parametrize("option, says", [
    ("--job-name=x", "--name NAME"), ("--mem-per-cpu=1G", "-r mem=4g"), ("--comment=x", "--tag TEXT"),
    ("--gpus-per-node=1", "-r cuda.shares="), ("--export=ALL", "--env NAME[=VALUE]"),
    ("--wrap=true", "aliquot run --detach 'COMMAND'"), ("--hold", "--starts-at TIME"),
    ("-D/work", "'cd DIRECTORY && ...'"),
])
def test_options_of_sbatch_on_the_command_line_are_told_ours(submit, option, says):
    done = submit("#!/bin/sh\ntrue\n", options=(option,))
    assert done.returncode == 125 and says in done.stderr and "mean" not in done.stderr, done


class Runs(NamedTuple):
    """A script that runs: what it prints, its name and amounts, what the notes say."""
    script: str
    prints: str
    name: str | None = None
    slots: dict = {}
    notes: tuple = ()


class Refused(NamedTuple):
    """A script that is refused: what the error says."""
    script: str | bytes
    says: str


MIB = 1 << 20
FROM_OUTSIDE = {
    "nextflow": Runs("""#!/bin/bash
#SBATCH -J nf-ALIGN_(sample_1)
#SBATCH -o /data/run/ab/cdef01/.command.log
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
#SBATCH -c 2
#SBATCH -t 01:00:00
#SBATCH --mem 1024M
NXF_CHDIR=/data/run/ab/cdef01
# NEXTFLOW TASK: ALIGN (sample 1)
set -e
set -u
NXF_DEBUG=${NXF_DEBUG:=0}; [[ $NXF_DEBUG > 1 ]] && set -x
nxf_main() { trap 'exit 3' USR2; echo "$SLURM_JOB_NAME on $SLURM_CPUS_PER_TASK"; }
${NXF_ENTRY:-nxf_main}
""", "nf-ALIGN_(sample_1) on 2\n", "nf-ALIGN_sample_1", {"cpu": 2, "mem": 1024 * MIB},
                     ("line 3: --output",)),
    "an array upside down": Refused("#!/bin/sh\n#SBATCH --array 3-0\n", "line 2: --array: "),
    "snakemake": Runs("""#!/bin/sh
# properties = {"type": "single", "rule": "map", "threads": 1, "input": ["a's.fq"]}
cd "${SLURM_SUBMIT_DIR:-.}" && \\
sh -c 'exit 0' --snakefile '/w/Snakefile' 'out/{sample}.bam' --force -j 1 \\
--directory "$PWD" && touch done-file || touch failed-file
ls *-file
""", "done-file\n"),
    "snakemake with a profile": Runs("""#!/bin/bash
# properties = {}
#SBATCH --job-name=snakejob.map.12
#SBATCH --ntasks=1 --cpus-per-task=1 --mem=200 --time=60
#SBATCH --comment="rule_map_wildcards_sample=A,unit=1,a_comment_that_is_rather_long_9.1.2"
echo $SLURM_NTASKS $SLURM_MEM_PER_NODE
""", "1 200\n", "snakejob.map.12", {"cpu": 1, "mem": 200 * MIB}, ("line 5: --comment: the tag",)),
    "cromwell": Runs("""#!/bin/bash

cd $HOME
tmpDir=$(mkdir -p "./tmp.1" && echo "./tmp.1")
export _JAVA_OPTIONS=-Djava.io.tmpdir="$tmpDir"
(
cat <<'EOF'
a "b" $c
EOF
) > stdout
echo $? > rc.tmp
mv rc.tmp rc
cat stdout rc
""", 'a "b" $c\n0\n'),
    "a tutorial": Runs("""#!/bin/bash -l
#SBATCH --job-name=test            # Job name
#SBATCH --mail-type=BEGIN,END,FAIL # Mail events
#SBATCH --mail-user=me@example.com # Where to send mail
#SBATCH --ntasks=1                 # Run a single task
#SBATCH --mem=64mb                 # Job memory request
#SBATCH --time=00:05:00            # Time limit hrs:min:sec
#SBATCH --output=serial_%j.log     # Standard output and error log
echo "$SLURM_JOB_ID $SLURM_JOB_NODELIST" | wc -w
""", "2\n", "test", {"cpu": 1, "mem": 64 * MIB},
                       ("line 3: --mail-type", "line 4: --mail-user", "line 8: --output")),
    "python": Runs("""#!/usr/bin/env -S python3 -u
#SBATCH -J py
#SBATCH -c1 --mem=64M
import os
print(os.environ["SLURM_JOB_NAME"], os.environ["SLURM_CPUS_ON_NODE"])
""", "py 1\n", "py", {"cpu": 1}),
    "strict bash": Runs("""#!/bin/bash -ue
#SBATCH --nodes=1-1 --ntasks-per-node=1
cd "$SLURM_SUBMIT_DIR"
echo ${SLURM_JOB_ID:+id} ${SLURM_JOBID:+id} $SLURM_NNODES $SLURM_NTASKS $SLURM_PROCID
""", "id id 1 1 0\n"),
    "without a newline at the end": Runs("#!/bin/sh\n#SBATCH -c 1\necho last", "last\n"),
    "tabs and empty lines": Runs("""#!/bin/sh

\t# what it does
#SBATCH\t--mem\t64M
  #SBATCH --mem=900T
# SBATCH --mem=900T
##SBATCH --mem=900T

#SBATCH -c 2
echo $SLURM_MEM_PER_NODE
""", "64\n", None, {"cpu": 2, "mem": 64 * MIB}),
    "no GPUs": Runs("""#!/bin/bash
#SBATCH --gres=gpu:0 --gpus-per-node=0 -c 1
echo ${SLURM_GPUS_ON_NODE:-none}
""", "none\n", None, {"cpu": 1}),
    "a node for itself": Runs("""#!/bin/bash
#SBATCH --nodes=1 --exclusive --mem=0 -c 1
echo ran
""", "ran\n", None, {"cpu": 1}, ("--exclusive: cores", "--mem=0: no session gets all")),
    "a here document": Runs("""#!/bin/bash
#SBATCH -J one
cat <<EOT
#!/bin/bash
#SBATCH -J two
it's $((1 + 1))
EOT
""", "#!/bin/bash\n#SBATCH -J two\nit's 2\n", "one", {}, ("line 5 is not read",)),
    "umlauts": Runs("#!/bin/sh\n#SBATCH -J Größe --comment=Größe\necho '100%s \\101 Größe'\n",
                    "100%s A Größe\n", "Gr-e"),
    "MPI": Runs("""#!/bin/bash
#SBATCH --ntasks=2 --ntasks-per-node=2 --cpus-per-task=1 --mem-per-cpu=32M
#SBATCH --constraint=ib --hint=nomultithread
srun() { echo "srun $SLURM_NTASKS $SLURM_TASKS_PER_NODE"; }
srun ./app
""", "srun 2 2\n", None, {"cpu": 2, "mem": 64 * MIB},
                ("--ntasks: the session has", "--constraint", "line 5: no srun is in the session")),
    "PBS": Runs("#!/bin/sh\n#PBS -l nodes=2\necho ran\n", "ran\n", None, {},
                ("line 2 is not read: options are those of #SBATCH",)),
    "Windows": Refused(b"#!/bin/bash\r\n#SBATCH -c 1\r\n", "line 1 ends as in DOS (\\r\\n); dos2unix"),
    "Notepad": Refused(b"\xef\xbb\xbf#!/bin/bash\n#SBATCH -c 1\n", "line 1: a byte order mark"),
    "without an interpreter": Refused("#SBATCH -c 1\necho\n", "line 1: a script begins with its"),
    "a typing error": Refused("#!/bin/sh\n#SBATCH --cpu-per-task=2\n",
                              "line 2: sbatch has no option '--cpu-per-task=2'; did you mean "
                              "'--cpus-per-task'?"),
    "a web page": Refused("#!/bin/sh\n#SBATCH\u00a0--mem=64M\n", "line 2: sbatch has no option"),
    "a word processor": Refused("#!/bin/sh\n#SBATCH –mem=64M\n", "line 2: sbatch has no option"),
    "a heterogeneous job": Refused("#!/bin/sh\n#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 2\n",
                                   "line 3: 'hetjob': the kernels of a session are alike"),
    "shards": Refused("#!/bin/sh\n#SBATCH --gres=gpu:a100:1,shard:4\n",
                      "line 2: --gres takes GPUs such as gpu:2 (for parts of one, #ALIQUOT -r cuda"),
    "a dependency of another kind": Refused("#!/bin/sh\n#SBATCH -d singleton\n",
                                            "line 2: --dependency takes afterok, "),
}


@pytest.mark.parametrize("case", FROM_OUTSIDE.values(), ids=FROM_OUTSIDE)
def test_a_script_from_outside(cluster, submit, case):
    done = submit(case.script)
    if isinstance(case, Refused):
        assert done.returncode == 125 and done.stdout == "", done
        assert f"aliquot: ./job.sh: {case.says}" in done.stderr, done
        return
    assert output_of(cluster, done) == case.prints
    shown = info_of(cluster, done)
    assert shown["name"].startswith(case.name or "job.sh-") and shown["result"] == "SUCCESS", shown
    wanted = {slot: str(amount) for slot, amount in case.slots.items()}
    assert wanted.items() <= shown["requested_slots"].items(), shown
    for note in case.notes:
        assert note in done.stderr, done
    named = [line for line in done.stderr.splitlines() if "--job-name" not in line]
    assert case.notes or not named, named
