/* SPDX-License-Identifier: Apache-2.0 */
/* key.h - the SSH keys of a session, all Ed25519 and made from one seed
 *
 * The same seed and label give the same key on every node, so that the
 * kernels of a session know each other without being told.
 */
#ifndef AQ_AGENT_SSH_KEY_H
#define AQ_AGENT_SSH_KEY_H

#include "base/error.h"
#include "base/strbuf.h"

#define SSH_KEY_SIZE 32

struct ssh_key {
    unsigned char secret[SSH_KEY_SIZE], open[SSH_KEY_SIZE];
};

/* -EIO if the crypto library fails. */
int ssh_key_derive(const unsigned char seed[SSH_KEY_SIZE], const char *label, struct ssh_key *ret,
                   struct aq_error *err);

/* "ssh-ed25519 AAAA..." without a newline. */
void ssh_key_add_public(const struct ssh_key *key, struct strbuf *out);
/* The private key in OpenSSH's form, without a passphrase. */
void ssh_key_add_openssh(const struct ssh_key *key, const char *comment, struct strbuf *out);
/* The private key in dropbear's form: bytes. */
void ssh_key_add_dropbear(const struct ssh_key *key, struct strbuf *out);

#endif
