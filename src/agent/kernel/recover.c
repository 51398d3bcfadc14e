/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c - what a former process of the agent left: directories become kernels again */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/kernel/kernel.h"
#include "agent/kernel/kernel_command.h"
#include "agent/kernel/prerequisites.h"
#include "agent/runtime/exit_file.h"
#include "agent/runtime/oci.h"
#include "alloc/resource_txt.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "base/log.h"

/* Its devices say what it holds; the command may say what it held before that changed. */
static void recover_take_held(struct local_kernel *k)
{
    AQ_CLEANUP(slots_donep) struct slots held = { .items = NULL };

    if (alloc_grant_sum(&k->grant, &held) < 0)
        return;
    for (size_t i = 0; i < held.count; i++)
        if (slots_get(&k->slots, held.items[i].name))
            slots_put(&k->slots, held.items[i].name, held.items[i].amount);
}

/* Devices it holds, as its resource.txt says. Without one (a power failure
 * came first) it gets others when it is restarted.
 */
static void recover_find_grant(struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *path = disk_worker_kernel_path(k->agent->disk, &k->id,
                                                              "config/resource.txt");
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct strbuf json = STRBUF_INIT;
    struct jsonw w = jsonw_make(&json);
    struct resource_txt file = { .scratch_bytes = 0 };
    struct aq_error err = { 0 };

    if (fs_read(AT_FDCWD, path, RESOURCE_TXT_MAX, &text, &err) < 0
        || resource_txt_read(text.data, text.len, k->agent->resources.types, &file, &err) < 0)
        return;
    if (alloc_map_apply(k->agent->resources.map, &file.grant, &err) == 0) {
        k->grant = file.grant;
        file.grant = (struct alloc_grant){ .items = NULL };
        alloc_grant_write_json(&k->grant, &w);
        k->alloc = strbuf_steal(&json);
        recover_take_held(k);
    } else {
        log_warning("devices of a kernel: %s", err.text);
    }
    resource_txt_done(&file);
}

static void recover_find_spec(struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *path = disk_worker_kernel_path(k->agent->disk, &k->id, "spec.json");
    struct aq_error err = { 0 };
    struct message msg;
    int r = kernel_command_read(path, &msg, &err);

    k->is_saved = true;
    if (r == 0) {
        if (uuid_equals(&msg.kernel_create.kernel_id, &k->id)) {
            k->attempt = msg.kernel_create.attempt;
            k->command = msg;
            msg = (struct message){ .type = MSG_UNKNOWN };
            r = kernel_take_spec(k, &err);
        } else { /* a directory used again, and a power failure */
            r = aq_fail(&err, EINVAL, "'%s' is of another kernel", path);
        }
        message_done(&msg);
    }
    if (r == 0)
        return;
    log_error("the order of a kernel is unreadable, it is ended: %s", err.text);
    k->is_unreadable = k->wants_end = true;
}

/* The exit record is there already: no monitor needs to be asked. */
static bool recover_end_by_record(struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *directory = disk_worker_run_path(k->agent->disk, &k->id, k->attempt);
    struct exit_file record;

    if (exit_file_read(directory, &record, NULL) < 0)
        return false;
    kernel_end(k, &record.exit);
    exit_file_done(&record);
    return true;
}

/* The newest attempt that was started; a command to begin a later one may have
 * made its directory and come no further. -ENOENT if there is none.
 */
static int recover_adopt_newest(struct local_kernel *k, int64_t newest, struct aq_error *err)
{
    int r = -ENOENT;

    for (int64_t attempt = newest; attempt > 0 && r == -ENOENT; attempt--)
        r = kernel_adopt(k, attempt, err);
    return r;
}

static int recover(struct agent_daemon *agent, const struct uuid *id, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *runs = disk_worker_kernel_path(agent->disk, id, "run");
    struct local_kernel *k = kernel_add(agent, id);
    int64_t newest = disk_worker_newest_attempt(runs);
    int r;

    k->attempt = newest;
    recover_find_spec(k);
    if (recover_end_by_record(k))
        return 0;
    recover_find_grant(k);
    kernel_recover_resizing(k);
    prerequisites_adopt(k);
    r = recover_adopt_newest(k, newest, err);
    if (k->run)
        prerequisites_adopt_slice(k);
    AQ_FAULT("agent.recover.adopted");
    return r == -ENOENT ? 0 : r;
}

/* Starts what was never started, ends what must end. Only now, as what starts
 * again may get no device that another kernel holds.
 */
static void recover_step_all(struct agent_daemon *agent)
{
    for (size_t i = 0; i < agent->kernels.count; i++)
        kernel_step(agent->kernels.entries[i].value);
}

/* Of all others whatever is left on this node is removed. */
static bool recover_is_alive(void *data, const struct uuid *kernel_id)
{
    const struct local_kernel *k = kernel_find(data, kernel_id);

    return k && !kernel_is_final(k);
}

int recover_all(struct agent_daemon *agent, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *directory = settings_path(agent->settings, "kernels");
    DIR *dir = opendir(directory);
    struct dirent *entry;
    int r = 0;

    if (!dir)
        return aq_fail_errno(err, "open '%s'", directory);
    while (r == 0 && (entry = readdir(dir))) {
        struct uuid id;

        if (uuid_parse(entry->d_name, &id) == 0)
            r = recover(agent, &id, err);
    }
    (void)closedir(dir);
    if (r == 0)
        recover_step_all(agent);
    if (r == 0 && agent->containers)
        runtime_oci_sweep(agent->containers, recover_is_alive, agent);
    if (r == 0 && agent->gpu)
        gpu_sweep(agent->gpu, recover_is_alive, agent);
    if (r == 0 && agent->net)
        net_sweep(agent->net);
    if (r == 0 && agent->cluster)
        cluster_sweep(agent->cluster);
    AQ_FAULT("agent.recover.done");
    return r;
}
