/* SPDX-License-Identifier: Apache-2.0 */
/* Apps that are found by their programs. */
#include "runner/app_own.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "model/service_port.h"

/* Options of notebook 6 and of jupyter_server, each of which ignores those of the other. Beside the
 * globs that Jupyter hides from its list of files is the session's private key.
 */
#define JUPYTER(program)                                                                        \
    "{\"command\":[\"" program "\",\"--no-browser\",\"--allow-root\",\"--ip=127.0.0.1\","       \
    "\"--port={ports[0]}\",\"--NotebookApp.port_retries=0\",\"--ServerApp.port_retries=0\","    \
    "\"--NotebookApp.token=\",\"--NotebookApp.password=\",\"--NotebookApp.allow_remote_access=" \
    "True\",\"--ServerApp.token=\",\"--ServerApp.password=\","                                  \
    "\"--ServerApp.allow_remote_access=True\",\"--ContentsManager.hide_globs=['__pycache__',"   \
    "'*.pyc','*.pyo','.DS_Store','*~','id_container']\"]}"

const struct app_own app_own_table[] = {
    { "jupyter", 8080, "jupyter-notebook", JUPYTER("jupyter-notebook") },
    { "jupyterlab", 8090, "jupyter-lab", JUPYTER("jupyter-lab") },
    { "vscode", 8180, "code-server",
      "{\"command\":[\"code-server\",\"--auth\",\"none\",\"--disable-telemetry\","
      "\"--disable-update-check\",\"--bind-addr\",\"127.0.0.1:{ports[0]}\"]}" },
    { "vscode", 8180, "openvscode-server",
      "{\"command\":[\"openvscode-server\",\"--without-connection-token\",\"--host\","
      "\"127.0.0.1\",\"--port\",\"{ports[0]}\"]}" },
    { "tensorboard", 6006, "tensorboard",
      "{\"command\":[\"tensorboard\",\"--host\",\"127.0.0.1\",\"--port\",\"{ports[0]}\"],"
      "\"allowed_arguments\":[\"--logdir\"],"
      "\"default_arguments\":{\"--logdir\":\"/home/work/logs\"}}" },
    { SERVICE_TERMINAL, SERVICE_TERMINAL_PORT, NULL,
      "{\"command\":[\"/opt/kernel/aliquot-runner\",\"--terminal\",\"{ports[0]}\"]}" },
};

const size_t app_own_count = AQ_COUNT(app_own_table);

static bool app_own_is_installed(const char *program)
{
    const char *at = getenv("PATH");
    char path[PATH_MAX];
    struct stat st;

    while (at && *at) {
        size_t len = strcspn(at, ":");

        if (len
            && snprintf(path, sizeof(path), "%.*s/%s", (int)AQ_MIN(len, (size_t)PATH_MAX), at,
                        program)
                   < (int)sizeof(path)
            && stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

/* They ask nobody for a password: what reaches the loopback of a node is not their user alone. */
static bool app_own_is_alone(void)
{
    const char *network = getenv("ALIQUOT_NETWORK");

    return !network || strcmp(network, "host") != 0;
}

const struct app_own *app_own_find(const char *name)
{
    if (!app_own_is_alone())
        return NULL;
    for (size_t i = 0; i < app_own_count; i++)
        if (strcmp(app_own_table[i].name, name) == 0
            && (!app_own_table[i].program || app_own_is_installed(app_own_table[i].program)))
            return &app_own_table[i];
    return NULL;
}
