# SPDX-License-Identifier: Apache-2.0
"""Every file of examples/ does what it says, on a cluster whose sessions are processes."""

import pathlib
import shutil
import subprocess

import pytest

from cluster import Cluster, wait_for
from world import BUILD, ROOT

pytestmark = pytest.mark.gate

EXAMPLES = ROOT / "examples"
GPU = """\
slot_name = "cuda"
device_plugin_name = "CUDADevice"
quantum_size = 0.05
devices = [
  { mother_uuid = "c59395cd-ac91-4cd3-a1b0-3d2568aa2d01", model_name = "CUDA GPU", numa_node = 0, subproc_count = 108, memory_size = "2G", is_mig_device = false },
]
"""


def compile_plugin(source, target):
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", f"-I{ROOT / 'include'}", "-o",
                    target, source], check=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """With one mock GPU, and the plug-in of the examples where the manager looks for it."""
    plugins = tmp_path_factory.mktemp("schedulers")
    plugins.chmod(0o755)
    compile_plugin(EXAMPLES / "largest-first.c", plugins / "largest-first.so")
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_SESSIONS_KILL_GRACE="0.3s",
                 ALIQUOT_MANAGER_SCHEDULER_PLUGINS=str(plugins)) as made:
        mock = made.folder / "mock-accelerator.toml"
        mock.write_text(GPU)
        made.start_manager()
        made.start_agent(ALIQUOT_ACCELERATORS_MOCK=str(mock))
        yield made
        made.check_audits()
        made.stop()


@pytest.fixture(autouse=True)
def clean(cluster):
    yield
    cluster.cli("rm", "--all", "--force", "--wait")


def run_example(cluster, name):
    """What it prints."""
    env = {**cluster.env, **cluster.cli_env(), "PATH": f"{BUILD}:{cluster.env['PATH']}"}
    done = subprocess.run([EXAMPLES / name], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_run_and_listed():
    names = {path.name for path in EXAMPLES.iterdir()} - {"README.md"}
    here = "".join((pathlib.Path(__file__).parent / name).read_text()
                   for name in ("test_examples.py", "test_monitoring.py"))
    listed = (EXAMPLES / "README.md").read_text()
    assert names and not [name for name in names if f'"{name}"' not in here]
    assert not [name for name in names if f"]({name})" not in listed]


def test_batch_job_prints_its_output(cluster):
    said = run_example(cluster, "batch-job.sh").splitlines()
    assert "42" in said and any("TERMINATED" in line and "addition" in line for line in said)


def test_last_job_of_the_queue_sees_all_others(cluster):
    assert run_example(cluster, "job-queue.sh").split() == [*"12345678"]


def test_quarter_of_a_gpu_is_held(cluster):
    said = run_example(cluster, "quarter-gpu.sh")
    assert "GPU of this session:" in said and "cuda.shares" in said


def test_kernels_of_a_session_know_each_other(cluster):
    said = run_example(cluster, "several-containers.sh")
    assert "I am main1 of main1,sub1,sub2" in said


def test_templates(cluster):
    """Sessions here are processes; tests/system/test_templates.py has the images."""
    for name in "trainer.yaml", "loader.yaml", "cluster.yaml":
        made = cluster.cli("template", "create", str(EXAMPLES / name))
        assert made.returncode == 0, made.stderr
    done = cluster.cli("run", "--template", "training-cluster", "--image", "process",
                       "-e", "EPOCHS=5")
    assert "trainer main1 of main1,sub1,sub2, 5 epochs" in done.stdout, done


def test_pipeline(cluster, tmp_path):
    """Sessions here are processes: the image is another one."""
    path = tmp_path / "pipeline.yaml"
    path.write_text((EXAMPLES / "pipeline.yaml").read_text().replace("python:3.11", "process"))
    done = cluster.cli("pipeline", "run", str(path), "-p", "epochs=5", "--watch")
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-1] == "digits.1 succeeded"
    logs = [cluster.cli("logs", f"digits.1.{task}").stdout for task in ("train.2", "report")]
    assert logs == ["training 5 epochs at 0.01\n", "training has succeeded\n"]
    shown = cluster.cli("pipeline", "graph", str(EXAMPLES / "pipeline.yaml"))
    assert "train.2 rate=0.01" in shown.stdout


def test_rest(cluster):
    assert run_example(cluster, "rest.sh").endswith("hello from curl\n")


def test_graphql(cluster):
    said = run_example(cluster, "graphql.py")
    assert "agent  ALIVE  cpu: 0 of 4 in use" in said and "cuda.shares: 0 of " in said


def test_agent_offers_what_its_settings_say(cluster, monkeypatch):
    """A second agent, whose settings are those of the file."""
    shutil.copy(EXAMPLES / "agent-limits.toml", cluster.folder / "limits.toml")
    for name in "ALIQUOT_RESOURCE_CPUS", "ALIQUOT_RESOURCE_ALLOCATION_MODE":
        monkeypatch.delitem(cluster.env, name)
    cluster.join("small")
    cluster.start_program("small", BUILD / "aliquot-agent", "--state", cluster.folder / "small",
                          "--config", cluster.folder / "limits.toml", ALIQUOT_ID="small")
    wait_for(lambda: cluster.agent("small").get("connected"), 60,
             lambda: cluster.log_of("small"))
    offered = cluster.agent("small")["available_slots"]
    assert offered["cpu"] == "2" and int(offered["mem"]) == 2 << 30
    cluster.programs.pop("small").stop()


def test_scheduler_plugin_serves_the_largest_first(cluster):
    group = "/aliquot/v1/resource-groups/default"
    plugin = "largest-first.c".removesuffix(".c")
    client = cluster.client()
    assert client.send("PATCH", group, {"scheduler": "plugin:" + plugin}).status == 200
    try:
        assert cluster.cli("run", "-d", "--name", "blocks", "-r", "cpu=4", "-r", "mem=64m",
                           "sleep 2").returncode == 0
        for cores in 1, 4, 2:
            assert cluster.cli("run", "-d", "--name", f"wants-{cores}", "-r", f"cpu={cores}", "-r",
                               "mem=64m", "sleep 0.2").returncode == 0
        wait_for(lambda: not cluster.live_sessions(), 60, "the sessions to end")
        started = {each["name"]: each["scheduled_at"] for each in cluster.sessions()}
        assert started["wants-4"] < min(started["wants-2"], started["wants-1"])
    finally:
        assert client.send("PATCH", group, {"scheduler": "fifo"}).status == 200
