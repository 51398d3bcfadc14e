/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-manager: API, scheduler and store of a cluster. See --help. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "manager/admin.h"
#include "manager/backendai_dump.h"
#include "manager/backup/backup.h"
#include "manager/check.h"
#include "manager/daemon.h"
#include "manager/db_shell.h"
#include "manager/join.h"

#define TOKEN_LINE_MAX 256

static const char help[] =
    "Usage: aliquot-manager [OPTIONS]            serve\n"
    "       aliquot-manager init [OPTIONS]       make the first administrator\n"
    "       aliquot-manager db VERB [OPTIONS]    the database: info, check, vacuum, shell,\n"
    "                                            migrate, take-over or mark-restored\n"
    "       aliquot-manager backup create|verify|restore|ls PATH [OPTIONS]\n"
    "       aliquot-manager join HOST[:PORT] TOKEN [OPTIONS]\n"
    "                                            be a further manager of a cluster on PostgreSQL;\n"
    "                                            TOKEN is of 'aliquot admin manager token'\n"
    "       aliquot-manager sample               write a commented manager.toml\n"
    "       aliquot-manager backendai-dump       what 'aliquot admin import-backendai' starts\n"
    "       aliquot-manager check [OPTIONS]      look whether it could serve; see 'aliquot doctor'\n"
    "\n"
    "  --config FILE    settings [/etc/aliquot/manager.toml]\n"
    "  --state DIR      folder of the database and the certificate authority\n"
    "  --database URI   the database on a server, postgresql://USER@HOST/NAME\n"
    "  --name NAME      join: among the managers of the cluster [this machine's name]\n"
    "  --listen ADDR    where the API is served [127.0.0.1:8081]\n"
    "  --link ADDR      where agents connect to [127.0.0.1:8082]\n"
    "  --dev            add the published development users; loopback only\n"
    "  --to URI         db migrate: the database that takes all rows; a file or a server\n"
    "  --dry-run        db migrate --to: only look\n"
    "  --write          db shell: let it change rows\n"
    "  --passphrase-file FILE  backup: what it is sealed with; - is standard input\n"
    "  --keep N         backup create FOLDER: remove all but the newest\n"
    "  --email ADDR     init: of the administrator [admin@localhost.localdomain]\n"
    "  --json           init, db info: write a JSON object\n"
    "  --version, --help\n";

struct manager_options {
    const char *config, *state, *database, *to, *passphrase_file, *keep, *listen, *link, *email,
        *name;
    bool dev, json, dry_run, write;
};

/* 0 to go on, else 1 + exit status. */
static int manager_parse(int argc, char **argv, struct manager_options *o)
{
    static const struct option known[] = {
        { "config", required_argument, NULL, 'c' },
        { "state", required_argument, NULL, 's' },
        { "listen", required_argument, NULL, 'l' },
        { "link", required_argument, NULL, 'k' },
        { "email", required_argument, NULL, 'e' },
        { "dev", no_argument, NULL, 'd' },
        { "json", no_argument, NULL, 'j' },
        { "version", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },
        { "database", required_argument, NULL, 'b' },
        { "name", required_argument, NULL, 'm' },
        { "to", required_argument, NULL, 't' },
        { "dry-run", no_argument, NULL, 'n' },
        { "write", no_argument, NULL, 'x' },
        { "passphrase-file", required_argument, NULL, 'p' },
        { "keep", required_argument, NULL, 'w' },
        { NULL, 0, NULL, 0 },
    };
    const char **texts[] = { ['c'] = &o->config, ['s'] = &o->state,  ['b'] = &o->database,
                             ['t'] = &o->to,     ['m'] = &o->name,   ['p'] = &o->passphrase_file,
                             ['w'] = &o->keep,   ['l'] = &o->listen, ['k'] = &o->link,
                             ['e'] = &o->email };
    int letter;

    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (letter == 'd')
            o->dev = true;
        else if (letter == 'j')
            o->json = true;
        else if (letter == 'n')
            o->dry_run = true;
        else if (letter == 'x')
            o->write = true;
        else if (letter == 'v')
            return printf("aliquot-manager " ALIQUOT_VERSION "\n") < 0 ? 2 : 1;
        else if (letter == 'h')
            return fputs(help, stdout) < 0 ? 2 : 1;
        else if (letter == '?')
            return fputs(help, stderr) < 0 ? 2 : 3;
        else
            *texts[letter] = optarg;
    }
    return 0;
}

static int manager_set_option(const char *section, const char *key, const char *text,
                              struct manager_conf *conf, struct aq_error *err)
{
    for (const struct conf_item *i = manager_conf_items; text && i->type != CONF_END; i++)
        if (strcmp(i->section, section) == 0 && strcmp(i->key, key) == 0)
            return conf_set(i, text, conf, err);
    return 0;
}

static bool manager_is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0
           || strcmp(host, "localhost") == 0;
}

static int manager_serve(const struct manager_conf *conf, bool dev, struct aq_error *err)
{
    int r;

    if (dev && (!manager_is_loopback(conf->listen.host) || !manager_is_loopback(conf->link.host)))
        return aq_fail_field(err, EINVAL, "--dev",
                             "the keys of --dev are published: listen on "
                             "127.0.0.1 or ::1 only");
    while ((r = daemon_run(conf, dev, err)) == -ERESTART)
        log_info("%s", err->text);
    return r;
}

static int manager_write_sample(struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    conf_write_sample(manager_conf_items, &out);
    if (fputs(out.data, stdout) < 0)
        return aq_fail(err, EIO, "the sample could not be written");
    return 0;
}

/* Root acts as the user that the service runs as: it has to read what is made here. */
static int manager_become_owner(const char *folder, struct aq_error *err)
{
    struct stat st;

    if (geteuid() != 0 || stat(folder, &st) < 0 || st.st_uid == 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setgid(st.st_gid) < 0 || setuid(st.st_uid) < 0)
        return aq_fail_errno(err, "become the owner of '%s'", folder);
    return 0;
}

static int manager_backup(const char *verb, const char *path, const struct manager_options *o,
                          const struct manager_conf *conf, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *found = o->config ? NULL : conf_default_file("manager");
    struct backup_options options = { .state_dir = conf->state_dir,
                                      .database = conf->database,
                                      .path = path,
                                      .passphrase_file = o->passphrase_file,
                                      .settings = o->config ? o->config : found };
    char *end = NULL;
    long keep = o->keep ? strtol(o->keep, &end, 10) : 0;

    if (o->keep && (*end || keep < 1 || keep > 100000))
        return aq_fail_field(err, EINVAL, "--keep", "'%s' is not a number of 1 to 100000", o->keep);
    options.keep = (int)keep;
    (void)umask(077);
    if (strcmp(verb, "create") == 0)
        return backup_create(&options, err);
    if (strcmp(verb, "verify") == 0)
        return backup_verify(&options, err);
    if (strcmp(verb, "restore") == 0)
        return backup_restore(&options, err);
    if (strcmp(verb, "ls") == 0)
        return backup_list(&options, err);
    return aq_fail_field(err, EINVAL, "backup", "'%s' is not known: create, verify, restore or ls",
                         verb);
}

/* '-' is on standard input: arguments are shown to every user of the machine. */
static int manager_join_by(const char *address, const char *token, const struct manager_conf *conf,
                           struct aq_error *err)
{
    char line[TOKEN_LINE_MAX];

    if (strcmp(token, "-") != 0)
        return manager_join(conf, address, token, err);
    if (isatty(STDIN_FILENO))
        (void)fputs("token: ", stderr);
    if (!fgets(line, sizeof(line), stdin))
        return aq_fail(err, EINVAL,
                       "standard input has no token: 'aliquot admin manager token' makes one");
    line[strcspn(line, "\r\n")] = '\0';
    return manager_join(conf, address, line, err);
}

/* The verb is unknown, or has too many or too few words after it. */
static int manager_fail_words(const char *verb, struct aq_error *err)
{
    static const struct {
        const char *verb, *takes;
    } verbs[] = {
        { "join", "HOST[:PORT] of a manager and TOKEN, or - for one on standard input" },
        { "init", "options alone" },
        { "sample", "no words" },
        { "backup", "create, verify, restore or ls, and PATH" },
        { "db", "info, check, vacuum, shell, migrate, take-over or mark-restored" },
    };

    for (size_t i = 0; i < AQ_COUNT(verbs); i++)
        if (strcmp(verb, verbs[i].verb) == 0)
            return aq_fail(err, EINVAL, "'%s' takes %s; see aliquot-manager --help", verb,
                           verbs[i].takes);
    return aq_fail(err, EINVAL, "'%s' is not understood; see aliquot-manager --help", verb);
}

static int manager_act(int argc, char **argv, const struct manager_options *o,
                       const struct manager_conf *conf, struct aq_error *err)
{
    const char *verb = argc > 0 ? argv[0] : "";
    int r;

    if (argc == 0)
        return manager_serve(conf, o->dev, err);
    if (strcmp(verb, "sample") == 0 && argc == 1)
        return manager_write_sample(err);
    if (strcmp(verb, "check") == 0)
        return manager_check(conf, argv + 1, argc - 1, err);
    if ((r = manager_become_owner(conf->state_dir, err)) < 0)
        return r;
    if (strcmp(verb, "join") == 0 && argc == 3)
        return manager_join_by(argv[1], argv[2], conf, err);
    if (strcmp(verb, "init") == 0 && argc == 1)
        return admin_init(conf, o->email ? o->email : "admin@localhost.localdomain", o->json, err);
    if (strcmp(verb, "backup") == 0 && argc == 3)
        return manager_backup(argv[1], argv[2], o, conf, err);
    if (strcmp(verb, "db") == 0 && argc == 2 && o->to)
        return strcmp(argv[1], "migrate") == 0
                   ? admin_move(conf, o->to, o->dry_run, err)
                   : aq_fail_field(err, EINVAL, "--to", "belongs to 'db migrate'");
    if (strcmp(verb, "db") == 0 && argc == 2 && strcmp(argv[1], "info") == 0)
        return admin_db_info(conf, o->json, err);
    if (strcmp(verb, "db") == 0 && argc == 2 && strcmp(argv[1], "shell") == 0)
        return db_shell_exec(conf, o->write, err);
    if (strcmp(verb, "db") == 0 && argc == 2)
        return admin_db(conf, argv[1], err);
    return manager_fail_words(verb, err);
}

static int manager_run(int argc, char **argv, const struct manager_options *o, struct aq_error *err)
{
    struct manager_conf conf = { 0 };
    int level, r = manager_conf_load(o->config, &conf, err);

    if (r < 0)
        return r;
    if ((r = manager_set_option("manager", "listen", o->listen, &conf, err)) == 0
        && (r = manager_set_option("link", "listen", o->link, &conf, err)) == 0)
        r = manager_set_option("manager", "state", o->state, &conf, err);
    if (r == 0)
        r = manager_set_option("manager", "database", o->database, &conf, err);
    if (r == 0)
        r = manager_set_option("manager", "name", o->name, &conf, err);
    if (r == 0)
        r = manager_join_apply(&conf, err);
    if (r == 0 && (level = log_parse_level(conf.log_level)) < 0)
        r = aq_fail_field(err, EINVAL, "manager.log-level",
                          "'%s' is not error, warning, info or "
                          "debug",
                          conf.log_level);
    if (r == 0) {
        log_init("manager", (enum log_level)level);
        r = manager_act(argc, argv, o, &conf, err);
    }
    manager_conf_done(&conf);
    return r;
}

int main(int argc, char **argv)
{
    struct manager_options o = { 0 };
    struct aq_error err = { 0 };
    int r;

    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* secret keys would be in a core */
    /* Long texts of sessions that are read one after another would each leave a hole in the heap.
     */
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 10);
    log_init("manager", LOG_LEVEL_INFO);
    r = manager_parse(argc, argv, &o);
    if (r > 0)
        return r - 1;
    if (argc - optind == 1 && strcmp(argv[optind], "backendai-dump") == 0)
        r = backendai_dump(&err); /* settings are not needed */
    else
        r = manager_run(argc - optind, argv + optind, &o, &err);
    if (r < 0)
        log_error("%s%s%s", strstr(err.text, err.field) ? "" : err.field,
                  strstr(err.text, err.field) ? "" : ": ", err.text);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
