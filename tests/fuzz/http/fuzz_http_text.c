/* SPDX-License-Identifier: Apache-2.0 */
/* URLs, addresses, queries, Authorization headers and versions, from the same text. */
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "http/sign.h"
#include "http/url.h"
#include "http/version.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_query(struct arena *arena, const char *text, size_t len)
{
    struct url_query query;

    if (url_query_parse(arena, text, len, &query, NULL) < 0)
        return;
    for (size_t i = 0; i < query.count; i++) {
        const struct url_pair *pair = &query.pairs[i];
        AQ_CLEANUP(strbuf_donep) struct strbuf again = STRBUF_INIT;
        const char *value;

        if (!utf8_is_valid(pair->name, strlen(pair->name)) || !url_query_get(&query, pair->name))
            __builtin_trap();
        url_encode(&again, pair->value);
        if (url_decode(arena, again.data, again.len, true, &value, NULL) < 0
            || strcmp(value, pair->value) != 0)
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct api_version version;
    struct sign_claim claim = { .date_usec = 0 };
    struct address address;
    struct url url;
    char text[600];

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check_query(&arena, text, size);
    if (address_parse(text, (uint16_t)size, &address, NULL) == 0)
        (void)address_is_local(&address);
    if (url_parse(text, &url, NULL) == 0 && url.target[0] != '/')
        __builtin_trap();
    if (sign_parse_authorization(text, &claim, NULL) == 0
        && strlen(claim.access_key) > SIGN_KEY_MAX)
        __builtin_trap();
    if (api_version_accept(text, &version, NULL) == 0
        && api_version_parse(text, &version, NULL) < 0)
        __builtin_trap();
    return 0;
}
