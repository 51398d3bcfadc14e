# Runs in a bare root, by dash or busybox: what test_tarball.py looks at afterwards.
# The words are the unpacked folder, and what the gpu step runs.
aliquot=$1/bin/aliquot
gpu_program=$2

# step NAME COMMAND...: keeps output and exit status in /results.
step() {
    name=$1
    shift
    "$@" >"/results/$name" 2>&1 </dev/null
    echo $? >"/results/$name.status"
}

# wait_for COMMAND...: for at most two minutes.
wait_for() {
    tries=600
    until "$@" >/dev/null 2>&1 || [ $((tries -= 1)) = 0 ]; do sleep 0.2; done
}

has_agent() {
    "$aliquot" agent ls -o name | grep -q .
}

first_session() {
    "$aliquot" run -q -r cpu=1 -r mem=64m -- echo "hello from a session"
}

step version "$aliquot" --version
step gpu "$aliquot" gpu run --memory 512m -- $gpu_program
step accelerator "$1/libexec/aliquot/aliquot-accel" --describe \
    "$1/lib/aliquot/aliquot-accel-mock.so" /tarball/mock.toml
step scheduler-plugin "$aliquot" sim --nodes /n --tasks /t --policy plugin:/x.so
step no-user "$1/bin/aliquot-agent" --state /tmp/no-user --config /tarball/no-user.toml
step a-user timeout 20 "$1/bin/aliquot-agent" --state /tmp/a-user --config /tarball/a-user.toml

ALIQUOT_IMAGE_ALLOW="oci:*" ALIQUOT_ACCELERATORS_MOCK=/tarball/mock.toml "$aliquot" up --dev --state /tmp/up >/results/up 2>&1 </dev/null &
up=$!
wait_for "$aliquot" login --dev
wait_for has_agent
step run first_session
step exit "$aliquot" run -r cpu=1 -r mem=64m 'exit 3'
step container "$aliquot" run -q --name boxed --image oci:/tarball/image:small -r cpu=1 -r mem=64m \
    -- echo "hello from a container"
step why "$aliquot" session why boxed
step slots "$aliquot" agent ls -o json
step agent-log cat /tmp/up/agent.log
kill -INT $up
wait $up
echo $? >/results/up.status

# A manager that speaks https, by a name that only /etc/hosts has.
"$1/bin/aliquot-manager" init --state /tmp/https --json >/tmp/https-admin
key_of() {
    sed -n 's/.*"'"$1"'": *"\([^"]*\)".*/\1/p' /tmp/https-admin
}
ALIQUOT_MANAGER_TLS_CERT=/tarball/api.crt ALIQUOT_MANAGER_TLS_KEY=/tarball/api.key \
    "$1/bin/aliquot-manager" --state /tmp/https --listen 127.0.0.1:9443 \
    --link 127.0.0.1:9444 >/results/https 2>&1 </dev/null &
manager=$!
export ALIQUOT_ENDPOINT=https://manager.example:9443
ALIQUOT_ACCESS_KEY=$(key_of access_key) ALIQUOT_SECRET_KEY=$(key_of secret_key)
export ALIQUOT_ACCESS_KEY ALIQUOT_SECRET_KEY
wait_for env ALIQUOT_SKIP_SSLCERT_VALIDATION=yes "$aliquot" agent ls
step https-ca-file env ALIQUOT_CA_FILE=/tarball/api.crt "$aliquot" agent ls -o json
step https-variable env SSL_CERT_FILE=/tarball/api.crt "$aliquot" agent ls -o json
step https-stranger "$aliquot" agent ls -o json
mkdir -p /etc/pki/tls/certs
cp /tarball/api.crt /etc/pki/tls/certs/ca-bundle.crt
step https-bundle "$aliquot" agent ls -o json
step no-name env ALIQUOT_ENDPOINT=https://nowhere.example:9443 "$aliquot" agent ls
kill $manager
wait $manager
