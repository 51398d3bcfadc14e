/* SPDX-License-Identifier: Apache-2.0 */
/* template_find.c - which template a client means */
#include "manager/rules/template_find.h"

#include <errno.h>

/* Texts in the arena. */
static void template_copy(const struct template_row *row, struct arena *arena,
                          struct template_row *ret)
{
    const char **texts[] = { &ret->name,   &ret->domain,     &ret->text,
                             &ret->parsed, &ret->user_email, &ret->project_name };

    *ret = *row;
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        if (*texts[i])
            *texts[i] = arena_strdup(arena, *texts[i]);
}

/* The viewer's own; else it has to be the only one. */
static const struct template_row *template_choose(const struct store_page *page,
                                                  const struct folder_viewer *who)
{
    const struct template_row *rows = page->rows;

    for (size_t i = 0; i < page->count; i++)
        if (uuid_equals(&rows[i].user_id, &who->user_id))
            return &rows[i];
    return page->count == 1 ? rows : NULL;
}

int template_find(struct store_tx *tx, const struct folder_viewer *who, const char *text,
                  struct arena *arena, struct template_row *ret, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct store_query query = { .limit = TEMPLATES_MAX };
    const struct template_row *found;
    struct uuid id;
    int r;

    if (uuid_parse(text, &id) == 0) {
        query.ids = &id;
        query.id_count = 1;
    } else {
        query.name = text;
    }
    r = store_list_templates(tx, who, TEMPLATE_ANY, query.ids, &query, &page, err);
    if (r < 0)
        return r;
    if (page->count == 0)
        return aq_fail_kind(err, ENOENT, "object-not-found", "there is no template '%.128s'", text);
    if (!(found = template_choose(page, who)))
        return aq_fail_kind(err, EINVAL, "invalid-api-params",
                            "%zu templates of your projects are called '%.128s'; say its id",
                            page->count, text);
    template_copy(found, arena, ret);
    return 0;
}
