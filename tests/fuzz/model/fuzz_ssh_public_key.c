/* SPDX-License-Identifier: Apache-2.0 */
/* Public SSH keys: what is accepted is one line, and is accepted again as it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/ssh_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(aq_freep) char *text = strndup((const char *)data, size);
    char key[SSH_PUBLIC_KEY_MAX], again[SSH_PUBLIC_KEY_MAX];
    struct aq_error err = { 0 };

    if (!text || ssh_public_key_parse(text, key, &err) < 0)
        return 0;
    if (strlen(key) >= sizeof(key) || strpbrk(key, "\r\n\t\"")
        || ssh_public_key_parse(key, again, &err) < 0 || strcmp(key, again) != 0)
        abort();
    return 0;
}
