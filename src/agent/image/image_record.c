/* SPDX-License-Identifier: Apache-2.0 */
/* image_record.c - one image of the store in memory */
#include "agent/image/image_record.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/images_internal.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"

struct handle {
    struct image image; /* first: what the world sees */
    struct image_record *record;
    char *reference;
};

/* What a program in the node's own root could read or talk to although it is
 * none of its business, should it be allowed to as the user that it runs as.
 */
static const char *const host_hidden[] = {
    "/boot",        "/etc/aliquot",     "/etc/gshadow",     "/etc/gshadow-", "/etc/shadow",
    "/etc/shadow-", "/etc/ssh",         "/etc/ssl/private", "/etc/sudoers",  "/etc/sudoers.d",
    "/root",        "/var/lib/aliquot", "/var/log",         "/var/spool",
};

struct image_record *image_record_new(void)
{
    struct image_record *record = aq_alloc(sizeof(*record));

    record->hidden = aq_alloc(sizeof(*record->hidden));
    record->refs = 1;
    return record;
}

void image_record_unref(struct image_record *record)
{
    if (!record || --record->refs)
        return;
    for (size_t i = 0; i < record->lower_count; i++)
        free(record->lowers[i]);
    free(record->lowers);
    free(record->hidden);
    free(record->digest);
    free(record->stamp);
    free(record->user);
    image_config_done(&record->config);
    map_done(&record->known);
    free(record);
}

/* A hint for the garbage collector of the next process; losing it is no harm. */
static void image_record_mark_used(struct image_record *record)
{
    record->used_usec = clock_realtime_usec();
    if (record->stamp)
        (void)utimensat(AT_FDCWD, record->stamp, NULL, 0);
}

/* Also a hint. */
void image_record_charge(struct image_record *record, const char *user)
{
    if (!record->user || (user && strcmp(record->user, user) == 0))
        return;
    free(record->user);
    record->user = aq_strdup(user);
    (void)fs_write_quick(AT_FDCWD, record->stamp, user, user ? strlen(user) : 0, 0600, NULL);
}

struct image *image_record_hold(struct image_record *record, const char *reference)
{
    struct handle *handle = aq_alloc(sizeof(*handle));

    handle->reference = aq_strdup(reference);
    handle->record = record;
    handle->image = (struct image){
        .reference = handle->reference,
        .digest = record->digest,
        .lowers = (const char *const *)record->lowers,
        .lower_count = record->lower_count,
        .hidden = record->hidden,
        .config = &record->config,
        .size_bytes = record->size_bytes,
        .known = record->digest ? &record->known : NULL,
    };
    record->refs++;
    if (record->holds++ == 0)
        images_use_changed(record->images);
    image_record_mark_used(record);
    return &handle->image;
}

bool image_is_for_files(const struct image *image)
{
    return strcmp(image->reference, IMAGE_OF_FILES) == 0;
}

void image_unref(struct image *image)
{
    struct handle *handle = (struct handle *)image;

    if (!image)
        return;
    if (--handle->record->holds == 0)
        images_use_changed(handle->record->images);
    image_record_mark_used(handle->record);
    image_record_unref(handle->record);
    free(handle->reference);
    free(handle);
}

static void image_record_hide(struct image_record *record, const char *state)
{
    size_t count = AQ_COUNT(host_hidden);

    free(record->hidden);
    record->hidden = aq_alloc_array(count + 2, sizeof(*record->hidden));
    memcpy(record->hidden, host_hidden, sizeof(host_hidden));
    record->hidden[count] = state;
}

struct image_record *image_record_new_local(const struct reference *ref, const char *state)
{
    struct image_record *record = image_record_new();
    bool is_host = ref->form == REFERENCE_HOST;

    record->lowers = aq_alloc(sizeof(*record->lowers));
    record->lowers[0] = aq_strdup(is_host ? "/" : ref->path);
    if (is_host)
        image_record_hide(record, state);
    record->lower_count = 1;
    return record;
}

const char *image_phase_name(enum image_phase phase)
{
    static const char *const names[] = { "resolving", "retrying", "fetching", "unpacking" };

    return names[phase];
}
