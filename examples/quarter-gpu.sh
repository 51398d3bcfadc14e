#!/bin/bash
# A quarter of a GPU. In a container the program sees a GPU with a quarter of the memory and
# cannot use more; as a process of the node, as here, the amount is only accounted for.
set -euo pipefail

aliquot run --name quarter -r cpu=1 -r mem=64m -r cuda.shares=0.25 -- sh -c '
    echo "GPU of this session:"
    cat /home/config/resource.txt 2>/dev/null || env | grep -i -e cuda -e nvidia || true'
aliquot agent info "$(aliquot agent ls -o name | head -n 1)"   # draws who holds what
