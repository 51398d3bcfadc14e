/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-fetch - continues the download of layers that was cut, for the agent
 *
 * skopeo begins each layer at its first byte. This program reads DIRECTORY/missing
 * (pull_directory.h) and makes the blobs of these layers with Range requests; skopeo, which runs
 * afterwards, finds them there. Manifests, configurations and signatures stay skopeo's. Where the
 * node has settings that only skopeo follows, it declines. It dies with the agent.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/image/containers_conf.h"
#include "agent/image/layer_fetch.h"
#include "agent/image/login_file.h"
#include "agent/image/pull_directory.h"
#include "agent/image/tool_report.h"
#include "base/fs.h"

#define EXIT_USAGE 2
#define EXIT_DECLINED 3      /* skopeo is to fetch the layers itself */
#define LOGINS_MAX (1 << 20) /* bytes of the auth file */

static const char usage[] =
    "usage: aliquot-fetch --registry HOST[:PORT] --repository NAME --directory DIRECTORY\n"
    "                     [--authfile FILE] [--insecure] [--timeout SECONDS]\n"
    "\n"
    "Continues the download of layers of an image; the agent runs it.\n";

struct fetch_main_job {
    const char *registry, *repository, *directory, *authfile;
    bool is_insecure;
    unsigned timeout_sec; /* 0 = none */
    struct login login;
    struct registry_client *client;
};

static atomic_bool fetch_main_is_late;

static void fetch_main_on_alarm(int signum)
{
    (void)signum;
    atomic_store(&fetch_main_is_late, true);
}

/* ---- the registry ---- */

static const char *fetch_main_host(const struct fetch_main_job *job)
{
    return strcmp(job->registry, "docker.io") == 0 ? "registry-1.docker.io" : job->registry;
}

static int fetch_main_ignore_head(void *data, const struct message_head *head, struct aq_error *err)
{
    (void)data;
    (void)head;
    (void)err;
    return 0;
}

static int fetch_main_ignore_body(void *data, const char *bytes, size_t len, struct aq_error *err)
{
    (void)data;
    (void)bytes;
    (void)len;
    (void)err;
    return 0;
}

static int fetch_main_connect(struct fetch_main_job *job, const char *scheme, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *url = aq_format("%s://%s", scheme, fetch_main_host(job));
    const struct registry_client_conf conf = { .url = url,
                                               .username = job->login.username,
                                               .password = job->login.password,
                                               .skip_verify = job->is_insecure,
                                               .stop = &fetch_main_is_late };

    registry_client_free(AQ_TAKE(job->client));
    return registry_client_new(&conf, &job->client, err);
}

/* As skopeo does: a registry that may be without TLS is asked with TLS first. */
static int fetch_main_open(struct fetch_main_job *job, struct aq_error *err)
{
    const struct registry_reader reader = { .on_head = fetch_main_ignore_head,
                                            .on_body = fetch_main_ignore_body };
    struct aq_error why = { 0 };
    int r = fetch_main_connect(job, "https", err);

    if (r < 0 || !job->is_insecure)
        return r;
    r = registry_client_read(job->client, "/v2/", 0, &reader, &why);
    return r < 0 && r != -EACCES ? fetch_main_connect(job, "http", err) : 0;
}

static int fetch_main_read_login(struct fetch_main_job *job, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    if (!job->authfile)
        return 0;
    r = fs_read(AT_FDCWD, job->authfile, LOGINS_MAX, &text, err);
    if (r == 0)
        r = login_file_find(text.data ? text.data : "", job->registry, job->repository, &job->login,
                            err);
    if (text.data)
        explicit_bzero(text.data, text.len);
    return r;
}

/* ---- layers ---- */

static int fetch_main_fetch(struct fetch_main_job *job, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int directory = open(job->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct layer_fetch_source source = { .client = job->client,
                                               .repository = job->repository,
                                               .directory = directory };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct manifest_layer layer = { .size_bytes = 0 };
    int r, used = 0;

    if (directory < 0)
        return aq_fail_errno(err, "open '%s'", job->directory);
    if ((r = fs_read(directory, PULL_MISSING_FILE, PULL_MISSING_MAX, &text, err)) < 0)
        return r;
    for (const char *line = text.data; r == 0 && line && *line; line += used) {
        if (sscanf(line, "%71s %" SCNd64 "\n%n", layer.digest, &layer.size_bytes, &used) != 2
            || !digest_is_valid(layer.digest) || layer.size_bytes < 0)
            return aq_fail(err, EINVAL, "'%s' is malformed", PULL_MISSING_FILE);
        r = layer_fetch(&source, &layer, err);
    }
    if (r == 0)
        layer_fetch_remove_kept(directory);
    return r;
}

static int fetch_main_run(struct fetch_main_job *job, struct aq_error *err)
{
    int r = containers_conf_check(job->registry, job->authfile != NULL, err);

    if (r == 0)
        r = containers_conf_check(fetch_main_host(job), job->authfile != NULL, err);
    if (r == 0)
        r = fetch_main_read_login(job, err);
    if (r == 0)
        r = fetch_main_open(job, err);
    if (r == 0)
        r = fetch_main_fetch(job, err);
    if (r < 0 && atomic_load(&fetch_main_is_late))
        r = aq_fail(err, ETIMEDOUT, "the download took longer than %u seconds", job->timeout_sec);
    registry_client_free(job->client);
    login_done(&job->login);
    return r;
}

/* ---- the program ---- */

/* After these skopeo would not do better: it would begin at the first byte again. */
static bool fetch_main_is_lasting(int code)
{
    switch (code) {
    case EAGAIN: /* the registry limits the rate of requests */
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ETIMEDOUT:
    case EREMOTEIO:
    case EBADMSG:
        return true;
    default:
        return fs_is_out_of_room(code);
    }
}

static int fetch_main_parse_options(int argc, char **argv, struct fetch_main_job *job)
{
    static const struct option options[] = {
        { "registry", required_argument, NULL, 'r' },
        { "repository", required_argument, NULL, 'n' },
        { "directory", required_argument, NULL, 'd' },
        { "authfile", required_argument, NULL, 'a' },
        { "insecure", no_argument, NULL, 'i' },
        { "timeout", required_argument, NULL, 't' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'r':
            job->registry = optarg;
            break;
        case 'n':
            job->repository = optarg;
            break;
        case 'd':
            job->directory = optarg;
            break;
        case 'a':
            job->authfile = optarg;
            break;
        case 'i':
            job->is_insecure = true;
            break;
        case 't':
            job->timeout_sec = (unsigned)strtoul(optarg, NULL, 10);
            break;
        default:
            return -EINVAL;
        }
    }
    return job->registry && job->repository && job->directory && optind == argc ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
    struct fetch_main_job job = { 0 };
    struct aq_error err = { 0 };

    if (fetch_main_parse_options(argc, argv, &job) < 0) {
        (void)fputs(usage, stderr);
        return EXIT_USAGE;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGALRM, fetch_main_on_alarm);
    (void)alarm(job.timeout_sec);
    if (fetch_main_run(&job, &err) == 0)
        return 0;
    tool_report(&err);
    return fetch_main_is_lasting(err.code) ? 1 : EXIT_DECLINED;
}
