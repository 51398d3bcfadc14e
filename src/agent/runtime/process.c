/* SPDX-License-Identifier: Apache-2.0 */
/* Plain processes of the node. */
#include <errno.h>

#include "agent/runtime/monitored.h"
#include "agent/runtime/program_file.h"
#include "agent/runtime/runner_client.h"
#include "base/fault.h"
#include "base/memory.h"

static int process_describe(struct runtime *runtime, const struct runtime_spec *spec,
                            struct strbuf *out, struct aq_error *err)
{
    (void)runtime;
    (void)err;
    program_file_text(spec, out);
    return 0;
}

static int process_start(struct runtime *runtime, const struct runtime_spec *spec,
                         const struct runtime_events *events, void *data,
                         struct runtime_kernel **ret, struct aq_error *err)
{
    int r = spec->is_described ? 0 : program_file_write(spec, err);

    AQ_FAULT("agent.program.written");
    if (r == 0)
        monitored_open(runtime, spec->directory, spec->kept, events, data, ret);
    return r;
}

/* Files and what lies in a container, code and apps, are in none. */
static int process_exec(struct runtime_kernel *kernel, const struct runner_command_spec *spec,
                        const struct runner_command_ops *ops, void *data,
                        struct runner_command **ret, struct aq_error *err)
{
    if (spec->is_files || spec->in_container)
        return aq_fail_kind(err, ENOTSUP, "no-container",
                            "the session runs as a process of its node; only containers have that");
    return monitored_exec(kernel, spec, ops, data, ret, err);
}

static void process_free_runtime(struct runtime *runtime)
{
    struct monitored_runtime *rt = AQ_CONTAINER_OF(runtime, struct monitored_runtime, super);

    monitored_done(rt);
    free(rt);
}

static const struct runtime_ops process_ops = {
    .name = "process",
    .describe = process_describe,
    .start = process_start,
    .adopt = monitored_adopt,
    .terminate = monitored_terminate,
    .set_lease = monitored_set_lease,
    .signal = monitored_signal,
    .release = monitored_release,
    .attach = monitored_attach,
    .exec = process_exec,
    .feed = monitored_feed,
    .pid = monitored_pid,
    .free = process_free_runtime,
};

int runtime_new_process(uv_loop_t *loop, const char *monitor_path, struct runtime **ret,
                        struct aq_error *err)
{
    struct monitored_runtime *rt = aq_alloc(sizeof(*rt));
    int r = monitored_init(rt, loop, monitor_path, err);

    if (r < 0) {
        free(rt);
        return r;
    }
    rt->super.ops = &process_ops;
    *ret = &rt->super;
    return 0;
}
