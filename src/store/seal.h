/* SPDX-License-Identifier: Apache-2.0 */
/* seal.h - secrets at rest: AES-256-GCM under a key file
 *
 * A sealed text is: version byte 1, key check (first 4 bytes of the SHA-256
 * of the key), nonce (12), ciphertext, tag (16). The associated data name the
 * row, so that a sealed text copied to another row does not open.
 */
#ifndef AQ_STORE_SEAL_H
#define AQ_STORE_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SEAL_OVERHEAD (1 + 4 + 12 + 16)

struct seal;

/* Read the 32-byte key file. With 'may_create' one that is missing is made
 * (0600, fsynced). -EACCES if group or others can read it, -EKEYREJECTED if it
 * is missing or not 32 bytes.
 */
int seal_open(const char *path, bool may_create, struct seal **ret, struct aq_error *err);
void seal_free(struct seal *seal);
AQ_DEFINE_CLEANUP(struct seal, seal_free)

/* The key file's content as hexadecimal, for another manager; refused as by seal_open(). The caller
 * wipes it.
 */
#define SEAL_KEY_TEXT 65
int seal_export(const char *path, char ret[SEAL_KEY_TEXT], struct aq_error *err);
/* Write a key file of it (0600, fsynced). -EINVAL if it is not one. */
int seal_import(const char *path, const char *text, struct aq_error *err);

/* 'out' gets len + SEAL_OVERHEAD bytes. */
int seal_close(const struct seal *seal, const char *row, const void *text, size_t len,
               unsigned char *out, struct aq_error *err);

/* 'out' gets len - SEAL_OVERHEAD bytes. -EKEYREJECTED, naming the key file, if
 * it was sealed under another key; -EUCLEAN if it was tampered with. Any thread.
 */
int seal_reveal(const struct seal *seal, const char *row, const unsigned char *sealed, size_t len,
                char *out, struct aq_error *err);

/* Bytes that only the key file and 'purpose' decide: a secret that need not be kept. */
#define SEAL_DERIVED 32
int seal_derive(const struct seal *seal, const char *purpose, unsigned char ret[SEAL_DERIVED],
                struct aq_error *err);

#endif
