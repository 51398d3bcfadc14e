/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions by what a person typed. */
#include <stdio.h>
#include <string.h>

#include "store/session_list.h"

#define FIND_MAX 11

/* From 'text' up to what is greater than all that begin with it: names and ids
 * are ASCII below 0x7f. Ids are lower case.
 */
static void session_find_set_range(const char *text, bool is_id, char *from, char *to)
{
    (void)snprintf(from, SESSION_NAME_MAX + 1, "%s", text);
    for (char *at = from; is_id && *at; at++)
        if (*at >= 'A' && *at <= 'F')
            *at = (char)(*at | 0x20);
    (void)snprintf(to, SESSION_NAME_MAX + 2, "%s\x7f", from);
}

static bool session_find_is_id_prefix(const char *text)
{
    size_t len = strlen(text);

    return len >= SESSION_ID_PREFIX_MIN && strspn(text, "0123456789abcdefABCDEF-") == len;
}

int store_find_sessions(struct store_tx *tx, const struct store_query *q, const char *text,
                        struct store_page **ret, struct aq_error *err)
{
    static const struct {
        const char *where;
        bool is_id, is_exact;
    } ways[] = {
        { "s.id = ?", true, true },
        { "s.name = ?", false, true },
        { "s.id >= ? AND s.id < ?", true, false },
        { "s.name >= ? AND s.name < ? AND s.array_id IS NULL", false, false },
        { "s.seq IN (SELECT k.session_seq FROM kernels k WHERE k.id >= ? AND k.id < ?)", true,
          false },
    };
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    char from[SESSION_NAME_MAX + 1], to[SESSION_NAME_MAX + 2];
    struct list_extra extra = { .params = { from, to }, .order = "s.seq + 0" };
    struct store_query narrowed = *q;

    narrowed.filter = narrowed.order = narrowed.name = NULL;
    narrowed.limit = FIND_MAX;
    narrowed.offset = 0;
    if (strlen(text) > SESSION_NAME_MAX)
        text = ""; /* nothing is called so */
    for (size_t i = 0; i < AQ_COUNT(ways); i++) {
        int r;

        if (!ways[i].is_exact && (!text[0] || (ways[i].is_id && !session_find_is_id_prefix(text))))
            continue;
        session_find_set_range(text, ways[i].is_id, from, to);
        extra.where = ways[i].where;
        extra.param_count = ways[i].is_exact ? 1 : 2;
        store_page_free(AQ_TAKE(page));
        r = session_list_run(tx, &session_list_by_other, &narrowed, &extra, &page, err);
        if (r < 0)
            return r;
        if (page->count)
            break;
    }
    *ret = AQ_TAKE(page);
    return 0;
}
