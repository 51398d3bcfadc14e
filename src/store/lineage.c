/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.c - see lineage.h */
#include "store/lineage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "store/setting.h"

static void lineage_add(struct lineage *lineage, int64_t epoch, int64_t beat)
{
    struct lineage_epoch *all = lineage->epochs;

    if (lineage->count && all[lineage->count - 1].epoch >= epoch)
        return;
    if (lineage->count == LINEAGE_MAX) {
        memmove(all, all + 1, (LINEAGE_MAX - 1) * sizeof(*all));
        lineage->count--;
    }
    all[lineage->count++] = (struct lineage_epoch){ epoch, beat };
}

int lineage_load(struct store_tx *tx, struct lineage *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = setting_get(tx, SETTING_LINEAGE, &text, err);

    ret->count = 0;
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    for (const char *line = text.data; line && *line; line += *line == '\n') {
        long long epoch, beat;

        if (sscanf(line, "%lld %lld", &epoch, &beat) == 2)
            lineage_add(ret, epoch, beat);
        line += strcspn(line, "\n");
    }
    return 0;
}

int lineage_begin_epoch(struct store_tx *tx, int64_t epoch, int64_t beat, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct lineage lineage;
    int r = lineage_load(tx, &lineage, err);

    if (r < 0)
        return r;
    lineage_add(&lineage, epoch, beat);
    for (size_t i = 0; i < lineage.count; i++)
        strbuf_addf(&text, "%lld %lld\n", (long long)lineage.epochs[i].epoch,
                    (long long)lineage.epochs[i].beat);
    return setting_set(tx, SETTING_LINEAGE, text.data, err);
}

int64_t lineage_find_last(const struct lineage *lineage, int64_t epoch)
{
    for (size_t i = 0; i < lineage->count; i++)
        if (lineage->epochs[i].epoch > epoch)
            return lineage->epochs[i].beat;
    return INT64_MAX;
}
