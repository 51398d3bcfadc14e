/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-accel - runs one accelerator plugin on behalf of the agent */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "accel/host.h"
#include "accel/protocol.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "base/log.h"

static const char usage[] =
    "usage: aliquot-accel PLUGIN.so [CONFIG]\n"
    "       aliquot-accel --describe PLUGIN.so [CONFIG]\n"
    "\n"
    "The first form is started by aliquot-agent. --describe prints what the plugin\n"
    "says about this machine, as one JSON object.\n";

static int accel_fail(int fd, const char *plugin, const struct aq_error *why)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    log_error("%s: %s", plugin, why->text);
    jsonw_object_begin(&w);
    jsonw_member_int(&w, "id", 0);
    jsonw_member_str(&w, "error", why->text);
    jsonw_object_end(&w);
    strbuf_addc(&out, '\n');
    if (fd >= 0)
        (void)fs_write_all(fd, out.data, out.len);
    return 1;
}

static int accel_describe(struct host *host)
{
    static const char request[] = "{\"id\":1,\"call\":\"" ACCEL_DESCRIBE "\"}";
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    if (host_answer(host, request, sizeof(request) - 1, &out, NULL) < 0)
        return 1;
    (void)fputs(out.data, stdout);
    return strstr(out.data, "\"error\"") == NULL ? 0 : 1;
}

/* Die with the agent even while a vendor's library hangs. */
static void main_bind_to_parent(void)
{
    pid_t parent = getppid();

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        (void)raise(SIGKILL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)fcntl(ACCEL_DESCRIPTOR, F_SETFD, FD_CLOEXEC);
    /* vendors' libraries print what they like, but not into the agent's answers */
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
}

int main(int argc, char **argv)
{
    bool is_shown = argc > 1 && strcmp(argv[1], "--describe") == 0;
    int at = is_shown ? 2 : 1, r;
    struct aq_error err = { 0 };
    struct host host;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("aliquot-accel %s\n", ALIQUOT_VERSION);
        return 0;
    }
    if (argc <= at || argc > at + 2 || argv[at][0] == '-') {
        (void)fputs(usage, stderr);
        return 2;
    }
    log_init("accel", LOG_LEVEL_INFO);
    if (!is_shown)
        main_bind_to_parent();
    r = host_load(argv[at], argv[at + 1], &host, &err);
    if (r < 0)
        return accel_fail(is_shown ? -1 : ACCEL_DESCRIPTOR, argv[at], &err);
    r = is_shown ? accel_describe(&host) : host_serve(&host, ACCEL_DESCRIPTOR, &err);
    if (r < 0)
        return accel_fail(-1, argv[at], &err);
    host.plugin->close(host.self);
    return r;
}
