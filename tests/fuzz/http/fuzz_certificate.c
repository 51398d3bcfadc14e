/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate, its key and its authority, divided by NUL. */
#include <stdlib.h>
#include <string.h>

#include "http/certificate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *texts[3] = { NULL };
    struct aq_error err = { 0 };
    int64_t end;

    for (size_t i = 0; i < 3; i++) {
        size_t len = strnlen((const char *)data, size);

        texts[i] = strndup((const char *)data, len);
        len += len < size;
        data += len;
        size -= len;
    }
    (void)certificate_check(&(struct certificate){ .cert = texts[0], .key = texts[1] }, texts[2],
                            "aliquot-webhook.aliquot-system.svc", &end, &err);
    for (size_t i = 0; i < 3; i++)
        free(texts[i]);
    return 0;
}
