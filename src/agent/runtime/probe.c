/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - does an OCI runtime work here, with all that containers need? */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/exit_file.h"
#include "agent/runtime/oci.h"
#include "agent/runtime/sync_tool.h"
#include "agent/settings/state_room.h"
#include "base/fs.h"
#include "base/uuid.h"
#include "monitor/protocol.h"

#define PROBE_MEMORY (INT64_C(64) << 20)
#define PROBE_PROCESSES 64
#define PROBE_LOG (64 << 10)
#define PROBE_USEC (INT64_C(20) * 1000000)

/* The last thing that was written, for users. */
static void runtime_probe_explain(const char *directory, const struct runtime_exit *exit,
                                  struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/log", directory);
    AQ_CLEANUP(strbuf_donep) struct strbuf log = STRBUF_INIT;

    (void)fs_read(AT_FDCWD, path, PROBE_LOG, &log, NULL);
    log.data[strcspn(log.data, "\n")] = '\0';
    (void)aq_fail(err, EIO, "a first container ended with %s%s%s%s", exit->reason,
                  exit->has_code ? "" : " and no exit code",
                  exit->text[0] || log.data[0] ? ": " : "", exit->text[0] ? exit->text : log.data);
}

static int runtime_probe_evaluate(const char *directory, struct aq_error *err)
{
    struct exit_file file;
    int r = exit_file_read(directory, &file, err);

    if (r < 0)
        return r;
    if (strcmp(file.exit.reason, MONITOR_EXITED) != 0 || file.exit.code != 0) {
        runtime_probe_explain(directory, &file.exit, err);
        r = -EIO;
    }
    exit_file_done(&file);
    return r;
}

static int probe_run_in(struct oci_runtime *rt, const char *directory, struct aq_error *err)
{
    static const char *const layers[] = { "/" };
    /* the runner itself is the one program that surely is there */
    static const char *const argv[] = { "/opt/kernel/aliquot-runner", "--version", NULL };
    static const char *const envp[] = { "PATH=/usr/bin:/bin", NULL };
    /* not on the file system of the node's root, which cannot be above and below */
    AQ_CLEANUP(aq_freep) char *scratch = oci_host_kernel_path(
        runtime_oci_host((const struct runtime *)rt), "probe", "");
    struct uuid id = uuid_random();
    char text[UUID_TEXT_MAX];
    const struct container_spec container = {
        .id = uuid_format(&id, text),
        .hostname = "probe",
        .layers = layers,
        .layer_count = AQ_COUNT(layers),
        .scratch = scratch,
        .uid = 1000,
        .gid = 1000,
    };
    const struct runtime_spec spec = {
        .directory = directory,
        .argv = argv,
        .envp = envp,
        .cwd = "/home/work",
        .timeout_usec = PROBE_USEC,
        .log_max = PROBE_LOG,
        .memory_bytes = PROBE_MEMORY,
        .processes_max = PROBE_PROCESSES,
        .container = &container,
    };
    const char *monitor[] = { runtime_oci_monitor((const struct runtime *)rt), directory, NULL };
    int r = oci_write(rt, &spec, err);

    if (r == 0)
        r = tool_run(monitor, NULL, err);
    (void)fs_remove_tree(AT_FDCWD, scratch, NULL);
    return r < 0 ? r : runtime_probe_evaluate(directory, err);
}

/* Below the run folder, which is in memory, if the state folder has no room: containers that run
 * there are kept, and what the probe finds holds when there is room again.
 */
int oci_probe(struct oci_runtime *rt, const struct settings *settings, struct aq_error *err)
{
    const char *place = state_room_is_short(settings->state, NULL) ? settings->run
                                                                   : settings->state;
    AQ_CLEANUP(aq_freep) char *directory = aq_format("%s/probe.%s", place, settings->id);
    int r;

    (void)fs_remove_tree(AT_FDCWD, directory, NULL); /* of a killed agent */
    r = mkdir(directory, 0700) < 0 ? aq_fail_errno(err, "make '%s'", directory)
                                   : probe_run_in(rt, directory, err);
    (void)fs_remove_tree(AT_FDCWD, directory, NULL);
    return r;
}
