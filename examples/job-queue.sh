#!/bin/bash
# A queue of jobs: eight of them, as many at a time as fit, and a last one after all others.
# Each job is a session that runs once, whatever happens to the connection or the manager.
set -euo pipefail

out=$(mktemp -d)
after=()
for part in 1 2 3 4 5 6 7 8; do
    aliquot run --quiet --detach --name "part-$part" -r cpu=1 -r mem=64m \
        -- sh -c "echo $part >'$out/$part'" >/dev/null
    after+=(--after "part-$part")
done
aliquot run --quiet --name collect -r cpu=1 -r mem=64m "${after[@]}" -- sh -c "cat '$out'/*"
rm -r "$out"
