/* SPDX-License-Identifier: Apache-2.0 */
/* ssh_key.h - keys of SSH in the forms in which programs keep them. Pure */
#ifndef AQ_MODEL_SSH_KEY_H
#define AQ_MODEL_SSH_KEY_H

#include "base/error.h"
#include "base/strbuf.h"

/* ---- Ed25519 keys, of which both halves are known ---- */

#define SSH_KEY_SIZE 32

struct ssh_key {
    unsigned char secret[SSH_KEY_SIZE], open[SSH_KEY_SIZE];
};

/* "ssh-ed25519 AAAA..." without a newline. */
void ssh_key_add_public(const struct ssh_key *key, struct strbuf *out);
/* The private key in OpenSSH's form, without a passphrase. */
void ssh_key_add_openssh(const struct ssh_key *key, const char *comment, struct strbuf *out);
/* The private key in dropbear's form: bytes. */
void ssh_key_add_dropbear(const struct ssh_key *key, struct strbuf *out);

/* ---- ECDSA keys on the curve P-256, as hosts have besides ----
 *
 * Clients made with Go's library, such as rclone, choose RSA where a host has Ed25519 alone, and
 * dropbear 2022.83 ends at that.
 */

#define SSH_ECDSA_OPEN 65 /* a point, uncompressed */

struct ssh_ecdsa_key {
    unsigned char secret[SSH_KEY_SIZE], open[SSH_ECDSA_OPEN];
};

/* As those of Ed25519 keys: "ecdsa-sha2-nistp256 AAAA...", and dropbear's form. */
void ssh_ecdsa_add_public(const struct ssh_ecdsa_key *key, struct strbuf *out);
void ssh_ecdsa_add_dropbear(const struct ssh_ecdsa_key *key, struct strbuf *out);

/* ---- the keys of a session ---- */

#define SSH_SEED_TEXT 64 /* hexadecimal digits: the session's seed */
#define SSH_USER "work"  /* who logs in */
#define SSH_PORT 2200    /* in the container */

/* The labels of keys: with which users log in, and of the host of that name. */
#define SSH_LABEL_CONTAINER "container"
#define SSH_LABEL_HOST "host "
#define SSH_LABEL_HOST_ECDSA "ecdsa host "

/* -EINVAL */
int ssh_seed_parse(const char *text, unsigned char ret[SSH_KEY_SIZE]);

/* The same seed and label give the same key everywhere, so that the kernels of a session know
 * each other, and the manager them, without being told. -EIO if the crypto library fails.
 */
int ssh_key_derive(const unsigned char seed[SSH_KEY_SIZE], const char *label, struct ssh_key *ret,
                   struct aq_error *err);
int ssh_ecdsa_derive(const unsigned char seed[SSH_KEY_SIZE], const char *label,
                     struct ssh_ecdsa_key *ret, struct aq_error *err);

/* ---- public keys of any kind that servers of sessions know ---- */

#define SSH_PUBLIC_KEY_MAX 4096 /* of type and base64, with the NUL */

/* "TYPE BASE64 [COMMENT]", a line of ~/.ssh/id_*.pub, as "TYPE BASE64". -EINVAL, field "pubkey",
 * for anything else: another type, bytes that are no key of the type, RSA below 2048 bits.
 */
int ssh_public_key_parse(const char *text, char ret[SSH_PUBLIC_KEY_MAX],
                         struct aq_error *err) AQ_UNTRUSTED;

#endif
