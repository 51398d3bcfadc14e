# SPDX-License-Identifier: Apache-2.0
"""'aliquot exec' as a program of its own, whose streams are pipes."""

import subprocess

from world import BUILD


def command(cluster, *words):
    """Its command line and environment."""
    return [BUILD / "aliquot", "exec", *words], {**cluster.env, **cluster.cli_env()}


def start(cluster, *words):
    argv, env = command(cluster, *words)
    return subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def run(cluster, *words, data=b""):
    """(exit status, standard output, standard error)"""
    process = start(cluster, *words)
    out, err = process.communicate(data, timeout=60)
    return process.returncode, out, err
