/* SPDX-License-Identifier: Apache-2.0 */
/* "ssh-key": the key with which you log in to your sessions by SSH. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "cli/client.h"
#include "cli/verbs.h"

#define ROUTE "/auth/ssh-keypair"
#define KEY_FILE_MAX 16384

static int ssh_key_show(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    json_t *answer = NULL;
    const char *key;
    int r = cli_call(cli, METHOD_GET, ROUTE, NULL, &answer, err);

    (void)data;
    (void)argc;
    (void)argv;
    if (r < 0)
        return r;
    key = json_string_value(json_object_get(answer, "ssh_public_key"));
    strbuf_addf(&line, "%s\n", key ? key : "");
    if (key && key[0])
        r = cli_print(&line, err);
    else
        cli_note(cli, "There is none; make one: aliquot ssh-key create --help");
    json_decref(answer);
    return r;
}

/* ---- a new one ---- */

static int ssh_key_write(int fd, const char *path, const char *text, struct aq_error *err)
{
    int r = text ? fs_write_all(fd, text, strlen(text)) : -EPROTO;

    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return r < 0 ? aq_fail(err, -r, "write '%s': %s", path, strerror(-r)) : 0;
}

static int ssh_key_write_public(const char *path, const char *text, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *name = aq_format("%s.pub", path);
    AQ_CLEANUP(aq_freep) char *line = aq_format("%s\n", text ? text : "");

    return fs_write_atomic(AT_FDCWD, name, line, strlen(line), 0644, err);
}

/* The file is there before the key is made, which is shown once. */
static int ssh_key_create(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const char *path = argv[0];
    AQ_CLEANUP(aq_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    json_t *answer = NULL;
    int r = fd < 0 ? aq_fail_errno(err, "make '%s'", path)
                   : cli_call(cli, METHOD_PATCH, ROUTE, NULL, &answer, err);

    (void)data;
    (void)argc;
    if (r == 0)
        r = ssh_key_write(fd, path, json_string_value(json_object_get(answer, "ssh_private_key")),
                          err);
    if (r < 0 && fd >= 0)
        (void)unlink(path);
    if (r == 0)
        r = ssh_key_write_public(path, json_string_value(json_object_get(answer, "ssh_public_key")),
                                 err);
    if (r == 0)
        cli_note(cli, "Sessions that start from now on accept %s: ssh -i %s work@HOST -p PORT",
                 path, path);
    json_decref(answer);
    return r;
}

/* ---- one's own ---- */

static int ssh_key_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = cli_read_file(argv[0], KEY_FILE_MAX, &text, err);
    json_t *body;

    (void)data;
    (void)argc;
    if (r < 0)
        return r;
    body = json_pack("{s:s}", "pubkey", text.data);
    r = body ? cli_call(cli, METHOD_POST, ROUTE, body, NULL, err)
             : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'%s' holds no public key", argv[0]);
    json_decref(body);
    return r;
}

static int ssh_key_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    (void)argv;
    return cli_call(cli, METHOD_DELETE, ROUTE, NULL, NULL, err);
}

const struct cli_verb verb_ssh_key_show = {
    .name = "ssh-key show",
    .args = "",
    .summary = "Show the public SSH key that your sessions accept",
    .examples = "aliquot ssh-key show",
    .run = ssh_key_show,
};

const struct cli_verb verb_ssh_key_create = {
    .name = "ssh-key create",
    .args = "FILE",
    .summary = "Make an SSH key that your sessions accept",
    .details =
        "The private key goes to FILE, which must not be there, the public one to FILE.pub.\n"
        "The manager keeps the public one alone. It belongs to your keypair, and takes the\n"
        "place of another one. Sessions accept it that start after this.",
    .examples = "aliquot ssh-key create ~/.ssh/aliquot",
    .min_args = 1,
    .max_args = 1,
    .run = ssh_key_create,
};

const struct cli_verb verb_ssh_key_set = {
    .name = "ssh-key set",
    .args = "FILE",
    .summary = "Have your sessions accept an SSH key that you have",
    .details = "FILE has a public key, - is standard input.",
    .examples = "aliquot ssh-key set ~/.ssh/id_ed25519.pub",
    .min_args = 1,
    .max_args = 1,
    .run = ssh_key_set,
};

const struct cli_verb verb_ssh_key_rm = {
    .name = "ssh-key rm",
    .args = "",
    .summary = "Have your sessions accept no SSH key but their own",
    .examples = "aliquot ssh-key rm",
    .run = ssh_key_rm,
};
