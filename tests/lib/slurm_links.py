# SPDX-License-Identifier: Apache-2.0
"""Slurm's commands as links in a folder, for programs that find them in PATH."""

import os

# A sanitizer reserves address space, which the limit of a job that runs as a process counts: a job
# that calls srun asks for more memory than there is, of agents that offer it.
OFFER = {"ALIQUOT_RESOURCE_MEM": "900t", "ALIQUOT_RESOURCE_CPUS": "4"}
PLENTY_MB = 20_000_000


def environment(cluster, folder):
    """The environment of a user of the cluster who has the commands first in PATH."""
    done = cluster.run("aliquot", "slurm", "links", folder)
    assert done.returncode == 0, done
    return {**cluster.env, **cluster.cli_env(), "PATH": f"{folder}:" + os.environ["PATH"]}
