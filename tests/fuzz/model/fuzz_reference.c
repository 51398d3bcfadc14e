/* SPDX-License-Identifier: Apache-2.0 */
/* Names of images: the canonical text of what is accepted reads as itself,
 * and a path has no way up.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check(const char *text)
{
    static const char *const patterns[] = { "x", "*" };
    struct reference ref, again;
    struct aq_error err = { 0 };

    if (reference_parse(text, NULL, &ref, &err) < 0) {
        require(err.text[0] && strcmp(err.field, "image") == 0);
        return;
    }
    require(reference_parse(ref.text, "elsewhere.example", &again, NULL) == 0);
    require(again.form == ref.form && strcmp(again.text, ref.text) == 0);
    require(!ref.digest || digest_is_valid(ref.digest));
    require(!ref.path
            || (ref.path[0] == '/' && !strstr(ref.path, "/../") && !strchr(ref.path, ':')));
    require(ref.form != REFERENCE_REGISTRY || reference_is_allowed(&ref, patterns, 2));
    require(!reference_is_allowed(&ref, patterns, 0));
    reference_done(&ref);
    reference_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check(text);
    free(text);
    return 0;
}
