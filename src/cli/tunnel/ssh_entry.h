/* SPDX-License-Identifier: Apache-2.0 */
/* ssh_entry.h - what OpenSSH has to be told of a session
 *
 * The session's key and the key of its host are files of the user's cache, named after the
 * session and whatever else the command line says about where it is. They are written before
 * each connection, so that the session which has the name now is the one that is reached; and
 * before ssh(1) looks at its keys, as it would offer an old one.
 */
#ifndef AQ_CLI_TUNNEL_SSH_ENTRY_H
#define AQ_CLI_TUNNEL_SSH_ENTRY_H

#include "cli/tunnel/tunnel.h"

#define SSH_ENTRY_SUFFIX ".aliquot"

struct ssh_entry {
    char *host;    /* "NAME.aliquot", "sub1.NAME.aliquot" */
    char *key;     /* path of the private key */
    char *known;   /* path of the file of known hosts */
    char *label;   /* by which that file calls the host */
    char *command; /* that connects, for a shell */
    char *fetch;   /* that writes the keys alone */
};

/* 'name' as it is to be looked up each time, and the host name of a kernel; NULL = the main one. */
void ssh_entry_init(struct ssh_entry *entry, const struct cli *cli, const char *name,
                    const char *kernel);
void ssh_entry_done(struct ssh_entry *entry);

/* Ask the manager for both keys, and write them. */
int ssh_entry_write_keys(const struct ssh_entry *entry, struct cli *cli,
                         const struct follow_session *session, uint16_t *ret_port,
                         struct aq_error *err);

/* Settings as options of ssh(1), each "Name=value" of its own; the caller frees them. */
#define SSH_ENTRY_SETTINGS 8
void ssh_entry_make_options(const struct ssh_entry *entry, char *ret[SSH_ENTRY_SETTINGS]);

/* A "Host" section of ssh_config(5). */
void ssh_entry_write_section(const struct ssh_entry *entry, struct strbuf *out);

#endif
