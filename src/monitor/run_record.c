/* SPDX-License-Identifier: Apache-2.0 */
/* run_record.c - the files 'started' and 'exit.json' of a run directory */
#include "monitor/run_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/jsonw.h"

#define EXIT_BYTES 4096 /* more than any exit record has without outputs */

int run_record_mark_started(int directory, struct aq_error *err)
{
    AQ_FAULT("monitor.started.before");
    if (renameat2(directory, "program", directory, "started", RENAME_NOREPLACE) < 0)
        return aq_fail_errno(err, "make 'started'");
    AQ_FAULT("monitor.started.made");
    return 0;
}

void run_record_reserve_exit(int directory)
{
    AQ_CLEANUP(aq_closep) int fd = openat(directory, "exit.tmp",
                                          O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)posix_fallocate(fd, 0, EXIT_BYTES);
}

int64_t run_record_get_started(int directory)
{
    struct stat st;

    if (fstatat(directory, "started", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    return (int64_t)st.st_ctim.tv_sec * USEC_PER_SEC + st.st_ctim.tv_nsec / 1000;
}

bool run_record_has_exit(int directory)
{
    return faccessat(directory, "exit.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int64_t timeval_usec(struct timeval tv)
{
    return (int64_t)tv.tv_sec * USEC_PER_SEC + tv.tv_usec;
}

/* Into exit.tmp, which has its room already: no file is made, and no block taken. */
static int run_record_write_file(int directory, const struct strbuf *text, struct aq_error *err)
{
    int r = fs_overwrite(directory, "exit.tmp", text->data, text->len, 0600, err);

    if (r == 0 && renameat(directory, "exit.tmp", directory, "exit.json") < 0)
        r = aq_fail_errno(err, "make 'exit.json'");
    return r;
}

int run_record_write_exit(int directory, const struct exit_record *record, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct rusage used = { 0 };
    int r;

    (void)getrusage(RUSAGE_CHILDREN, &used);
    jsonw_object_begin(&w);
    jsonw_member_int(&w, "version", 1);
    if (record->kernel_id)
        jsonw_member_str(&w, "kernel_id", record->kernel_id);
    jsonw_member_str(&w, "reason", record->reason);
    jsonw_member_str(&w, "text", record->text);
    jsonw_key(&w, "exit_code");
    if (record->has_code)
        jsonw_int(&w, record->code);
    else
        jsonw_null(&w);
    jsonw_key(&w, "signal");
    if (record->signal)
        jsonw_int(&w, record->signal);
    else
        jsonw_null(&w);
    jsonw_member_int(&w, "started_at", run_record_get_started(directory));
    jsonw_member_int(&w, "ended_at", clock_realtime_usec());
    jsonw_member_int(&w, "user_usec", timeval_usec(used.ru_utime));
    jsonw_member_int(&w, "system_usec", timeval_usec(used.ru_stime));
    jsonw_member_int(&w, "max_rss_bytes", (int64_t)used.ru_maxrss * 1024);
    if (record->memory_peak_bytes >= 0)
        jsonw_member_int(&w, "memory_peak_bytes", record->memory_peak_bytes);
    if (record->was_short_of_memory)
        jsonw_member_bool(&w, "was_short_of_memory", true);
    if (record->outputs) {
        jsonw_key(&w, "outputs");
        jsonw_raw(&w, record->outputs, strlen(record->outputs));
    }
    jsonw_object_end(&w);
    if (!strbuf_ok(&text))
        return aq_fail_oom(err);
    AQ_FAULT("monitor.exit.before");
    r = run_record_write_file(directory, &text, err);
    AQ_FAULT("monitor.exit.recorded");
    return r;
}
