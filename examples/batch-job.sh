#!/bin/bash
# A batch job: queue it, wait for its end, read its output.
set -euo pipefail

id=$(aliquot run --detach --name addition -r cpu=1 -r mem=64m --timeout 10m -o name \
    -- sh -c 'echo $((2 + 40))')
aliquot session wait "$id"          # exits as the job did
aliquot logs "$id"
aliquot ps --all --columns name,status,exit_code
