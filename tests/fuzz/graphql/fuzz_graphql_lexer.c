/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens lie in the text one after the other; errors point into it. */
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "graphql/lexer.h"
#include "graphql/relay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_relay(const char *text)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const char *type, *again, *id = relay_global_id_parse(&arena, text, &type);

    if (!id || (!*type && strcmp(id, text) != 0))
        abort();
    if (*type
        && (strcmp(relay_global_id_parse(&arena, relay_global_id(&arena, type, id), &again), id)
                != 0
            || strcmp(again, type) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct errors errors = { .arena = &arena };
    char *text = arena_strndup(&arena, (const char *)data, size);
    struct lexer lexer = { text, (uint32_t)size, 0, &arena, &errors };
    struct token token = { .kind = TOKEN_START };
    uint32_t end = 0;

    if (!memchr(text, '\0', size))
        check_relay(text);
    if (!utf8_is_valid(text, size))
        return 0;
    while (token.kind != TOKEN_END && lexer_next(&lexer, &token)) {
        if (token.at < end || lexer.at > size || lexer.at < token.at)
            abort();
        if ((token.kind == TOKEN_STRING || token.kind == TOKEN_BLOCK_STRING)
            && !utf8_is_valid(token.text, token.len))
            abort();
        end = lexer.at;
    }
    if (token.kind != TOKEN_END && (errors.count != 1 || errors.first->at[0] > size))
        abort();
    return 0;
}
