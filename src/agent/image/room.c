/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - room on the disk: which unused images give way, and to whom
 *
 * What a user has above a share of the space for images goes first, the rest by when it was used
 * last. Who would have more than a share takes nothing from users who have less. Nothing is kept
 * of it: shares are summed from the records whenever room is short.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "agent/image/images_internal.h"
#include "base/log.h"

#define KEEP_FREE_LEAST (INT64_C(1) << 30)

/* What may go for a wish. */
struct room_choice {
    struct images *images;
    const struct room_wish *wish;
    int64_t share_bytes;
    bool is_greedy; /* its user would have more than a share: others' shares are not for that */
};

/* ---- the disk ---- */

void room_init(struct images *images)
{
    const struct settings *settings = images->settings;
    struct stat state, store;

    images->is_beside_state = stat(settings->state, &state) == 0
                              && stat(images->directory, &store) == 0
                              && state.st_dev == store.st_dev;
    images->keep_free = settings->image_keep_free;
    if (!images->keep_free && images->is_beside_state)
        images->keep_free = settings_scratch_need(settings);
    if (!images->keep_free)
        images->keep_free = KEEP_FREE_LEAST;
}

int64_t room_kept(const struct images *images)
{
    bool is_promised = images->promised && images->is_beside_state;

    return AQ_MAX(images->keep_free, is_promised ? images->promised(images->promised_data) : 0);
}

int64_t room_available(const struct images *images)
{
    struct statvfs fs;

    if (statvfs(images->directory, &fs) < 0)
        return INT64_MAX / 2; /* writing will tell */
    return (int64_t)(fs.f_bavail * fs.f_frsize) - room_kept(images);
}

/* ---- shares ---- */

/* A layer of several of the user's images counts once. */
static int64_t room_sum_user(struct images *images, const char *user)
{
    int64_t sum = 0;

    images->mark++;
    for (size_t i = 0; i < images->records.count; i++) {
        const struct image_record *record = images->records.entries[i].value;

        if (!record->user || strcmp(record->user, user) != 0)
            continue;
        for (size_t k = 0; k < record->config.diff_count; k++) {
            struct image_layer *layer = map_gets(&images->layers, record->config.diff_ids[k]);

            if (layer->mark != images->mark)
                sum += layer->size_bytes;
            layer->mark = images->mark;
        }
    }
    return sum;
}

/* Of all that images have and may take. */
static int64_t room_share(const struct images *images)
{
    int64_t sum = AQ_MAX(room_available(images), 0);

    for (size_t i = 0; i < images->layers.count; i++) {
        const struct image_layer *layer = images->layers.entries[i].value;

        sum += layer->is_here ? layer->size_bytes : 0;
    }
    return sum / 100 * images->settings->image_user_share;
}

/* What is on its way counts as the user's, too. */
static bool room_is_above_share(const struct room_choice *choice, const char *user)
{
    const struct room_wish *wish = choice->wish;
    bool is_own = user && wish->user && strcmp(user, wish->user) == 0;

    return user
           && room_sum_user(choice->images, user) + (is_own ? wish->image_bytes : 0)
                  > choice->share_bytes;
}

static void room_judge_users(const struct room_choice *choice)
{
    struct map *records = &choice->images->records;

    for (size_t i = 0; i < records->count; i++) {
        struct image_record *record = records->entries[i].value;
        const struct image_record *same = NULL;

        for (size_t k = 0; record->user && !same && k < i; k++) {
            const struct image_record *before = records->entries[k].value;

            if (before->user && strcmp(before->user, record->user) == 0)
                same = before;
        }
        record->is_above_share = same ? same->is_above_share
                                      : room_is_above_share(choice, record->user);
    }
}

/* ---- what gives way ---- */

static bool room_may_go(const struct room_choice *choice, const struct image_record *record)
{
    return gc_is_idle(choice->images, record)
           && (!choice->is_greedy || record->is_above_share || !record->user);
}

/* What would be free if all of it went: layers that nothing else needs. */
static int64_t room_sum_spare(const struct room_choice *choice)
{
    const struct images *images = choice->images;
    int64_t sum = 0;

    for (size_t i = 0; i < images->layers.count; i++)
        ((struct image_layer *)images->layers.entries[i].value)->spare = 0;
    for (size_t i = 0; i < images->records.count; i++) {
        const struct image_record *record = images->records.entries[i].value;

        for (size_t k = 0; room_may_go(choice, record) && k < record->config.diff_count; k++)
            ((struct image_layer *)map_gets(&images->layers, record->config.diff_ids[k]))->spare++;
    }
    for (size_t i = 0; i < images->layers.count; i++) {
        const struct image_layer *layer = images->layers.entries[i].value;

        sum += layer->is_here && layer->spare == layer->users ? layer->size_bytes : 0;
    }
    return sum;
}

/* Has it a layer that nothing else needs but what may go, too? */
static bool room_would_help(const struct images *images, const struct image_record *record)
{
    for (size_t i = 0; i < record->config.diff_count; i++) {
        const struct image_layer *layer = map_gets(&images->layers, record->config.diff_ids[i]);

        if (layer->spare == layer->users)
            return true;
    }
    return false;
}

static struct image_record *room_choose(const struct room_choice *choice)
{
    const struct images *images = choice->images;
    struct image_record *chosen = NULL;

    room_judge_users(choice);
    (void)room_sum_spare(choice);
    for (size_t i = 0; i < images->records.count; i++) {
        struct image_record *record = images->records.entries[i].value;

        if (!room_may_go(choice, record) || !room_would_help(images, record))
            continue;
        if (!chosen || record->is_above_share > chosen->is_above_share
            || (record->is_above_share == chosen->is_above_share && gc_is_older(record, chosen)))
            chosen = record;
    }
    return chosen;
}

static int room_fail_share(const struct room_choice *choice, struct aq_error *err)
{
    const struct room_wish *wish = choice->wish;

    return aq_fail_as(
        err, ENOSPC, "image-no-space", "image",
        "there is no room for the image of about %lld MiB: images of its user that are in "
        "use take %lld MiB, and a user above the share of %lld MiB ([image] "
        "user-share) gets no room from others; end sessions that use other images",
        (long long)(wish->image_bytes >> 20),
        (long long)(room_sum_user(choice->images, wish->user) >> 20),
        (long long)(choice->share_bytes >> 20));
}

static int room_evict(struct images *images, const struct room_wish *wish, struct aq_error *err)
{
    struct room_choice choice = { .images = images,
                                  .wish = wish,
                                  .share_bytes = room_share(images) };
    int64_t bytes = wish->bytes, freed = 0, spare;
    struct image_record *record;

    choice.is_greedy = room_is_above_share(&choice, wish->user);
    room_judge_users(&choice);
    spare = room_sum_spare(&choice);
    if (wish->is_estimate)
        bytes = AQ_MIN(bytes, spare);
    if (spare < bytes || bytes <= 0) {
        bool is_greedy = choice.is_greedy;

        choice.is_greedy = false;
        if (is_greedy && room_sum_spare(&choice) >= AQ_MAX(bytes, 1))
            return room_fail_share(&choice, err);
        return -ENOSPC;
    }
    log_info("removing unused images to free %lld bytes", (long long)bytes);
    while (freed < bytes && (record = room_choose(&choice))) {
        int64_t one;

        if (gc_remove(images, record, &one, NULL) < 0)
            break;
        freed += one;
    }
    return list_is_empty(&images->garbage) ? -ENOSPC : -EINPROGRESS;
}

/* ---- asking ---- */

int room_make(struct images *images, const struct room_wish *wish, struct image_room *waiter,
              struct aq_error *err)
{
    int r = -EINPROGRESS;

    if (list_is_empty(&images->garbage))
        gc_remove_leftovers(images);
    if (list_is_empty(&images->garbage))
        r = room_evict(images, wish, err);
    if (r == -EINPROGRESS)
        list_add(&images->waiting, &waiter->link);
    return r;
}

bool images_make_room(struct images *images, int64_t bytes, struct image_room *waiter)
{
    const struct room_wish wish = { .bytes = bytes };

    return images->is_beside_state && room_make(images, &wish, waiter, NULL) == -EINPROGRESS;
}

void room_made(struct images *images)
{
    struct list *waiting = &images->waiting;

    /* until there is garbage again: then the rest waits for that */
    while (!list_is_empty(waiting) && list_is_empty(&images->garbage)) {
        struct image_room *waiter = LIST_ENTRY(waiting->next, struct image_room, link);

        list_remove(&waiter->link);
        waiter->on_made(waiter->data);
    }
}
