/* SPDX-License-Identifier: Apache-2.0 */
/* index_choice.c - which image of an index it is to be */
#include "agent/image/index_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/image/platform.h"
#include "base/vec.h"

#define DEPTH_MAX 4    /* indexes in indexes */
#define INDEXES_MAX 32 /* each is a question to a registry */
#define OTHERS_MAX 120 /* bytes of what an error lists */

void index_choice_init(struct index_choice *choice, const char *architecture, const char *name,
                       int level)
{
    *choice = (struct index_choice){
        .architecture = architecture, .name = name, .level = level, .depth = -1
    };
    strbuf_init(&choice->others);
}

void index_choice_done(struct index_choice *choice)
{
    free(choice->items);
    strbuf_done(&choice->others);
    choice->items = NULL;
    choice->count = choice->cap = 0;
}

static bool index_choice_is_named(const struct manifest_item *item, const char *name)
{
    return (item->name && strcmp(item->name, name) == 0)
           || (item->full_name && strcmp(item->full_name, name) == 0);
}

static void index_choice_note_other(struct index_choice *choice, const struct manifest_item *item)
{
    const char *gap = choice->others.len ? ", " : "";

    if (choice->others.len >= OTHERS_MAX)
        return;
    if (choice->name && item->name)
        strbuf_addf(&choice->others, "%s%.60s", gap, item->name);
    else if (!choice->name && item->has_platform)
        strbuf_addf(&choice->others, "%s%s/%s%s%s", gap, item->os, item->architecture,
                    item->variant[0] ? "/" : "", item->variant);
}

/* -1 = it does not run here; 0 = nobody knows yet. */
static int index_choice_score(const struct index_choice *choice, const struct manifest_item *item)
{
    if (!item->has_platform)
        return 0;
    if ((item->os[0] && strcasecmp(item->os, "linux") != 0)
        || (item->architecture[0] && strcmp(item->architecture, choice->architecture) != 0))
        return -1;
    if (!item->architecture[0])
        return 0;
    /* one index is as good as another: what is in it decides */
    return item->is_index ? 1 : platform_score(item->architecture, item->variant, choice->level);
}

static void index_choice_add_item(struct index_choice *choice, const struct manifest_item *item,
                                  bool is_named)
{
    int score = index_choice_score(choice, item);

    if (score < 0 || !(is_named || item->is_index)) {
        index_choice_note_other(choice, item);
        return;
    }
    vec_grow(&choice->items, &choice->cap, choice->count + 1, sizeof(*choice->items));
    choice->items[choice->count] = (struct index_choice_item){
        .depth = choice->depth + 1,
        .score = score,
        .is_index = item->is_index,
        .is_named = is_named,
    };
    (void)strcpy(choice->items[choice->count++].digest, item->digest);
    if (!is_named)
        index_choice_note_other(choice, item);
}

/* Something has the wanted name: what has not is not looked through, and what else may be
 * missing is the platform.
 */
static void index_choice_end_search(struct index_choice *choice)
{
    size_t kept = 0;

    for (size_t i = 0; i < choice->count; i++)
        if (choice->items[i].is_named)
            choice->items[kept++] = choice->items[i];
    choice->count = kept;
    choice->name = NULL;
    strbuf_clear(&choice->others);
}

int index_choice_add(struct index_choice *choice, const struct manifest *index,
                     struct aq_error *err)
{
    const char *name = choice->name;
    bool is_found = false;

    if (choice->depth >= DEPTH_MAX || ++choice->index_count > INDEXES_MAX)
        return aq_fail_field(err, EBADMSG, "manifest",
                             "its indexes are nested deeper than %d or are more than %d", DEPTH_MAX,
                             INDEXES_MAX);
    for (size_t i = 0; name && i < index->item_count; i++)
        is_found = is_found || index_choice_is_named(&index->items[i], name);
    if (is_found)
        index_choice_end_search(choice);
    for (size_t i = 0; i < index->item_count; i++) {
        const struct manifest_item *item = &index->items[i];
        bool is_named = !name || index_choice_is_named(item, name);

        if (!item->is_artifact && (is_named || !is_found))
            index_choice_add_item(choice, item, is_named);
    }
    return 0;
}

/* An index that is not read yet, else the best image; NULL = none. */
static struct index_choice_item *index_choice_find(const struct index_choice *choice)
{
    struct index_choice_item *best = NULL;

    for (size_t i = 0; i < choice->count; i++) {
        struct index_choice_item *item = &choice->items[i];

        if (item->is_done)
            continue;
        if (item->is_index)
            return item;
        if (item->is_named && (!best || item->score > best->score))
            best = item;
    }
    return best;
}

bool index_choice_has_more(const struct index_choice *choice)
{
    return index_choice_find(choice) != NULL;
}

int index_choice_next(struct index_choice *choice, char ret[DIGEST_TEXT_MAX], struct aq_error *err)
{
    struct index_choice_item *item = index_choice_find(choice);
    const char *others = choice->others.len ? choice->others.data : "nothing that is an image";

    if (item) {
        item->is_done = true;
        choice->depth = item->depth;
        (void)strcpy(ret, item->digest);
        return 0;
    }
    if (choice->name)
        return aq_fail_as(err, ENOENT, "image-not-found", "image",
                          "no image in the layout has this name; it has: %s", others);
    if (strcmp(choice->architecture, "amd64") == 0 && strstr(others, "linux/amd64/"))
        return aq_fail_as(err, ENOENT, "image-architecture", "architecture",
                          "this node's processor runs linux/amd64 up to v%d, and the image is "
                          "there only for %s",
                          choice->level, others);
    return aq_fail_as(err, ENOENT, "image-architecture", "architecture",
                      "the image is not there for linux/%s, only for %s", choice->architecture,
                      others);
}

int index_choice_check_names(const struct manifest *index, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf names = STRBUF_INIT;
    const struct manifest_item *first = NULL;
    bool are_several = false;

    for (size_t i = 0; i < index->item_count; i++) {
        const struct manifest_item *item = &index->items[i];

        if (item->is_artifact || !item->name)
            continue;
        if (names.len < OTHERS_MAX)
            strbuf_addf(&names, "%s%.60s", names.len ? ", " : "", item->name);
        are_several = are_several
                      || (first && strcmp(first->name, item->name) != 0
                          && strcmp(first->digest, item->digest) != 0);
        first = first ? first : item;
    }
    return are_several ? aq_fail_as(err, EINVAL, "image-ambiguous", "image",
                                    "the layout has several images: append ':' and one of their "
                                    "names: %s",
                                    names.data)
                       : 0;
}
