/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: what is read holds together, what is not says where it is wrong. */
#include <stdint.h>
#include <string.h>

#include "sim/csv.h"
#include "sim/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct trace_nodes nodes;
    struct trace_tasks tasks;
    struct aq_error err = { 0 };

    arena.limit = 64 << 20;
    if (trace_read_nodes((const char *)data, size, &arena, &nodes, &err) < 0)
        check(err.text[0]);
    else
        for (size_t i = 0; i < nodes.count; i++)
            check(nodes.items[i].name && nodes.items[i].gpus <= 1024
                  && nodes.items[i].cpu_milli >= 0);
    err = (struct aq_error){ 0 };
    if (trace_read_tasks((const char *)data, size, &arena, &tasks, &err) < 0)
        check(err.text[0]);
    else
        for (size_t i = 0; i < tasks.count; i++) {
            const struct trace_task *t = &tasks.items[i];

            check(t->gpus == 0 ? t->gpu_milli == 0 : t->gpu_milli >= 1 && t->gpu_milli <= 1000);
            check(t->gpus < 2 || t->gpu_milli == 1000);
            check(t->duration_sec >= -1 && t->model_count <= TRACE_MODELS_MAX);
        }
    return 0;
}
