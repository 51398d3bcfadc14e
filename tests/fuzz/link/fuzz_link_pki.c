/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "link/pki.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pki_ca *make_ca(void)
{
    char folder[] = "/tmp/aliquot-fuzz-XXXXXX";
    struct pki_ca *ca = NULL;

    if (!mkdtemp(folder) || pki_ca_open(folder, &ca, NULL) < 0)
        __builtin_trap();
    (void)fs_remove_tree(AT_FDCWD, folder, NULL);
    return ca;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pki_ca *ca;
    AQ_CLEANUP(aq_freep) char *text = strndup((const char *)data, size);
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    struct pki_token token, again;
    struct pki_cert got;
    char buf[PKI_TOKEN_MAX];

    if (!ca)
        ca = make_ca();
    if (!text)
        return 0;
    if (pki_token_parse(text, &token, NULL) == 0
        && (pki_token_parse(pki_token_format(&token, buf), &again, NULL) < 0
            || memcmp(&token, &again, sizeof(token)) != 0))
        __builtin_trap();
    (void)pki_cert_read(text, &got, NULL);
    (void)pki_issue_agent(ca, text, "fuzz", 1, &cert, NULL, NULL);
    if (pki_verify_agent(ca, text, 0, &got, NULL) == 0)
        __builtin_trap(); /* nothing was valid in 1970 */
    return 0;
}
