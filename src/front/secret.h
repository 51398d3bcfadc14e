/* SPDX-License-Identifier: Apache-2.0 */
/* secret.h - a key that outlives a restart and is in no file: made of the daemon's private key */
#ifndef AQ_FRONT_SECRET_H
#define AQ_FRONT_SECRET_H

#include "link/identity.h"

#define FRONT_SECRET_SIZE 32

/* 'purpose' names what the key is for: each has a key of its own. */
void front_derive_secret(const struct link_identity *identity, const char *purpose,
                         unsigned char ret[FRONT_SECRET_SIZE]);

#endif
