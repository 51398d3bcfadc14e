# SPDX-License-Identifier: Apache-2.0
"""Programs of others that run on several kernels of one session: Debian's Open MPI and PyTorch.

Each story is told in a network namespace of its own, as those of test_container_network.py.
"""

import pathlib
import re
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))

from runtimes import Session, exit_code  # noqa: E402
from test_container_network import check_all_gone, start, tell_apart  # noqa: E402

FOUR = {"clusterSize": 4, "config": {"resources": {"cpu": "1", "mem": "512m"}}}

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


def story_of_mpi(cluster):
    """mpirun finds the host file, and starts ranks on the other kernels with the session's key."""
    session = Session(cluster, "if [ $RANK != 0 ]; then exec sleep 600; fi\n"
                      "mpirun --allow-run-as-root sh -c 'echo rank $OMPI_COMM_WORLD_RANK of "
                      "$OMPI_COMM_WORLD_SIZE on $(hostname)'", **FOUR)
    shown = session.wait(seconds=120)
    assert exit_code(shown) == 0, session.log
    assert sorted(re.findall(r"^rank \d of 4 on \w+", session.log, re.M)) == [
        "rank 0 of 4 on main1", "rank 1 of 4 on sub1", "rank 2 of 4 on sub2",
        "rank 3 of 4 on sub3"], session.log


def story_of_training(cluster):
    """Four kernels that share the data come to what one program comes to alone."""
    script = f"cat > train.py <<'END'\n{TRAIN}\nEND\n"
    alone = Session(cluster, script + "exec /usr/bin/python3 train.py", config=FOUR["config"])
    assert exit_code(alone.wait(seconds=120)) == 0, alone.log
    session = Session(cluster, script + "exec /usr/bin/python3 train.py", **FOUR)
    assert exit_code(session.wait(seconds=180)) == 0, session.log
    one = float(re.search(r"rank 0 of 1: loss (\S+)", alone.log).group(1))
    four = float(re.search(r"rank 0 of 4: loss (\S+)", session.log).group(1))
    assert one == pytest.approx(four, rel=1e-5)


def story_of_torchrun(cluster):
    """torchrun takes its options from the environment: the same command in each kernel."""
    script = (f"cat > train.py <<'END'\n{TRAIN}\nEND\n"
              f"cat > torchrun.py <<'END'\n{TORCHRUN}\nEND\n")
    session = Session(cluster, script + "exec /usr/bin/python3 torchrun.py train.py", **FOUR)
    assert exit_code(session.wait(seconds=180)) == 0, session.log
    assert re.search(r"rank 0 of 4: loss", session.log), session.log


STORIES = {name: story for name, story in globals().items() if name.startswith("story_")}


def tell(runtime, name):
    with start(runtime) as cluster:
        STORIES[name](cluster)
        check_all_gone(cluster)


@pytest.mark.parametrize("name", STORIES)
def test_story(name):
    tell_apart(__file__, "crun", name)


if __name__ == "__main__":
    tell(*sys.argv[1:])
