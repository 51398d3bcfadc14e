/* SPDX-License-Identifier: Apache-2.0 */
/* play_disk_file.h - one file of a simulated disk: what is read, and what would survive a crash */
#ifndef AQ_SIM_PLAY_PLAY_DISK_FILE_H
#define AQ_SIM_PLAY_PLAY_DISK_FILE_H

#include <stddef.h>
#include <stdint.h>

struct play_disk_bytes {
    unsigned char *data;
    size_t len, cap;
};

/* A write, or a truncation ('bytes' NULL) to 'at'. */
struct play_disk_change {
    size_t at, len;
    unsigned char *bytes;
};

struct play_disk_file {
    struct play_disk_bytes now, synced;
    struct play_disk_change *changes; /* since the last sync */
    size_t change_count, change_cap;
};

void play_disk_file_write(struct play_disk_file *file, const void *bytes, size_t len, size_t at);
void play_disk_file_truncate(struct play_disk_file *file, size_t len);
void play_disk_file_sync(struct play_disk_file *file);

/* Each change since the last sync is kept, lost, or kept in part, by chance. */
void play_disk_file_crash(struct play_disk_file *file);
void play_disk_file_done(struct play_disk_file *file);

#endif
