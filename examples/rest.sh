#!/bin/bash
# The REST API with curl and openssl: make a session, wait for its end, read its log. Requests
# are signed as Backend.AI does it: HMAC-SHA256 with a key made of secret, day and host.
set -euo pipefail

endpoint=${ALIQUOT_ENDPOINT:-http://127.0.0.1:8081}
version=v9.20250722

hmac() { # hmac KEY-IN-HEX: of standard input, in hex
    openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" | sed 's/.* //'
}

request() { # request METHOD PATH [JSON]
    local date host=${endpoint#*//} type=application/json empty key signature
    date=$(date -u +%Y-%m-%dT%H:%M:%S.%6N+00:00)
    empty=$(printf '' | openssl dgst -sha256 | sed 's/.* //')
    key=$(printf %s "$ALIQUOT_SECRET_KEY" | od -An -v -tx1 | tr -d ' \n')
    key=$(printf %s "$(date -u -d "$date" +%Y%m%d)" | hmac "$key")
    key=$(printf %s "$host" | hmac "$key")
    signature=$(printf '%s\n%s\n%s\nhost:%s\ncontent-type:%s\nx-backendai-version:%s\n%s' \
        "$1" "$2" "$date" "$host" "$type" "$version" "$empty" | hmac "$key")
    curl --silent --show-error --fail-with-body --request "$1" \
        --header "Date: $date" --header "Content-Type: $type" \
        --header "X-BackendAI-Version: $version" \
        --header "Authorization: BackendAI signMethod=HMAC-SHA256, credential=$ALIQUOT_ACCESS_KEY:$signature" \
        ${3:+--data "$3"} "$endpoint$2"
}

request POST /aliquot/v1/sessions '{"name": "by-curl", "type": "batch", "image": "process",
    "startupCommand": "echo hello from curl", "config": {"resources": {"cpu": "1", "mem": "64m"}}}'
echo
until request GET /aliquot/v1/sessions/by-curl | grep -q '"TERMINATED"'; do sleep 0.2; done
request GET /aliquot/v1/sessions/by-curl/logs
