/* SPDX-License-Identifier: Apache-2.0 */
/* clock_adjustment.c - how long sessions have been in their state, across restarts
 *
 * While the manager runs, monotonic time measures. What a start finds was
 * dated by the wall clock, which may have jumped since then. Monotonic time
 * goes on from one process to the next until the machine is rebooted, so
 * each start compares both clocks with those of the start before and keeps
 * what the wall clock has gained: a file "clock" in the state directory has
 *
 *     BOOT-ID WALL MONOTONIC      of the last start, microseconds
 *     UNTIL GAINED                one line per jump, the oldest first
 *
 * From the age of whatever is older than a jump, the jump is taken off; so
 * nothing ends too early, though perhaps, by as much as a jump, too late.
 * A clock that is ahead of that of the manager that led before has jumped
 * as seen from what that one has dated.
 *
 * A start that finds no room for the file goes on with the one it has read, and
 * writes it when there is room. If it never does, the next start sees the jumps of
 * both intervals as one, dated later, which errs to the same side. Only a jump that
 * is followed by a reboot before there was room goes unnoticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define JUMP_USEC (10 * USEC_PER_SEC) /* less is the clock being set right */
#define START_GRACE_USEC (60 * USEC_PER_SEC)
#define FILE_MAX 8192
#define RETRY_USEC (5 * USEC_PER_SEC)

static void clock_adjustment_read_boot_id(char id[BOOT_ID_MAX])
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (fs_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 4096, &text, NULL) < 0)
        strbuf_adds(&text, "unknown");
    (void)snprintf(id, BOOT_ID_MAX, "%.*s", (int)strcspn(text.data, "\n"), text.data);
}

static void clock_adjustment_add_jump(struct core *core, int64_t until_usec, int64_t gained_usec)
{
    if (core->jump_count == WALL_JUMPS_MAX)
        memmove(core->jumps, core->jumps + 1, --core->jump_count * sizeof(core->jumps[0]));
    core->jumps[core->jump_count++] = (struct wall_jump){ until_usec, gained_usec };
}

/* The clock was set back: what it had gained is undone, the last first. */
static void clock_adjustment_undo_jumps(struct core *core, int64_t lost_usec)
{
    while (core->jump_count && lost_usec > 0) {
        struct wall_jump *last = &core->jumps[core->jump_count - 1];
        int64_t part = AQ_MIN(last->gained_usec, lost_usec);

        last->gained_usec -= part;
        lost_usec -= part;
        core->jump_count -= last->gained_usec <= JUMP_USEC;
    }
}

/* What the start before has left; one that cannot be read counts as none. */
static void clock_adjustment_take_file(struct core *core, const char *text, const char *boot_id)
{
    int64_t wall = clock_realtime_usec(), mono = clock_monotonic_usec(), old_wall, old_mono;
    int64_t jump;
    char old_id[BOOT_ID_MAX];
    int used = 0;

    if (sscanf(text, "%39s %" SCNd64 " %" SCNd64 "\n%n", old_id, &old_wall, &old_mono, &used) < 3)
        return;
    for (text += used, used = 0; *text; text += used) {
        int64_t until, gained;

        if (sscanf(text, "%" SCNd64 " %" SCNd64 "\n%n", &until, &gained, &used) < 2 || gained <= 0)
            break;
        clock_adjustment_add_jump(core, until, gained);
    }
    if (strcmp(old_id, boot_id) != 0 || old_mono > mono || old_wall < 0 || wall < 0)
        return;
    jump = (wall - old_wall) - (mono - old_mono);
    if (jump > JUMP_USEC)
        clock_adjustment_add_jump(core, wall, jump);
    else if (jump < -JUMP_USEC)
        clock_adjustment_undo_jumps(core, -jump);
    if (jump > JUMP_USEC || jump < -JUMP_USEC)
        log_warning("the wall clock has jumped by %" PRId64 " s since the last start",
                    jump / USEC_PER_SEC);
}

/* All that another manager dated looks older by 'ahead_usec'. A jump that is known may be a part of
 * this, as when this manager's clock was set while the other one led: it is not taken off twice.
 */
static void clock_adjustment_compare(struct core *core, int64_t ahead_usec)
{
    int64_t wall = clock_realtime_usec();

    for (size_t i = core->jump_count; i-- > 0 && ahead_usec > JUMP_USEC;) {
        if (core->jumps[i].gained_usec > ahead_usec + JUMP_USEC)
            continue;
        core->jumps[i].until_usec = wall;
        ahead_usec -= core->jumps[i].gained_usec;
    }
    if (ahead_usec > JUMP_USEC)
        clock_adjustment_add_jump(core, wall, ahead_usec);
}

int clock_adjustment_begin(struct core *core, const char *path, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char boot_id[BOOT_ID_MAX];
    int r;

    core->started_usec = clock_monotonic_usec();
    clock_adjustment_read_boot_id(boot_id);
    if (fs_read(AT_FDCWD, path, FILE_MAX, &text, NULL) == 0)
        clock_adjustment_take_file(core, text.data, boot_id);
    clock_adjustment_compare(core, core->conf.ahead_usec);
    strbuf_clear(&text);
    strbuf_addf(&text, "%s %" PRId64 " %" PRId64 "\n", boot_id, clock_realtime_usec(),
                core->started_usec);
    for (size_t i = 0; i < core->jump_count; i++)
        strbuf_addf(&text, "%" PRId64 " %" PRId64 "\n", core->jumps[i].until_usec,
                    core->jumps[i].gained_usec);
    r = fs_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, err);
    if (r == 0 || !fs_is_out_of_room(-r))
        return r;
    log_warning("%s; %s. The manager keeps running and will retry", err->text,
                r == -EROFS ? "remount the file system writable" : "free space there");
    core->clock_text = strbuf_steal(&text);
    core->clock_path = aq_strdup(path);
    return 0;
}

void clock_adjustment_tick(struct core *core, int64_t now_usec)
{
    struct aq_error err;

    if (!core->clock_text || now_usec < core->clock_retry_usec)
        return;
    core->clock_retry_usec = now_usec + RETRY_USEC;
    if (fs_write_atomic(AT_FDCWD, core->clock_path, core->clock_text, strlen(core->clock_text),
                        0600, &err)
        < 0)
        return;
    log_info("wrote '%s': its file system can be written again", core->clock_path);
    clock_adjustment_done(core);
}

void clock_adjustment_done(struct core *core)
{
    free(AQ_TAKE(core->clock_text));
    free(AQ_TAKE(core->clock_path));
}

int64_t clock_adjustment_since(const struct core *core, int64_t changed_usec)
{
    int64_t age = clock_realtime_usec() - changed_usec;

    for (size_t i = 0; i < core->jump_count; i++)
        if (changed_usec < core->jumps[i].until_usec)
            age -= core->jumps[i].gained_usec;
    return clock_monotonic_usec() - AQ_MAX(age, 0);
}

int64_t clock_adjustment_due(const struct core *core, const struct session_entry *l,
                             int64_t after_usec)
{
    int64_t heard = core->started_usec + AQ_MIN(after_usec, START_GRACE_USEC);

    return AQ_MAX(l->since_usec + after_usec, heard);
}
