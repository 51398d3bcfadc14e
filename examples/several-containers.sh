#!/bin/bash
# A session of three kernels: one main, two subs, placed all together or not at all. Each runs
# in a container of its own where containers are set up, and what it prints has its name before it.
set -euo pipefail

aliquot run --name trio --cluster 3 -r cpu=1 -r mem=64m -- sh -c '
    echo "I am $BACKENDAI_CLUSTER_HOST of $BACKENDAI_CLUSTER_HOSTS"'
aliquot session info trio
