/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a simulated disk: what was written, and what of it was synced. */
#include "sim/play/play_disk_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "simuv/simuv.h"

#define SECTOR 512

static void play_disk_bytes_write(struct play_disk_bytes *to, const void *bytes, size_t len,
                                  size_t at)
{
    size_t end = at + len;

    if (end > to->cap) {
        to->cap = AQ_MAX(end, 2 * to->cap);
        to->data = aq_realloc(to->data, to->cap);
    }
    if (at > to->len)
        memset(to->data + to->len, 0, at - to->len);
    if (len)
        memcpy(to->data + at, bytes, len);
    to->len = AQ_MAX(to->len, end);
}

static void play_disk_bytes_truncate(struct play_disk_bytes *to, size_t len)
{
    if (len < to->len)
        to->len = len;
    else
        play_disk_bytes_write(to, NULL, 0, len);
}

static void play_disk_file_note(struct play_disk_file *file, struct play_disk_change change)
{
    if (file->change_count == file->change_cap) {
        file->change_cap = AQ_MAX((size_t)16, 2 * file->change_cap);
        file->changes = aq_realloc(file->changes, file->change_cap * sizeof(*file->changes));
    }
    file->changes[file->change_count++] = change;
}

void play_disk_file_write(struct play_disk_file *file, const void *bytes, size_t len, size_t at)
{
    struct play_disk_change change = { .at = at, .len = len, .bytes = aq_alloc(len + 1) };

    memcpy(change.bytes, bytes, len);
    play_disk_file_note(file, change);
    play_disk_bytes_write(&file->now, bytes, len, at);
}

void play_disk_file_truncate(struct play_disk_file *file, size_t len)
{
    play_disk_file_note(file, (struct play_disk_change){ .at = len });
    play_disk_bytes_truncate(&file->now, len);
}

static void play_disk_file_keep(struct play_disk_file *file, const struct play_disk_change *change,
                                size_t len)
{
    if (change->bytes)
        play_disk_bytes_write(&file->synced, change->bytes, len, change->at);
    else
        play_disk_bytes_truncate(&file->synced, change->at);
}

static void play_disk_file_forget_changes(struct play_disk_file *file)
{
    for (size_t i = 0; i < file->change_count; i++)
        free(file->changes[i].bytes);
    file->change_count = 0;
}

void play_disk_file_sync(struct play_disk_file *file)
{
    for (size_t i = 0; i < file->change_count; i++)
        play_disk_file_keep(file, &file->changes[i], file->changes[i].len);
    play_disk_file_forget_changes(file);
}

void play_disk_file_crash(struct play_disk_file *file)
{
    for (size_t i = 0; i < file->change_count; i++) {
        const struct play_disk_change *change = &file->changes[i];
        size_t sectors = change->len / SECTOR;

        switch (simuv_random_below(3)) {
        case 0:
            play_disk_file_keep(file, change, change->len);
            break;
        case 1:
            if (change->bytes)
                play_disk_file_keep(file, change, SECTOR * (size_t)simuv_random_below(sectors + 1));
            break;
        default:
            break;
        }
    }
    play_disk_file_forget_changes(file);
    play_disk_bytes_truncate(&file->now, 0);
    play_disk_bytes_write(&file->now, file->synced.data, file->synced.len, 0);
}

void play_disk_file_done(struct play_disk_file *file)
{
    play_disk_file_forget_changes(file);
    free(file->changes);
    free(file->now.data);
    free(file->synced.data);
}
