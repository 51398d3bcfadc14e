/* SPDX-License-Identifier: Apache-2.0 */
/* secret.c - see secret.h */
#include "front/secret.h"

#include <sodium.h>
#include <string.h>

void front_derive_secret(const struct link_identity *identity, const char *purpose,
                         unsigned char ret[FRONT_SECRET_SIZE])
{
    (void)crypto_generichash(ret, FRONT_SECRET_SIZE, (const unsigned char *)identity->key,
                             strlen(identity->key), (const unsigned char *)purpose,
                             strlen(purpose));
}
