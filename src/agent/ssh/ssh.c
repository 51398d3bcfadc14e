/* SPDX-License-Identifier: Apache-2.0 */
/* ssh.c - the SSH server of containers: Debian's dropbear, brought by the node */
#include "agent/ssh/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/sync_tool.h"
#include "base/arena.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"

#define LOADER_NAME "ld.so"
#define PROGRAM_NAME "dropbear"
#define SFTP_NAME "sftp-server"
#define CLIENT_NAME "dbclient"
#define SFTP_WANTED "/usr/lib/sftp-server" /* where dropbear looks for one */
#define SHELL_OF_FILES "/bin/sh"
#define KEY_OF_FILES "no-pty,no-port-forwarding,no-agent-forwarding,no-X11-forwarding "

struct ssh {
    bool has_sftp, has_client;
    struct container_mount mounts[SSH_MOUNTS_MAX]; /* those for files only come last */
    size_t count, count_of_all;
    struct arena arena; /* owns their paths */
};

/* ---- the program ---- */

static int ssh_add_mount(struct ssh *ssh, const char *source, const char *target,
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *file = NULL;
    struct container_mount *mount = &ssh->mounts[ssh->count];

    for (size_t i = 0; i < ssh->count; i++)
        if (strcmp(ssh->mounts[i].target, target) == 0)
            return 0; /* a library of both programs */
    if (ssh->count == SSH_MOUNTS_MAX)
        return aq_fail(err, E2BIG, "it needs more than %d libraries", SSH_MOUNTS_MAX - 4);
    file = realpath(source, NULL); /* a later package is another file of this name */
    if (!file)
        return aq_fail(err, ENOENT, "'%s' is not there", source);
    mount->source = arena_strdup(&ssh->arena, file);
    mount->target = arena_strdup(&ssh->arena, target);
    ssh->count++;
    return 0;
}

static int ssh_add_part(struct ssh *ssh, const char *source, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *target = aq_format("%s/%s", SSH_INSIDE, name);

    return ssh_add_mount(ssh, source, target, err);
}

/* "	libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)", and the loader as
 * "	/lib64/ld-linux-x86-64.so.2 (0x...)".
 */
static int ssh_add_line(struct ssh *ssh, const char *line, struct aq_error *err)
{
    char name[128], path[1024];

    if (sscanf(line, " %127s => %1023s", name, path) == 2 && path[0] == '/')
        return strchr(name, '/') ? ssh_add_part(ssh, path, LOADER_NAME, err)
                                 : ssh_add_part(ssh, path, name, err);
    if (sscanf(line, " %1023s", path) == 1 && path[0] == '/')
        return ssh_add_part(ssh, path, LOADER_NAME, err);
    return 0; /* the kernel's own */
}

static int ssh_add_libraries(struct ssh *ssh, const char *program, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *argv[] = { "/usr/bin/ldd", program, NULL };
    int r = tool_run(argv, &text, err);
    char *rest = text.data, *line;

    while (r == 0 && rest && (line = strsep(&rest, "\n")))
        r = ssh_add_line(ssh, line, err);
    return r;
}

static bool ssh_has_loader(const struct ssh *ssh)
{
    for (size_t i = 0; i < ssh->count; i++)
        if (strcmp(ssh->mounts[i].target, SSH_INSIDE "/" LOADER_NAME) == 0)
            return true;
    return false;
}

static int ssh_add_program(struct ssh *ssh, const char *program, const char *name,
                           struct aq_error *err)
{
    int r = ssh_add_part(ssh, program, name, err);

    return r < 0 ? r : ssh_add_libraries(ssh, program, err);
}

/* Without it there is no SFTP, and SSH as well as with it. */
static void ssh_add_sftp(struct ssh *ssh, const char *runner)
{
    struct aq_error err = { 0 };
    int r;

    if (access(SSH_SFTP_SERVER, X_OK) < 0)
        return;
    r = ssh_add_program(ssh, SSH_SFTP_SERVER, SFTP_NAME, &err);
    if (r == 0)
        r = ssh_add_mount(ssh, runner, SFTP_WANTED, &err);
    if (r < 0)
        log_warning("sessions have no SFTP: %s", err.text);
    ssh->has_sftp = r == 0;
}

/* For launchers in images that have no client. */
static void ssh_add_client(struct ssh *ssh, const char *runner)
{
    struct aq_error err = { 0 };
    int r;

    if (access(SSH_CLIENT, X_OK) < 0)
        return;
    r = ssh_add_program(ssh, SSH_CLIENT, CLIENT_NAME, &err);
    if (r == 0)
        r = ssh_add_mount(ssh, runner, SSH_REMOTE_SHELL, &err);
    if (r < 0)
        log_warning("kernels of a session reach each other by the ssh of their images only: %s",
                    err.text);
    ssh->has_client = r == 0;
}

/* What sessions for files have besides, each if the node has it. */
static void ssh_add_files(struct ssh *ssh, const char *runner)
{
    static const char *const programs[][2] = { { "/usr/bin/rsync", "rsync" },
                                               { "/usr/bin/scp", "scp" } };
    struct aq_error err = { 0 };
    int r;

    ssh->count_of_all = ssh->count;
    r = ssh_add_mount(ssh, runner, SHELL_OF_FILES, &err);
    for (size_t i = 0; r == 0 && i < AQ_COUNT(programs); i++)
        if (access(programs[i][0], X_OK) == 0)
            r = ssh_add_program(ssh, programs[i][0], programs[i][1], &err);
    if (r < 0)
        log_warning("sessions for files lack programs: %s", err.text);
}

int ssh_new(const char *program, const char *runner, struct ssh **ret, struct aq_error *err)
{
    AQ_CLEANUP(ssh_freep) struct ssh *ssh = NULL;
    int r;

    if (access(program, X_OK) < 0)
        return aq_fail_errno(err, "'%s'", program);
    ssh = aq_alloc(sizeof(*ssh));
    r = ssh_add_program(ssh, program, PROGRAM_NAME, err);
    if (r == 0 && !ssh_has_loader(ssh))
        r = aq_fail(err, ENOEXEC, "the loader of '%s' was not found", program);
    if (r < 0)
        return r;
    ssh_add_client(ssh, runner);
    ssh_add_sftp(ssh, runner);
    ssh_add_files(ssh, runner);
    *ret = AQ_TAKE(ssh);
    return r;
}

void ssh_free(struct ssh *ssh)
{
    if (ssh)
        arena_done(&ssh->arena);
    free(ssh);
}

bool ssh_has_client(const struct ssh *ssh)
{
    return ssh->has_client;
}

bool ssh_has_sftp(const struct ssh *ssh)
{
    return ssh->has_sftp;
}

size_t ssh_mounts(const struct ssh *ssh, bool for_files, struct container_mount *ret)
{
    size_t count = for_files ? ssh->count : ssh->count_of_all;

    memcpy(ret, ssh->mounts, count * sizeof(*ret));
    return count;
}

/* ---- a kernel's files ---- */

static int ssh_make_host_key(const unsigned char *seed, const char *hostname, struct ssh_key *ret,
                             struct aq_error *err)
{
    char label[96];

    (void)snprintf(label, sizeof(label), SSH_LABEL_HOST "%s", hostname);
    return ssh_key_derive(seed, label, ret, err);
}

struct ssh_texts {
    struct strbuf host, host_ecdsa, known, cluster, cluster_public, container, authorized,
        shell_config;
    struct strbuf ports, client_key, client_known; /* of SSH_REMOTE_SHELL, as dropbear wants it */
};

static void ssh_texts_done(struct ssh_texts *t)
{
    strbuf_done(&t->host);
    strbuf_done(&t->host_ecdsa);
    strbuf_done(&t->known);
    strbuf_done(&t->cluster);
    strbuf_done(&t->cluster_public);
    strbuf_done(&t->container);
    strbuf_done(&t->authorized);
    strbuf_done(&t->shell_config);
    strbuf_done(&t->ports);
    strbuf_done(&t->client_key);
    strbuf_done(&t->client_known);
}

static unsigned ssh_port_of(const struct ssh_files *files, const char *hostname)
{
    const struct cluster_network_kernel *kernel = files->network ? cluster_network_find(
                                                      files->network, hostname)
                                                                 : NULL;

    return kernel ? (unsigned)kernel->port + CLUSTER_HOST_SSH : SSH_PORT;
}

/* The keys of all hosts of the session, as ~/.ssh/known_hosts has them, and their ports. */
static int ssh_add_known(const struct ssh_files *files, const unsigned char *seed,
                         struct ssh_texts *t, struct aq_error *err)
{
    const char *at = files->hosts ? files->hosts : files->hostname;
    int r = 0;

    while (r == 0 && *at) {
        char name[80];
        struct ssh_key key;

        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
        at += strcspn(at, ",");
        at += *at == ',';
        r = ssh_make_host_key(seed, name, &key, err);
        strbuf_addf(&t->ports, "%s %u\n", name, ssh_port_of(files, name));
        strbuf_addf(&t->known, "[%s]:%u ", name, ssh_port_of(files, name));
        strbuf_addf(&t->client_known, "%s ", name);
        if (r == 0) {
            ssh_key_add_public(&key, &t->known);
            ssh_key_add_public(&key, &t->client_known);
        }
        strbuf_addc(&t->known, '\n');
        strbuf_addc(&t->client_known, '\n');
    }
    return r;
}

static void ssh_add_authorized(struct strbuf *out, const struct ssh_key *key, const char *comment)
{
    ssh_key_add_public(key, out);
    strbuf_addf(out, " %s\n", comment);
}

static int ssh_add_ecdsa(const struct ssh_files *files, const unsigned char *seed,
                         struct strbuf *out, struct aq_error *err)
{
    struct ssh_ecdsa_key key;
    char label[96];
    int r;

    (void)snprintf(label, sizeof(label), SSH_LABEL_HOST_ECDSA "%s", files->hostname);
    if ((r = ssh_ecdsa_derive(seed, label, &key, err)) == 0)
        ssh_ecdsa_add_dropbear(&key, out);
    return r;
}

/* By which its kernels reach each other: "main1,sub1,sub2" are main* and sub*. The first port
 * that is given for a host counts.
 */
static void ssh_make_shell_config(const struct ssh_files *files, struct strbuf *out)
{
    const char *hosts = files->hosts ? files->hosts : files->hostname;
    const char *last = "";
    size_t last_len = 0;

    for (size_t i = 0; files->network && i < files->network->kernel_count; i++)
        strbuf_addf(out, "Host %s\n  Port %u\n", files->network->kernels[i].hostname,
                    ssh_port_of(files, files->network->kernels[i].hostname));
    strbuf_adds(out, "Host");
    for (const char *at = hosts; *at; at += *at == ',') {
        size_t len = strcspn(at, ","), role = len;

        while (role > 0 && at[role - 1] >= '0' && at[role - 1] <= '9')
            role--;
        if (role != last_len || memcmp(last, at, role) != 0) {
            strbuf_addc(out, ' ');
            strbuf_add(out, at, role);
            strbuf_addc(out, '*');
        }
        last = at;
        last_len = role;
        at += len;
    }
    strbuf_adds(out, "\n"
                     "  Port 2200\n"
                     "  IdentityFile /home/config/ssh/id_cluster\n"
                     "  UserKnownHostsFile /home/config/ssh/known_hosts ~/.ssh/known_hosts\n");
}

static int ssh_make_texts(const struct ssh_files *files, struct ssh_texts *t, struct aq_error *err)
{
    const char *options = files->for_files ? KEY_OF_FILES : "";
    struct ssh_key host, cluster, container;
    unsigned char seed[SSH_KEY_SIZE];
    int r = ssh_seed_parse(files->seed, seed) < 0
                ? aq_fail_field(err, EINVAL, "ssh_seed", "a seed is %d digits", SSH_SEED_TEXT)
                : 0;

    if (r == 0)
        r = ssh_make_host_key(seed, files->hostname, &host, err);
    if (r == 0)
        r = ssh_key_derive(seed, "cluster", &cluster, err);
    if (r == 0)
        r = ssh_key_derive(seed, SSH_LABEL_CONTAINER, &container, err);
    if (r == 0)
        r = ssh_add_ecdsa(files, seed, &t->host_ecdsa, err);
    if (r == 0)
        r = ssh_add_known(files, seed, t, err);
    if (r < 0)
        return r;
    ssh_key_add_dropbear(&host, &t->host);
    ssh_key_add_openssh(&cluster, "work@cluster", &t->cluster);
    ssh_key_add_dropbear(&cluster, &t->client_key);
    ssh_key_add_openssh(&container, "work@session", &t->container);
    ssh_add_authorized(&t->cluster_public, &cluster, "work@cluster");
    strbuf_adds(&t->authorized, options);
    ssh_add_authorized(&t->authorized, &container, "work@session");
    if (!files->for_files)
        ssh_add_authorized(&t->authorized, &cluster, "work@cluster");
    if (files->own)
        strbuf_addf(&t->authorized, "%s%s own\n", options, files->own);
    ssh_make_shell_config(files, &t->shell_config);
    return 0;
}

static int ssh_make_directories(int config, struct aq_error *err)
{
    static const char *const names[] = { "ssh", "ssh/client", "ssh/client/.ssh", "home",
                                         "home/.ssh" };

    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (mkdirat(config, names[i], 0755) < 0 && errno != EEXIST)
            return aq_fail_errno(err, "make '%s'", names[i]);
    return 0;
}

/* Readable by everybody in the container: nobody else on the node gets to the directory. */
static int ssh_write_texts(int config, const struct ssh_texts *t, bool for_files,
                           struct aq_error *err)
{
    static const char shells[] = "/bin/sh\n/bin/bash\n/usr/bin/bash\n";
    const struct {
        const char *path, *data;
        size_t len;
    } all[] = {
        { "ssh/" SSH_HOST_KEY, t->host.data, t->host.len },
        { "ssh/" SSH_HOST_KEY_ECDSA, t->host_ecdsa.data, t->host_ecdsa.len },
        { "ssh/known_hosts", t->known.data, t->known.len },
        { "ssh/id_cluster", t->cluster.data, t->cluster.len },
        { "ssh/id_cluster.pub", t->cluster_public.data, t->cluster_public.len },
        { SSH_SHELLS, shells, sizeof(shells) - 1 },
        { "home/.ssh/authorized_keys", t->authorized.data, t->authorized.len },
        { "home/id_container", t->container.data, t->container.len },
        { "home/.ssh/config", t->shell_config.data, t->shell_config.len },
        { "ssh/ports", t->ports.data, t->ports.len },
        { "ssh/id_cluster.dropbear", t->client_key.data, t->client_key.len },
        { "ssh/client/.ssh/known_hosts", t->client_known.data, t->client_known.len },
    };
    size_t count = AQ_COUNT(all) - (for_files ? 5 : 0);
    int r = ssh_make_directories(config, err);

    for (size_t i = 0; r == 0 && i < count; i++)
        r = fs_write_quick(config, all[i].path, all[i].data, all[i].len, 0644, err);
    return r;
}

int ssh_write_files(const struct ssh_files *files, struct aq_error *err)
{
    AQ_CLEANUP(ssh_texts_done) struct ssh_texts texts = { .host = STRBUF_INIT };
    AQ_CLEANUP(aq_closep) int config = open(files->config,
                                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r;

    if (config < 0)
        return aq_fail_errno(err, "open '%s'", files->config);
    r = ssh_make_texts(files, &texts, err);
    return r < 0 ? r : ssh_write_texts(config, &texts, files->for_files, err);
}
