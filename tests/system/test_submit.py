# SPDX-License-Identifier: Apache-2.0
"""'aliquot submit': scripts with options of ours or of sbatch in their first comments."""

import json
import subprocess

import pytest

from cluster import Cluster, wait_status
from test_accelerators import TWO_GPUS, start
from world import BUILD

pytestmark = [pytest.mark.engines, pytest.mark.gate]

SMALL = "#ALIQUOT -r mem=64m\n"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_IMAGE_ALLOW="* host rootfs:*") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture
def script(tmp_path):
    def write(text, name="job.sh"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)
    return write


def submit(cluster, *words, **more):
    return subprocess.run([BUILD / "aliquot", "submit", *words], capture_output=True, text=True,
                          env={**cluster.env, **cluster.cli_env()}, timeout=100, check=False, **more)


def log_of(cluster, name):
    wait_status(cluster.client(), name, "TERMINATED")
    return cluster.cli("logs", name).stdout


def test_a_script_of_slurm_runs(cluster, script):
    done = submit(cluster, script("""#!/bin/bash
#SBATCH --job-name=train --time=1-0
#SBATCH -c 1 --mem=64M
#SBATCH --comment="of mine"   # what it is
#SBATCH --output=train-%j.out --mail-type=END

echo "$1|$2|$SLURM_CPUS_PER_TASK|$SLURM_JOB_NAME"
[[ $SLURM_JOB_ID = "$ALIQUOT_JOB_NUMBER" ]] && echo "it's \\"bash\\""
pwd | grep -q kernels && basename "$0"
"""), "a b", "it's")
    assert done.returncode == 0, done
    assert done.stdout.startswith("Submitted session train ") and done.stdout.count("\n") == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 2 and "line 5: --output: " in lines[0] and "aliquot logs" in lines[0]
    assert "line 5: --mail-type: " in lines[1]
    assert log_of(cluster, "train") == "a b|it's|1|train\nit's \"bash\"\njob.sh\n"
    shown = json.loads(cluster.cli("session", "info", "train", "-o", "json").stdout)
    assert done.stdout.split()[-1] == shown["id"] and shown["tag"] == "of mine"


def test_the_command_line_wins_then_our_lines(cluster, script):
    path = script("""#!/bin/sh
#ALIQUOT -r mem=64m --env B=ours --env C=ours --tag ours --name lines
#SBATCH --mem=1G --cpus-per-task=1 --export=A=slurm,B=slurm,C=slurm --comment=slurm -J other
echo $A $B $C
""")
    done = submit(cluster, "--env", "C=mine", "--tag", "mine", path)
    assert done.returncode == 0 and done.stderr == "", done
    assert log_of(cluster, "lines") == "slurm ours mine\n"
    shown = json.loads(cluster.cli("session", "info", "lines", "-o", "json").stdout)
    assert shown["tag"] == "mine"
    assert shown["requested_slots"] == {"cpu": "1", "mem": str(64 << 20)}, shown


def test_waiting_gives_the_status_of_the_script(cluster, script):
    done = submit(cluster, "--wait", "--parsable", script("#!/bin/sh\n" + SMALL + "exit 7\n"))
    assert done.returncode == 7, done
    assert cluster.cli("session", "info", done.stdout.strip()).returncode == 0


def test_the_time_limit_of_slurm_holds(cluster, script):
    done = submit(cluster, "--wait", script("#!/bin/sh\n#SBATCH -t 0:01\n" + SMALL + "sleep 1000\n"))
    assert done.returncode != 0 and "timeout of 1 s" in done.stderr, done


def test_a_dependency_of_slurm_is_waited_for(cluster, script, tmp_path):
    go = tmp_path / "go"
    first = submit(cluster, "--parsable", "--name", "before", "-", input="#!/bin/sh\n" + SMALL
                   + f"until test -e {go}; do sleep 0.1; done\nexit 3\n").stdout.strip()
    path = script("#!/bin/sh\n" + SMALL + f"#SBATCH --dependency=afterok:{first}\ntrue\n")
    assert submit(cluster, "--name", "after", path).returncode == 0
    go.touch()
    wait_status(cluster.client(), "after", "CANCELLED")


def test_a_script_comes_by_standard_input(cluster):
    done = submit(cluster, "--name", "by-input", "-", "x", input="#!/bin/sh\n" + SMALL + "echo $1\n")
    assert done.returncode == 0 and log_of(cluster, "by-input") == "x\n", done


def test_each_of_several_knows_its_index(cluster, script):
    done = submit(cluster, "--count", "3", "-q", "--wait", "--name", "part",
                  script("#!/bin/sh\n" + SMALL + "#SBATCH --array=0-2\n"
                         "echo $SLURM_ARRAY_TASK_ID of $ALIQUOT_ARRAY_COUNT\n"))
    assert done.returncode == 0 and len(done.stdout.split()) == 3, done
    assert [cluster.cli("logs", f"part-{i + 1}").stdout for i in range(3)] == [
        f"{i} of 3\n" for i in range(3)]


def test_an_array_of_slurm(cluster, script):
    done = submit(cluster, "--wait", script("#!/bin/sh\n#SBATCH -J sweep --array=1-7:3%2\n" + SMALL
                                            + "echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_MAX "
                                            "$SLURM_ARRAY_JOB_ID $SLURM_JOB_ID\n"))
    assert done.returncode == 0 and done.stdout.startswith("Submitted session sweep "), done
    seen = [cluster.cli("logs", f"sweep[{i}]").stdout.split() for i in (1, 4, 7)]
    assert [line[:3] for line in seen] == [[str(i), "of", "7"] for i in (1, 4, 7)]
    numbers = [int(line[4]) for line in seen]
    assert {int(line[3]) for line in seen} == {int(seen[0][3])} and len(set(numbers)) == 3


def test_several_are_more_than_one_request_holds(cluster, script):
    done = submit(cluster, "--count", "20", "-q", "--wait", "--name", "long",
                  script("#!/bin/sh\n" + SMALL + "true\n#" + "x" * 30_000 + "\n"))
    assert done.returncode == 0 and len(set(done.stdout.split())) == 20, done


def test_jobs_of_one_name_may_live_together(cluster, script):
    path = script("#!/bin/sh\n#SBATCH -J twin\n" + SMALL + "sleep 1000\n")
    first, second = submit(cluster, path), submit(cluster, path)
    assert first.stdout.startswith("Submitted session twin "), first
    assert second.stdout.startswith("Submitted session twin-") and second.returncode == 0, second
    third = submit(cluster, "--name", "twin", path)
    assert third.returncode == 125 and "twin" in third.stderr, third
    for done in (first, second):
        assert cluster.cli("rm", "--wait", done.stdout.split()[-1]).returncode == 0


def test_formats(cluster, script):
    path = script("#!/bin/sh\n" + SMALL + "true\n")
    shown, = json.loads(submit(cluster, "-o", "json", path).stdout)
    assert shown["sessionName"].startswith("job.sh-")
    assert submit(cluster, "-o", "name", "--name", "named", path).stdout == "named\n"


@pytest.mark.parametrize("text, says", [
    ("#!/bin/sh\n#SBATCH --array=9-1\n", "job.sh: line 2: --array: the range 9-1 ends before it "
                                         "begins"),
    ("#!/bin/sh\n#SBATCH --mem=lots\n", "line 2: --mem takes a size such as 4G"),
    ("#!/bin/sh\n\n#SBATCH --job-nane=x\n", "line 3: sbatch has no option '--job-nane=x'; did you "
                                           "mean '--job-name'?"),
    ("#!/bin/sh\n#SBATCH --hold\n", "line 2: --hold: sessions are not held"),
    ("#!/bin/sh\n#ALIQUOT --nam x\n", "job.sh: line 2: unknown option '--nam'"),
    ("#!/bin/sh\n#ALIQUOT train.py\n", "line 2: 'train.py' is no option"),
    ("echo\n", "line 1: a script begins with its interpreter, such as #!/bin/bash"),
    ("#!/bin/sh\n\r\necho\r\n", "job.sh: line 2 ends as in DOS"),
    ("#!/bin/sh\n#" + "x" * (1 << 16), "more than 64 KiB"),
    ("#!/bin/sh\n#" + "'" * (1 << 15), "at most 65536"),
])
def test_what_is_refused(cluster, script, text, says):
    before = len(cluster.sessions())
    done = submit(cluster, script(text))
    assert done.returncode == 125 and says in done.stderr and done.stdout == "", done
    assert len(cluster.sessions()) == before


def test_a_late_line_is_named(cluster, script):
    done = submit(cluster, script("#!/bin/sh\n" + SMALL + "true\n#SBATCH --mem=1T\n"))
    assert done.returncode == 0 and "line 4 is not read" in done.stderr, done


@pytest.mark.parametrize("command, is_named", [("  srun ./train", True), ("srun", True),
                                               ("echo srun", False), ("# srun", False)])
def test_srun_in_a_script_is_named(cluster, script, command, is_named):
    done = submit(cluster, script(f"#!/bin/sh\n{SMALL}\n{command} || true\n"))
    assert done.returncode == 0, done
    assert ("line 4: no srun is in the session" in done.stderr) == is_named, done


def test_no_script(cluster, tmp_path):
    done = submit(cluster, str(tmp_path / "none.sh"))
    assert done.returncode == 125 and "none.sh" in done.stderr, done


@pytest.mark.parametrize("mode, slot", [("discrete", "cuda.device"), ("fractional", "cuda.shares")])
def test_gpus_are_what_the_cluster_offers(script, mode, slot):
    with Cluster() as cluster:
        start(cluster, f'allocation_mode = "{mode}"\n' + TWO_GPUS)
        path = script("#!/bin/sh\n" + SMALL + "#SBATCH --gres=gpu:2\n"
                      "echo ${SLURM_GPUS_ON_NODE-unset} $SLURM_JOB_GPUS\n")
        for name, words, wanted, said in (("both", (), {slot: "2"}, "2 0,1\n"),
                                          ("half", ("-r", slot + "=1"), {slot: "1"}, "1 0\n")):
            done = submit(cluster, "--wait", "--name", name, *words, path)
            assert done.returncode == 0, done
            shown = json.loads(cluster.cli("session", "info", name, "-o", "json").stdout)
            assert {**shown["requested_slots"], "cpu": "1"} == {
                "cpu": "1", "mem": str(64 << 20), **wanted}
            assert cluster.cli("logs", name).stdout == said
        cluster.stop()
