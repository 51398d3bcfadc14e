/* SPDX-License-Identifier: Apache-2.0 */
/* pki.h - the cluster's own certificates and join tokens
 *
 * One certificate authority per cluster (EC P-256) in a directory of the
 * manager: ca.crt, ca.key (0600), revoked (serial numbers in hex, one per
 * line). It signs the manager's link certificate and one client certificate
 * per agent, whose common name is the agent's id. An agent makes its key and
 * sends only a signing request. Texts are PEM. A struct pki_ca belongs to one
 * thread. All calls block (microseconds; creating and revoking: one fsync).
 */
#ifndef AQ_LINK_PKI_H
#define AQ_LINK_PKI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define PKI_FINGERPRINT_BYTES 32 /* SHA-256 over the DER form */
#define PKI_SERIAL_MAX 41        /* hex, with NUL */
#define PKI_PEM_MAX 16384        /* longer texts are refused */

#define PKI_AGENT_DAYS 825
#define PKI_SERVER_DAYS 825
#define PKI_CA_DAYS 7305

struct pki_ca;

/* Open the authority in 'folder', making folder and authority when absent. */
int pki_ca_open(const char *folder, struct pki_ca **ret, struct aq_error *err);
void pki_ca_free(struct pki_ca *ca);
AQ_DEFINE_CLEANUP(struct pki_ca, pki_ca_free)

/* The authority's key (PEM), for another manager; the caller wipes and frees it. Any thread. */
int pki_ca_export_key(const struct pki_ca *ca, char **ret_key, struct aq_error *err);
/* Write the files of an authority that was exported elsewhere, key 0600, and read them back.
 * -EINVAL if key and certificate do not belong together.
 */
int pki_ca_import(const char *folder, const char *cert, const char *key, struct aq_error *err);

/* Borrowed until pki_ca_free(). */
const char *pki_ca_cert(const struct pki_ca *ca);
const uint8_t *pki_ca_fingerprint(const struct pki_ca *ca);

/* A fresh key and a certificate for the listening side with 'names' (host
 * names or addresses; "localhost", 127.0.0.1 and ::1 are always in it).
 * Caller frees both texts; the key is not kept.
 */
int pki_issue_server(struct pki_ca *ca, const char *const *names, size_t name_count, int days,
                     char **ret_cert, char **ret_key, struct aq_error *err);

/* Sign an agent's request: its self-signature must verify, the key must be
 * EC P-256; subject and extensions of the request are ignored, common name
 * and client-auth usage are ours. ret_serial may be NULL. -EINVAL names why
 * a request is refused.
 */
int pki_issue_agent(struct pki_ca *ca, const char *csr, const char *agent_id, int days,
                    char **ret_cert, char ret_serial[PKI_SERIAL_MAX],
                    struct aq_error *err) AQ_UNTRUSTED;

/* The agent's side: a fresh key and the request for it. Caller frees both. */
int pki_request_new(const char *agent_id, char **ret_key, char **ret_csr, struct aq_error *err);

/* A signature (ECDSA, SHA-256) by the authority's key; *inout_len is the size of 'ret', then of the
 * signature. What is signed begins with a line that says for what, so that none is taken for another
 * or for a certificate.
 */
int pki_sign(const struct pki_ca *ca, const void *bytes, size_t len, unsigned char *ret,
             size_t *inout_len, struct aq_error *err);

/* Never accept this serial number again; durable when it returns 0. After a failure to write the
 * file, -ENOSPC and others, it holds until this process ends. Once is enough.
 */
int pki_revoke(struct pki_ca *ca, const char *serial, struct aq_error *err);
/* The same in memory alone, for what the database has again at the next start. */
void pki_mark_revoked(struct pki_ca *ca, const char *serial);
bool pki_is_revoked(const struct pki_ca *ca, const char *serial);

struct pki_cert {
    char common_name[65];
    char serial[PKI_SERIAL_MAX];
    uint8_t fingerprint[PKI_FINGERPRINT_BYTES];
    int64_t not_before_usec, not_after_usec;
};

/* What a certificate says; nothing is verified. */
int pki_cert_read(const char *cert, struct pki_cert *ret, struct aq_error *err) AQ_UNTRUSTED;

/* The whole check of a client certificate as the link makes it: signed by
 * the authority, for client use, within its time at 'now_usec', not revoked.
 * -EACCES with the reason in 'err'; else *ret is filled.
 */
int pki_verify_agent(const struct pki_ca *ca, const char *cert, int64_t now_usec,
                     struct pki_cert *ret, struct aq_error *err) AQ_UNTRUSTED;

/* ---- join tokens: "aq1." + base64url of fingerprint, secret, expiry ---- */

#define PKI_SECRET_BYTES 24
#define PKI_TOKEN_MAX 100

struct pki_token {
    uint8_t ca_fingerprint[PKI_FINGERPRINT_BYTES];
    uint8_t secret[PKI_SECRET_BYTES];
    int64_t expires_usec; /* whole seconds; wall clock */
};

/* A token with a random secret. Its maker keeps pki_token_hash() of the
 * secret, not the secret.
 */
struct pki_token pki_token_new(const struct pki_ca *ca, int64_t expires_usec);
char *pki_token_format(const struct pki_token *token, char buf[PKI_TOKEN_MAX]);
int pki_token_parse(const char *text, struct pki_token *ret, struct aq_error *err) AQ_UNTRUSTED;

#define PKI_SECRET_TEXT_MAX 33 /* base64url of the secret, as msg_join carries it */
#define PKI_HASH_TEXT_MAX 65
char *pki_token_secret(const struct pki_token *token, char buf[PKI_SECRET_TEXT_MAX]);
/* Hex SHA-256 of a secret's text: the key under which a manager stores a token. */
char *pki_token_hash(const char *secret, char buf[PKI_HASH_TEXT_MAX]);

#endif
