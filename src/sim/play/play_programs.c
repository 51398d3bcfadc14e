/* SPDX-License-Identifier: Apache-2.0 */
/* What programs of kernels did: one at a time, on no more than there is. */
#include "sim/play/play_programs.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "model/slot.h"
#include "monitor/protocol.h"
#include "sim/play/play.h"
#include "sim/play/play_runtime.h"

struct play_ran *play_programs_of(struct play *play, const struct uuid *kernel_id)
{
    struct play_ran *p = map_get(&play->programs.by_kernel, kernel_id, sizeof(*kernel_id));

    if (p)
        return p;
    p = aq_alloc(sizeof(*p));
    p->kernel_id = *kernel_id;
    list_init(&p->running_link);
    (void)map_set(&play->programs.by_kernel, kernel_id, sizeof(*kernel_id), p);
    return p;
}

/* How much of a slot an agent has; of its devices each has one. */
static int64_t programs_capacity(const struct play *play, const char *slot)
{
    if (strcmp(slot, "cpu") == 0)
        return PLAY_NODE_CPUS * AMOUNT_ONE;
    if (strcmp(slot, "mem") == 0)
        return PLAY_NODE_MEMORY;
    return slot_name_is_accelerator(slot) ? play->options.gpus * AMOUNT_ONE : INT64_MAX;
}

static void programs_hold_of(struct play *play, const char *key, int64_t amount, int64_t most)
{
    int64_t *sum = map_gets(&play->programs.held, key);

    if (!sum) {
        sum = aq_alloc(sizeof(*sum));
        (void)map_sets(&play->programs.held, key, sum);
    }
    *sum += amount;
    if (*sum > most)
        play_break(play, "ledger", "programs hold %" PRId64 " of %s, which has %" PRId64, *sum, key,
                   most);
}

/* Its devices are taken (sign 1) or free again (-1). */
static void programs_hold(struct play *play, const char *agent_id, const struct alloc_grant *grant,
                          int sign)
{
    for (size_t i = 0; i < grant->count; i++) {
        const struct grant_item *item = &grant->items[i];
        AQ_CLEANUP(aq_freep) char *slot = aq_format("%s %s", agent_id, item->slot_name);
        AQ_CLEANUP(aq_freep) char *device = aq_format("%s %s", slot, item->device_id);

        programs_hold_of(play, slot, sign * item->amount, programs_capacity(play, item->slot_name));
        if (slot_name_is_accelerator(item->slot_name))
            programs_hold_of(play, device, sign * item->amount, AMOUNT_ONE);
    }
}

static void programs_on_change(void *data, const struct play_program *program)
{
    struct play *play = data;
    struct play_ran *p = play_programs_of(play, &program->kernel_id);
    char id[UUID_TEXT_MAX];

    play_faults_on_kernel(play, program->agent_id);
    if (program->is_running) {
        play->report.programs++;
        if (p->running)
            play_break(play, "once",
                       "a second program of kernel %s starts on %s while one runs on %s",
                       uuid_format(&p->kernel_id, id), program->agent_id, p->agent_id);
        p->running++;
        p->starts++;
        p->agent_id = program->agent_id;
        p->doubtful_usec = 0;
        list_remove(&p->running_link);
        list_add(&play->programs.running, &p->running_link);
        alloc_grant_copy(&p->holds, &program->holds);
        programs_hold(play, p->agent_id, &p->holds, 1);
        return;
    }
    if (program->starts && p->running) {
        p->running--;
        programs_hold(play, p->agent_id, &p->holds, -1);
        alloc_grant_done(&p->holds);
    }
    p->reason = program->reason;
    p->code = program->code;
    p->doubtful_usec = 0;
    if (!p->running)
        list_remove(&p->running_link);
}

bool play_ran_exited(const struct play_ran *p, int code)
{
    return p && !p->running && p->reason && strcmp(p->reason, MONITOR_EXITED) == 0
           && p->code == code;
}

void play_programs_begin(struct play *play)
{
    list_init(&play->programs.running);
    play_on_program(programs_on_change, play);
}
