/* SPDX-License-Identifier: Apache-2.0 */
/* A page of metrics, after a line with a selector: the first byte says in which pieces it comes.
 * However it is cut, the sums are the same, and a selector with labels matches no more series than its
 * name alone.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/exposition_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_scan(const struct exposition_selector *selectors, const char *page, size_t len,
                      size_t piece, struct exposition_sum sums[2])
{
    struct exposition_scan scan;

    exposition_scan_begin(&scan, selectors, 2, sums);
    for (size_t at = 0; at < len; at += piece)
        exposition_scan_take(&scan, page + at, AQ_MIN(piece, len - at));
    exposition_scan_finish(&scan);
    exposition_scan_done(&scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct exposition_selector selectors[2] = { { .name = NULL } };
    struct exposition_sum whole[2], cut[2];
    const char *page;
    char *text;

    if (size < 2 || !(page = memchr(data + 1, '\n', size - 1)))
        return 0;
    text = arena_strndup(&arena, (const char *)data + 1, (size_t)(page - (const char *)data) - 1);
    if (exposition_selector_parse(text, &arena, &selectors[0], NULL) < 0)
        return 0;
    selectors[1].name = selectors[0].name;
    size -= (size_t)(page - (const char *)data);
    fuzz_scan(selectors, page, size, size, whole);
    fuzz_scan(selectors, page, size, data[0] % 64 + 1, cut);
    for (size_t i = 0; i < 2; i++)
        if (whole[i].series != cut[i].series || whole[i].broken != cut[i].broken
            || (whole[i].value != cut[i].value && !isnan(whole[i].value)))
            abort();
    if (whole[0].series > whole[1].series || whole[0].broken != whole[1].broken)
        abort();
    return 0;
}
