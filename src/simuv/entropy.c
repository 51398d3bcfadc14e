/* SPDX-License-Identifier: Apache-2.0 */
/* entropy.c - random bytes of the system, of OpenSSL and of libsodium, from the seed
 *
 * Before simuv_begin() they come from a fixed seed: what asks so early, such as the key of hashes,
 * is to be the same in each run, too.
 */
#include <openssl/rand.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

#include "simuv/simuv_internal.h"

ssize_t __wrap_getrandom(void *into, size_t len, unsigned flags);
int __wrap_getentropy(void *into, size_t len);

static void entropy_fill(void *into, size_t len)
{
    char *at = into;

    while (len > 0) {
        uint64_t word = simuv_random_of(SIMUV_ENTROPY);
        size_t part = len < sizeof(word) ? len : sizeof(word);

        memcpy(at, &word, part);
        at += part;
        len -= part;
    }
}

ssize_t __wrap_getrandom(void *into, size_t len, unsigned flags)
{
    (void)flags;
    entropy_fill(into, len);
    return (ssize_t)len;
}

int __wrap_getentropy(void *into, size_t len)
{
    entropy_fill(into, len);
    return 0;
}

/* ---- OpenSSL ---- */

static int entropy_bytes(unsigned char *into, int len)
{
    entropy_fill(into, (size_t)len);
    return 1;
}

static int entropy_status(void)
{
    return 1;
}

static int entropy_seed(const void *bytes, int len)
{
    (void)bytes;
    (void)len;
    return 1;
}

static int entropy_add(const void *bytes, int len, double entropy)
{
    (void)entropy;
    return entropy_seed(bytes, len);
}

/* ---- libsodium ---- */

static const char *entropy_name(void)
{
    return "simuv";
}

static uint32_t entropy_word(void)
{
    return (uint32_t)simuv_random_of(SIMUV_ENTROPY);
}

static void entropy_stir(void)
{
}

static int entropy_close(void)
{
    return 0;
}

void simuv_entropy_install(void)
{
    static const RAND_METHOD openssl = { .seed = entropy_seed,
                                         .bytes = entropy_bytes,
                                         .add = entropy_add,
                                         .pseudorand = entropy_bytes,
                                         .status = entropy_status };
    static randombytes_implementation sodium = { .implementation_name = entropy_name,
                                                 .random = entropy_word,
                                                 .stir = entropy_stir,
                                                 .buf = entropy_fill,
                                                 .close = entropy_close };

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* a provider would be 300 lines */
    if (RAND_set_rand_method(&openssl) != 1 || randombytes_set_implementation(&sodium) != 0)
        simuv_cannot("random bytes of OpenSSL and libsodium");
#pragma GCC diagnostic pop
}
