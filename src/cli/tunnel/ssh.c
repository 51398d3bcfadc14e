/* SPDX-License-Identifier: Apache-2.0 */
/* Log in to a session by OpenSSH's own programs, whose connections are tunnels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/tunnel/ssh_entry.h"
#include "cli/verbs.h"

struct ssh_opts {
    bool stdio, keys;
    const char *kernel;
};

/* ---- their programs ---- */

/* Room for 'count' further words and the end; the caller frees the list alone. */
static char **ssh_make_argv(const struct ssh_entry *entry, const char *program, size_t count,
                            size_t *ret_at)
{
    char **argv = aq_alloc_array(1 + 2 * SSH_ENTRY_SETTINGS + count + 1, sizeof(*argv));
    char *options[SSH_ENTRY_SETTINGS] = { NULL };

    ssh_entry_make_options(entry, options);
    argv[0] = (char *)(uintptr_t)program;
    for (size_t i = 0; i < SSH_ENTRY_SETTINGS; i++) {
        argv[1 + 2 * i] = (char *)"-o";
        argv[2 + 2 * i] = options[i];
    }
    *ret_at = 1 + 2 * SSH_ENTRY_SETTINGS;
    return argv;
}

static int ssh_execute(struct cli *cli, char **argv, struct aq_error *err)
{
    (void)execvp(argv[0], argv);
    if (errno == ENOENT)
        cli_hint(cli, "without it: aliquot exec, aliquot cp; with it: apt install openssh-client");
    return aq_fail_errno(err, "start '%s'", argv[0]);
}

/* It runs, and has a server: else we can say why, and they could not. */
static int ssh_prepare(struct cli *cli, const char *name, const char *kernel,
                       struct ssh_entry *entry, struct follow_session *session, uint16_t *ret_port,
                       struct aq_error *err)
{
    int r = session_await(cli, name, session, err);

    if (r < 0)
        return r;
    session->kernel = kernel;
    ssh_entry_init(entry, cli, name, kernel);
    return ssh_entry_write_keys(entry, cli, session, ret_port, err);
}

/* ---- ssh ---- */

static int ssh_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct ssh_opts *opts = data;
    struct ssh_entry entry = { .host = NULL };
    struct follow_session session;
    char **words = NULL;
    uint16_t port;
    size_t at;
    int r = ssh_prepare(cli, argv[0], opts->kernel, &entry, &session, &port, err);

    if (r == 0 && opts->stdio) {
        r = tunnel_run_stdio(cli, &session, port, err);
    } else if (r == 0 && !opts->keys) {
        words = ssh_make_argv(&entry, "ssh", (size_t)argc, &at);
        words[at] = entry.host;
        for (int i = 1; i < argc; i++)
            words[at + (size_t)i] = argv[i];
        r = ssh_execute(cli, words, err);
    }
    free(words);
    ssh_entry_done(&entry);
    return r;
}

static const struct cli_opt ssh_options[] = {
    { 0, "stdio", CLI_FLAG, offsetof(struct ssh_opts, stdio), NULL,
      "Connect standard input and output to the server, for ProxyCommand" },
    { 0, "keys", CLI_FLAG, offsetof(struct ssh_opts, keys), NULL,
      "Fetch the session's keys, and do no more; for ssh-config" },
    SESSION_KERNEL_OPT_ROW(struct ssh_opts, kernel),
    CLI_OPT_END,
};

const struct cli_verb verb_ssh = {
    .name = "ssh",
    .args = "SESSION [SSH-OPTION...] [--] [COMMAND...]",
    .summary = "Log in to a session by ssh(1)",
    .details = "OpenSSH's ssh is run with the session's key and the key of its host, which are\n"
               "fetched first, and connected through the manager: neither the node nor a\n"
               "published port has to be reachable. Options of ssh, such as -L, -t and -A, go\n"
               "after SESSION. Its exit status becomes that of this command. The session has to\n"
               "be interactive, and a session that waits is waited for.\n"
               "'aliquot ssh-config' is for ssh, sftp, rsync and editors by themselves.",
    .examples = "aliquot ssh notebook\n"
                "aliquot ssh notebook -- nvidia-smi -L\n"
                "aliquot ssh notebook -t htop\n"
                "aliquot ssh --kernel sub1 train\n"
                "aliquot ssh notebook -N -L 6006:localhost:6006",
    .opts = ssh_options,
    .opts_size = sizeof(struct ssh_opts),
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_STOP_AT_FIRST | CLI_RUNS_PROGRAM,
    .run = ssh_run,
};

/* ---- scp ---- */

struct scp_opts {
    bool recursive, preserve, compress, legacy, verbose;
    const char *limit, *kernel;
};

/* The session of "SESSION:path", or "" of a path here. */
static int ssh_scp_session(const char *word, char ret[80], struct aq_error *err)
{
    size_t len = strcspn(word, ":/");

    ret[0] = '\0';
    if (word[len] != ':')
        return 0;
    if (len == 0 || len >= 80)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "'%s' begins with no session's name; a file of that name is './%s'",
                            word, word);
    memcpy(ret, word, len);
    ret[len] = '\0';
    return 0;
}

/* The one that all words name which name one. */
static int ssh_scp_find_session(int argc, char **argv, char ret[80], struct aq_error *err)
{
    char one[80];
    int r;

    ret[0] = '\0';
    for (int i = 0; i < argc; i++) {
        if ((r = ssh_scp_session(argv[i], one, err)) < 0)
            return r;
        if (ret[0] && one[0] && strcmp(ret, one) != 0)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "from a session into a session it takes two steps");
        if (one[0])
            memcpy(ret, one, sizeof(one));
    }
    return ret[0] ? 0
                  : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                 "one side must be a session's: SESSION:PATH");
}

static size_t ssh_scp_add_options(const struct scp_opts *opts, bool quiet, char **argv, size_t at)
{
    const struct {
        bool is_set;
        const char *option;
    } flags[] = { { opts->recursive, "-r" }, { opts->preserve, "-p" }, { opts->compress, "-C" },
                  { opts->legacy, "-O" },    { opts->verbose, "-v" },  { quiet, "-q" } };

    for (size_t i = 0; i < AQ_COUNT(flags); i++)
        if (flags[i].is_set)
            argv[at++] = (char *)(uintptr_t)flags[i].option;
    if (opts->limit) {
        argv[at++] = (char *)"-l";
        argv[at++] = (char *)(uintptr_t)opts->limit;
    }
    argv[at++] = (char *)"--";
    return at;
}

#define SCP_OPTIONS_MAX 9

static int ssh_scp_execute(struct cli *cli, const struct scp_opts *opts,
                           const struct ssh_entry *entry, int argc, char **argv,
                           struct aq_error *err)
{
    size_t at;
    char **words = ssh_make_argv(entry, "scp", (size_t)argc + SCP_OPTIONS_MAX, &at);

    at = ssh_scp_add_options(opts, cli->globals.quiet, words, at);
    for (int i = 0; i < argc; i++) {
        size_t len = strcspn(argv[i], ":/");

        words[at++] = argv[i][len] == ':' ? aq_format("%s%s", entry->host, argv[i] + len) : argv[i];
    }
    return ssh_execute(cli, words, err);
}

static int ssh_scp_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct scp_opts *opts = data;
    struct ssh_entry entry = { .host = NULL };
    struct follow_session session;
    char name[80];
    uint16_t port;
    int r = ssh_scp_find_session(argc, argv, name, err);

    if (r == 0)
        r = ssh_prepare(cli, name, opts->kernel, &entry, &session, &port, err);
    if (r == 0)
        r = ssh_scp_execute(cli, opts, &entry, argc, argv, err);
    ssh_entry_done(&entry);
    return r;
}

#define AT(member) offsetof(struct scp_opts, member)

static const struct cli_opt scp_options[] = {
    { 'r', "recursive", CLI_FLAG, AT(recursive), NULL, "Copy folders whole" },
    { 'p', "preserve", CLI_FLAG, AT(preserve), NULL, "Keep times and modes" },
    { 'C', "compress", CLI_FLAG, AT(compress), NULL, "Compress what is sent" },
    { 'O', "legacy", CLI_FLAG, AT(legacy), NULL, "Without SFTP, by the scp in the session" },
    { 'v', "verbose", CLI_FLAG, AT(verbose), NULL, "Say what is done" },
    { 'l', "limit", CLI_STR, AT(limit), "KBIT", "Send no more than that in a second" },
    SESSION_KERNEL_OPT_ROW(struct scp_opts, kernel),
    CLI_OPT_END,
};

const struct cli_verb verb_scp = {
    .name = "scp",
    .args = "SOURCE... TARGET",
    .summary = "Copy files to and from a session by scp(1)",
    .details = "As OpenSSH's scp, with SESSION:PATH for what is in a session, relative to its\n"
               "work folder. 'aliquot cp' needs no scp here and no SSH server there.",
    .examples = "aliquot scp train.py notebook:\n"
                "aliquot scp -r notebook:results .",
    .opts = scp_options,
    .opts_size = sizeof(struct scp_opts),
    .min_args = 2,
    .max_args = -1,
    .flags = CLI_RUNS_PROGRAM,
    .run = ssh_scp_run,
};
