# SPDX-License-Identifier: Apache-2.0
"""Programs of others that run on several kernels of one session: Debian's Open MPI and PyTorch,
PyPI's Dask, JAX and Ray."""

import contextlib
import re
import subprocess

import fetched
import pytest

from hosts import MANAGER, four
from python_image import PYTHON
from runtimes import Session, exit_code

ONE = {"resources": {"cpu": "1", "mem": "1g"}}

# One step of gradient descent a line; every rank has another part of the data.
TRAIN = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
world = int(os.environ.get("WORLD_SIZE", "1"))
rank = int(os.environ.get("RANK", "0"))
if world > 1:
    dist.init_process_group("gloo")
torch.manual_seed(1)
x, y = torch.randn(64, 8), torch.randn(64, 1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
part = slice(rank * 64 // world, (rank + 1) * 64 // world)
shared = DistributedDataParallel(model) if world > 1 else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(shared(x[part]), y[part]).backward()
    optimizer.step()
with torch.no_grad():
    loss = torch.nn.functional.mse_loss(model(x), y).item()
print(f"rank {rank} of {world}: loss {loss:.9f}", flush=True)
if world > 1:
    dist.barrier()
"""


# torchrun, but for an error of Debian's: in Python 3.11 no member of Std is found for 0.
TORCHRUN = """
from torch.distributed.elastic.multiprocessing.api import Std
Std.from_str = classmethod(lambda cls, text: cls.NONE)
from torch.distributed.run import main
main()
"""


# As TRAIN, but goes on after a failure where the furthest of those left stands; sub1's first
# program kills all that is in its kernel.
ELASTIC = """
import os, signal, socket, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
step, weights = torch.zeros(1, dtype=torch.long), torch.zeros(4)
if os.path.exists("saved.pt"):
    step, weights = torch.load("saved.pt")
steps = [torch.zeros_like(step) for _ in range(world)]
dist.all_gather(steps, step)
furthest = max(range(world), key=lambda i: steps[i].item())
step = steps[furthest]
dist.broadcast(weights, furthest)
begun = step.item()
print(f"rank {rank} of {world} begins at step {begun}", flush=True)
while step < 60:
    gradient = 1 - weights
    dist.all_reduce(gradient)
    weights += gradient / world / 10
    step += 1
    torch.save((step, weights), "new.pt")
    os.rename("new.pt", "saved.pt")
    if step == 20 and socket.gethostname() == "sub1":
        time.sleep(1)  # the others save this step
        os.kill(-1, signal.SIGKILL)
    time.sleep(0.1)
print(f"rank {rank} of {world} ends with {weights.mean().item():.6f}", flush=True)
"""


def write(**files):
    """Lines of a shell that make files of Python."""
    return "".join(f"cat > {name}.py <<'END'\n{text}\nEND\n" for name, text in files.items())


def test_mpi(hosts):
    """mpirun finds the host file, and starts ranks on the other kernels with the session's key."""
    session = Session(hosts, "if [ $RANK != 0 ]; then exec sleep 600; fi\n"
                      "mpirun --allow-run-as-root sh -c 'echo rank $OMPI_COMM_WORLD_RANK of "
                      "$OMPI_COMM_WORLD_SIZE on $(hostname)'", **four(hosts))
    assert exit_code(session.wait(seconds=120)) == 0, session.log
    assert sorted(re.findall(r"^rank \d of 4 on \w+", session.log, re.M)) == [
        "rank 0 of 4 on main1", "rank 1 of 4 on sub1", "rank 2 of 4 on sub2",
        "rank 3 of 4 on sub3"], session.log


@contextlib.contextmanager
def without_ssh(hosts):
    """An image: the node's own root without any client of SSH."""
    root, layer = hosts.folder / "bare", hosts.folder / "bare-layer"
    nodes = [host for number, host in hosts.hosts.items() if number != MANAGER]
    for node in nodes:
        node.run("mkdir", "-p", root, layer)
        node.run("mount", "-t", "tmpfs", "-o", "mode=755", "bare", layer)
        node.run("mkdir", "-p", layer / "usr/bin")
        for name in ("ssh", "slogin", "rsh", "dbclient"):
            node.run("mknod", layer / "usr/bin" / name, "c", 0, 0)  # overlayfs hides it
        node.run("mount", "-t", "overlay", "bare", root, "-o", f"ro,lowerdir={layer}:/")
    try:
        yield f"rootfs:{root}"
    finally:
        for node in nodes:
            node.run("umount", "--lazy", root, layer)


@pytest.mark.parametrize("launcher, rank, rest", [
    ("mpirun.openmpi --allow-run-as-root", "$OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE",
     "exec sleep 600"),  # the failure of one ends the others; with MPICH only of MPI programs
    ("mpiexec.hydra", "$PMI_RANK of $PMI_SIZE", "true")], ids=["openmpi", "mpich"])
def test_launchers_without_ssh(hosts, launcher, rank, rest):
    """In an image without ssh they start ranks on the other kernels all the same, and have their
    output and exit status."""
    say = f"echo rank {rank} on $(hostname)"
    with without_ssh(hosts) as image:
        script = ("if [ $RANK != 0 ]; then exec sleep 600; fi\n"
                  "ls /usr/bin/ssh /usr/bin/rsh 2> /dev/null\n"
                  f"{launcher} sh -c '{say}' || exit\n"
                  "rsh=$OMPI_MCA_plm_rsh_agent\n"
                  "echo in | $rsh sub1 'cat; hostname; echo err >&2; exit 7' 2> err\n"
                  "echo $? $(cat err)\n$rsh nobody true\n"
                  f"{launcher} sh -c 'if [ $(hostname) = sub1 ]; then exit 3; fi; {rest}'")
        session = Session(hosts, script, **four(hosts), image=image)
        assert exit_code(session.wait(seconds=120)) == 3, session.log
    assert "/usr/bin" not in session.log
    assert sorted(re.findall(r"^rank \d of 4 on \w+", session.log, re.M)) == [
        "rank 0 of 4 on main1", "rank 1 of 4 on sub1", "rank 2 of 4 on sub2",
        "rank 3 of 4 on sub3"], session.log
    assert "in\nsub1\n7 err\n" in session.log, session.log
    assert "'nobody' is not a kernel of this session" in session.log, session.log


def test_training(hosts):
    """Four kernels that share the data come to what one program comes to alone."""
    script = write(train=TRAIN) + "exec /usr/bin/python3 train.py"
    alone = Session(hosts, script, config=ONE)
    assert exit_code(alone.wait(seconds=120)) == 0, alone.log
    session = Session(hosts, script, **four(hosts))
    assert exit_code(session.wait(seconds=180)) == 0, session.log
    one = float(re.search(r"rank 0 of 1: loss (\S+)", alone.log).group(1))
    together = float(re.search(r"rank 0 of 4: loss (\S+)", session.log).group(1))
    assert one == pytest.approx(together, rel=1e-5)


def test_torchrun(hosts):
    """torchrun takes its options from the environment: the same command in each kernel."""
    session = Session(hosts, write(train=TRAIN, torchrun=TORCHRUN)
                      + "exec /usr/bin/python3 torchrun.py train.py", **four(hosts))
    assert exit_code(session.wait(seconds=180)) == 0, session.log
    assert re.search(r"rank 0 of 4: loss", session.log), session.log


def test_training_goes_on_without_a_kernel(hosts):
    """torchrun with a minimum: those that are left meet again, and train on from where they were."""
    session = Session(hosts, write(train=ELASTIC, torchrun=TORCHRUN)
                      + "exec /usr/bin/python3 torchrun.py train.py",
                      **four(hosts), cluster_size_min=2)
    assert exit_code(session.wait(seconds=300)) == 0, session.log
    begun = [int(step) for step in re.findall(r"begins at step (\d+)", session.log)]
    assert begun[0] == 0 and begun[-1] >= 20, session.log
    assert f"ends with {1 - 0.9 ** 60:.6f}" in session.log, session.log


# ---- programs that pip installs ----

DASK = """
import socket
from distributed import Client
with Client("main1:8786") as client:
    client.wait_for_workers(3, timeout=60)
    print("workers", *sorted(set(client.run(socket.gethostname).values())))
    print("sum", sum(client.gather(client.map(lambda x: x * x, range(100)))))
"""

# JAX reads the coordinator's address itself, and no number of processes; each has another summand.
JAX = """
import os, jax, jax.numpy as jnp
from jax.experimental import multihost_utils
jax.distributed.initialize(num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
                           process_id=int(os.environ["JAX_PROCESS_ID"]))
all_of_them = multihost_utils.process_allgather(jnp.array([jax.process_index() + 1]))
print(f"process {jax.process_index()} of {jax.process_count()}: sum {all_of_them.sum()}", flush=True)
jax.distributed.shutdown()
"""

RAY = """
import socket, time, ray
ray.init(address="auto", log_to_driver=False)
end = time.monotonic() + 60
while len(ray.nodes()) < 2 and time.monotonic() < end:
    time.sleep(0.2)

@ray.remote(num_cpus=1)
def where():
    time.sleep(1)
    return socket.gethostname()

print("workers", *sorted(set(ray.get([where.remote() for _ in range(2)]))))
"""


@contextlib.contextmanager
def packages(hosts, *names):
    """An image: the node's own root, where Debian's Python finds what pip installs."""
    root, layer = hosts.folder / "root", hosts.folder / "layer"
    site = layer / f"usr/local/lib/{PYTHON}/dist-packages"
    nodes = [host for number, host in hosts.hosts.items() if number != MANAGER]
    for node in nodes:
        node.run("mkdir", "-p", root, layer)
        node.run("mount", "-t", "tmpfs", "-o", "mode=755", "packages", layer)  # not below the root
        node.run("mkdir", "-p", site.parent)
        node.run("cp", "-r", fetched.python_packages(*names), site)
        node.run("mount", "-t", "overlay", "packages", root, "-o", f"ro,lowerdir={layer}:/")
    try:
        yield f"rootfs:{root}"
    finally:
        for node in nodes:
            node.run("umount", "--lazy", root, layer)


def test_dask(hosts):
    """Workers find the scheduler by its name."""
    with packages(hosts, "distributed") as image:
        session = Session(
            hosts, write(work=DASK) +
            "if [ $RANK != 0 ]; then exec /usr/bin/python3 -m distributed.cli.dask_worker "
            "main1:8786 --nthreads 1 --no-dashboard; fi\n"
            "/usr/bin/python3 -m distributed.cli.dask_scheduler --port 8786 --no-dashboard &\n"
            "exec /usr/bin/python3 work.py", **four(hosts), image=image)
        assert exit_code(session.wait(seconds=180)) == 0, session.log
    assert "workers sub1 sub2 sub3\nsum 328350\n" in session.log, session.log


def test_jax(hosts):
    """The processes meet at the coordinator that the environment names."""
    with packages(hosts, "jax") as image:
        session = Session(hosts, write(work=JAX) + "exec /usr/bin/python3 work.py",
                          **four(hosts), image=image)
        assert exit_code(session.wait(seconds=240)) == 0, session.log
    assert "process 0 of 4: sum 10\n" in session.log, session.log


def test_ray(hosts):
    """A node joins the head by its name, and each is known by the address of its own."""
    ray = "/usr/bin/python3 -m ray.scripts.scripts"
    start = (f"{ray} start --num-cpus 1 --disable-usage-stats --object-store-memory 80000000 "
             "--node-ip-address $(getent hosts $(hostname) | cut -d' ' -f1)")
    with packages(hosts, "ray") as image:
        session = Session(
            hosts, write(work=RAY) +  # gRPC's own resolver asks the DNS for all names
            "export GRPC_DNS_RESOLVER=native\nif [ $RANK != 0 ]; then\n"
            "until bash -c ': > /dev/tcp/main1/6379' 2> /dev/null; do sleep 0.2; done\n"
            f"exec {start} --address main1:6379 --block; fi\n"
            # a start that takes it more than 30 s is given up
            f"for i in 1 2 3; do {start} --head --port 6379 --include-dashboard=false && break; "
            f"{ray} stop --force; done\nexec /usr/bin/python3 work.py",
            **four(hosts, cpu="2", mem="2g") | {"clusterSize": 2}, image=image)
        assert exit_code(session.wait(seconds=300)) == 0, session.log
    assert "workers main1 sub1\n" in session.log, session.log
