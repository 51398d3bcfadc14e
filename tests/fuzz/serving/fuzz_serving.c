/* SPDX-License-Identifier: Apache-2.0 */
/* What the proxy reads of bodies and paths of model services: the first byte says in which pieces.
 * However an answer is cut, its token counts are the same; what is found of a prompt at its beginning
 * is what is found in the whole; a path with a separator that servers read in two ways is within no
 * prefix.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serving/path_rule.h"
#include "serving/prompt_scan.h"
#include "serving/usage_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_prompt(const char *text, size_t len, size_t piece)
{
    uint64_t key = 0, whole_key = 0;
    enum prompt_found whole = prompt_scan(text, len, true, &whole_key), found;

    if (whole == PROMPT_MORE)
        abort();
    for (size_t at = 0; at < AQ_MIN(len, (size_t)4096); at += piece) {
        found = prompt_scan(text, at, false, &key);
        if (found != PROMPT_MORE && (found != whole || (found == PROMPT_KEY && key != whole_key)))
            abort();
    }
}

static void fuzz_usage(const char *type, const char *text, size_t len, size_t piece)
{
    struct usage_scan whole, cut;

    usage_scan_begin(&whole, type);
    usage_scan_begin(&cut, type);
    usage_scan_take(&whole, text, len);
    usage_scan_finish(&whole);
    for (size_t at = 0; at < len; at += piece)
        usage_scan_take(&cut, text + at, AQ_MIN(piece, len - at));
    usage_scan_finish(&cut);
    if (whole.prompt_tokens != cut.prompt_tokens || whole.completion_tokens != cut.completion_tokens
        || whole.cached_tokens != cut.cached_tokens)
        abort();
    if (whole.cached_tokens < 0 || whole.cached_tokens > whole.prompt_tokens)
        abort();
    usage_scan_done(&whole);
    usage_scan_done(&cut);
}

static void fuzz_path(const char *target)
{
    static const char *items[] = { "/v1" };
    static const struct str_list prefixes = { .items = items, .count = 1 };
    const char *end = target + strcspn(target, "?"), *bad = strstr(target, "/../");

    if (path_rule_allows(&prefixes, target)
        && (strncmp(target, "/", 1) != 0 || (bad && bad < end)
            || memchr(target, '\\', (size_t)(end - target))))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(aq_freep) char *text = NULL;
    size_t piece;

    if (size < 1)
        return 0;
    piece = data[0] % 64 + 1;
    text = strndup((const char *)data + 1, size - 1);
    fuzz_prompt((const char *)data + 1, size - 1, piece);
    fuzz_usage("application/json", (const char *)data + 1, size - 1, piece);
    fuzz_usage("text/event-stream", (const char *)data + 1, size - 1, piece);
    fuzz_path(text);
    return 0;
}
