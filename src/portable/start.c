/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - what a static program sets before main()
 *
 * The C library and OpenSSL in it would load modules that the machine's
 * configuration names. They belong to other versions of both, and would bring
 * a second C library along.
 */
#include <nss.h>
#include <stdint.h>

#define NO_LOAD_CONFIG 0x00000080L /* OPENSSL_INIT_NO_LOAD_CONFIG, of openssl/crypto.h */

/* Not there in programs without OpenSSL. */
extern int OPENSSL_init_crypto(uint64_t options, const void *settings) __attribute__((weak));

__attribute__((constructor)) static void portable_start(void)
{
    (void)__nss_configure_lookup("hosts", "files dns");
    (void)__nss_configure_lookup("passwd", "files");
    (void)__nss_configure_lookup("group", "files");
    (void)__nss_configure_lookup("services", "files");
    if (OPENSSL_init_crypto)
        (void)OPENSSL_init_crypto(NO_LOAD_CONFIG, NULL);
}
