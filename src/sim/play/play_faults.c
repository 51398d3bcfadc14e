/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a run. Faults of a kind come at random moments with a mean rate; each is one
 * struct fault, which ends what it began.
 */
#include "sim/play/play_faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sim/play/play.h"
#include "sim/play/play_agent.h"
#include "sim/play/play_disk.h"
#include "sim/play/play_manager.h"

#define MANY 8.0
#define SYNC_MIN_USEC 50
#define SYNC_MAX_USEC 500
#define SPELL_USEC (1800 * USEC_PER_SEC) /* of faults, and then of calm, in turn */
#define ORDER_USEC 1000                  /* an order reaches its agent within this time */
#define ANSWER_EVENTS 12 /* of the simulation; most requests are answered within as many */

const char *const play_fault_names[PLAY_FAULT_COUNT] = { "crash", "partition", "stall", "disk",
                                                         "clock" };

/* How often, in an hour of simulated time: of the manager, and of each agent. Faults come in spells,
 * twice as often as this says, and stay away as long in between: what heals is seen to heal.
 */
static const struct {
    double of_manager, of_agent;
} fault_rates[PLAY_FAULT_COUNT] = {
    [PLAY_FAULT_CRASH] = { 0.5, 0.05 }, [PLAY_FAULT_PARTITION] = { 0, 0.05 },
    [PLAY_FAULT_STALL] = { 0, 0.05 },   [PLAY_FAULT_DISK] = { 0.4, 0.02 },
    [PLAY_FAULT_CLOCK] = { 0.2, 0.01 },
};

struct fault {
    struct play *play;
    enum play_fault kind;
    struct play_node *node; /* NULL = the manager */
    uint64_t events;        /* that pass before it happens */
};

int play_faults_parse(const char *text, unsigned *ret_faults, double *ret_scale,
                      struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *copy = aq_strdup(text);
    char *rest = NULL;

    *ret_faults = 0;
    *ret_scale = strcmp(text, "many") == 0 ? MANY : 1;
    if (strcmp(text, "none") == 0)
        return 0;
    if (strcmp(text, "some") == 0 || strcmp(text, "many") == 0) {
        *ret_faults = (1u << PLAY_FAULT_COUNT) - 1;
        return 0;
    }
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        int i = 0;

        while (i < PLAY_FAULT_COUNT && strcmp(word, play_fault_names[i]) != 0)
            i++;
        if (i == PLAY_FAULT_COUNT)
            return aq_fail_field(err, EINVAL, "--faults",
                                 "--faults is none, some, many, or a list of crash, partition, "
                                 "stall, disk, clock, not '%.40s'",
                                 word);
        *ret_faults |= 1u << i;
        *ret_scale = MANY;
    }
    return *ret_faults ? 0 : aq_fail_field(err, EINVAL, "--faults", "--faults is empty");
}

/* ---- crashes ---- */

static void fault_on_boot(void *data)
{
    struct fault *fault = data;
    struct play *play = fault->play;

    if (fault->node && fault->node->is_down) {
        play_trace(play, "fault: %s starts", fault->node->id);
        fault->node->is_down = false;
        play_agent_boot(fault->node->agent);
    } else if (!fault->node && !play_cluster_core(play)) {
        play_trace(play, "fault: the manager starts");
        play_manager_boot(play->cluster.manager);
    }
    play_cluster_disturb(play, fault->node);
    play->faults.active--;
    free(fault);
}

static bool fault_crash_manager(struct play *play)
{
    bool is_silent = simuv_chance(0.3);

    if (!play_cluster_core(play))
        return false;
    if (simuv_chance(0.2)) {
        play_trace(play, "fault: the manager is stopped");
        play_manager_stop(play->cluster.manager);
    } else {
        play_trace(play, "fault: the manager crashes%s", is_silent ? " with its machine" : "");
        play_manager_crash(play->cluster.manager, is_silent);
    }
    play->report.manager_crashes++;
    return true;
}

static bool fault_crash_node(struct play *play, struct play_node *node)
{
    bool with_machine = simuv_chance(0.3), is_silent = simuv_chance(0.3);

    if (node->is_down)
        return false;
    node->is_down = true;
    if (with_machine) {
        play_trace(play, "fault: the machine %s crashes", node->id);
        play_agent_crash_machine(node->agent);
        play->report.machine_crashes++;
    } else {
        play_trace(play, "fault: the agent of %s crashes", node->id);
        play_agent_crash(node->agent, is_silent);
        play->report.agent_crashes++;
    }
    return true;
}

static void fault_crash(struct fault *fault)
{
    struct play *play = fault->play;

    if (!(fault->node ? fault_crash_node(play, fault->node) : fault_crash_manager(play))) {
        play->faults.active--;
        free(fault);
        return;
    }
    /* Most are back at once; some are away for longer than agents and kernels are waited for. */
    simuv_at(simuv_now_usec() + play_random_usec(simuv_chance(0.8) ? 10 : 240), fault_on_boot,
             fault);
}

/* Half of the crashes come at busy moments, which are short: while a request is under way, or just
 * after a kernel has changed.
 */
static void fault_crash_or_wait(struct fault *fault)
{
    struct play *play = fault->play;
    struct fault **armed = fault->node ? &play->faults.armed_node : &play->faults.armed;

    if (*armed || play->faults.is_over || simuv_chance(0.5))
        fault_crash(fault);
    else
        *armed = fault;
}

/* An answer takes events, and no time: hosts compute in no time. */
static void fault_on_step(void *data)
{
    struct fault *fault = data;

    if (fault->events-- == 0)
        fault_crash(fault);
    else
        simuv_at(simuv_now_usec(), fault_on_step, fault);
}

void play_faults_on_request(struct play *play)
{
    struct fault *fault = AQ_TAKE(play->faults.armed);

    if (!fault)
        return;
    fault->events = simuv_random_below(ANSWER_EVENTS);
    simuv_at(simuv_now_usec(), fault_on_step, fault);
}

/* ---- the network ---- */

static void fault_on_path_mended(void *data)
{
    struct fault *fault = data;
    struct play *play = fault->play;
    static const struct simuv_path whole = { .latency_min_usec = 50, .latency_max_usec = 300 };

    play_trace(play, "fault: the network of %s is whole", fault->node->id);
    simuv_set_path(fault->node->host, play->cluster.manager_host, &whole);
    simuv_set_path(play->cluster.manager_host, fault->node->host, &whole);
    play_cluster_disturb(play, fault->node);
    play->faults.active--;
    free(fault);
}

static void fault_break_path(struct fault *fault)
{
    struct play *play = fault->play;
    uint64_t ways = 1 + simuv_random_below(3); /* bit 0: from the agent, bit 1: to it */
    struct simuv_path path = { .latency_min_usec = 50, .latency_max_usec = 300, .is_cut = true };

    if (fault->kind == PLAY_FAULT_PARTITION) {
        play->report.partitions++;
        play_trace(play, "fault: the network of %s is cut%s", fault->node->id,
                   ways == 1   ? " towards the manager"
                   : ways == 2 ? " from the manager"
                               : "");
    } else {
        ways = 3;
        path = (struct simuv_path){ .latency_min_usec = 1000,
                                    .latency_max_usec = play_random_usec(0.5) + 1000,
                                    .stall = 0.2,
                                    .reset = simuv_chance(0.5) ? 0.01 : 0 };
        play->report.stalls++;
        play_trace(play, "fault: the network of %s is slow", fault->node->id);
    }
    if (ways & 1)
        simuv_set_path(fault->node->host, play->cluster.manager_host, &path);
    if (ways & 2)
        simuv_set_path(play->cluster.manager_host, fault->node->host, &path);
    simuv_at(simuv_now_usec() + play_random_usec(simuv_chance(0.7) ? 40 : 300),
             fault_on_path_mended, fault);
}

static void fault_on_armed(void *data)
{
    struct fault *fault = data;

    if (fault->kind == PLAY_FAULT_CRASH)
        fault_crash(fault);
    else
        fault_break_path(fault);
}

void play_faults_on_kernel(struct play *play, const char *agent_id)
{
    struct fault *fault = play->faults.armed_node;

    if (!fault || !simuv_chance(0.2)) /* not always at the first change */
        return;
    play->faults.armed_node = NULL;
    fault->node = play_cluster_find(play, agent_id);
    simuv_at(simuv_now_usec() + (int64_t)simuv_random_below(ORDER_USEC), fault_on_armed, fault);
}

/* ---- the manager's disk, and clocks ---- */

static simuv_host fault_host(const struct fault *fault)
{
    return fault->node ? fault->node->host : fault->play->cluster.manager_host;
}

static const char *fault_where(const struct fault *fault)
{
    return fault->node ? fault->node->id : "the manager";
}

static void fault_on_disk_mended(void *data)
{
    struct fault *fault = data;

    play_trace(fault->play, "fault: the disk of %s is well", fault_where(fault));
    if (!fault->node)
        play_disk_set_faults(fault_host(fault), 0, 0);
    simuv_set_sync_time(fault_host(fault), SYNC_MIN_USEC, SYNC_MAX_USEC);
    play_cluster_disturb(fault->play, fault->node);
    fault->play->faults.active--;
    free(fault);
}

/* Disks of agents are only slow: their files are real. */
static void fault_break_disk(struct fault *fault)
{
    bool is_slow = fault->node || simuv_chance(0.4), is_full = simuv_chance(0.4);
    double chance = simuv_chance(0.3) ? 1 : 0.02;

    fault->play->report.disk_faults++;
    play_trace(fault->play, "fault: the disk of %s %s", fault_where(fault),
               is_slow   ? "is slow"
               : is_full ? "is full"
                         : "has errors");
    if (is_slow)
        simuv_set_sync_time(fault_host(fault), 10 * SYNC_MAX_USEC,
                            10 * SYNC_MAX_USEC + play_random_usec(1));
    else
        play_disk_set_faults(fault_host(fault), is_full ? 0 : chance, is_full ? chance : 0);
    simuv_at(simuv_now_usec() + play_random_usec(is_slow ? 120 : 30), fault_on_disk_mended, fault);
}

static void fault_move_clock(struct fault *fault)
{
    struct play *play = fault->play;
    int64_t most = simuv_chance(0.5) ? 5 : 3600;
    int64_t offset = (int64_t)simuv_random_below((uint64_t)(2 * most * USEC_PER_SEC))
                     - most * USEC_PER_SEC;

    play->report.clock_jumps++;
    play_trace(play, "fault: the clock of %s is %.1f s off", fault_where(fault),
               (double)offset / USEC_PER_SEC);
    simuv_set_wall_offset(fault_host(fault), offset);
    play->faults.active--;
    free(fault);
}

/* ---- when ---- */

static void fault_begin(struct fault *fault)
{
    fault->play->faults.active++;
    play_cluster_disturb(fault->play, fault->node);
    switch (fault->kind) {
    case PLAY_FAULT_CRASH:
        fault_crash_or_wait(fault);
        break;
    case PLAY_FAULT_PARTITION:
    case PLAY_FAULT_STALL:
        if (fault->play->faults.armed_node || simuv_chance(0.5))
            fault_break_path(fault);
        else
            fault->play->faults.armed_node = fault;
        break;
    case PLAY_FAULT_DISK:
        fault_break_disk(fault);
        break;
    case PLAY_FAULT_CLOCK:
    case PLAY_FAULT_COUNT:
        fault_move_clock(fault);
        break;
    }
}

/* The next fault of a kind; its event stays with one struct fault as long as the run. */
static double fault_rate(const struct play *play, enum play_fault kind)
{
    return 2 * play->options.fault_scale
           * (fault_rates[kind].of_manager + fault_rates[kind].of_agent * play->cluster.node_count);
}

static void fault_on_time(void *data)
{
    const struct fault *source = data;
    struct play *play = source->play;
    double of_manager = 2 * play->options.fault_scale * fault_rates[source->kind].of_manager;
    double of_all = fault_rate(play, source->kind);
    struct fault *fault;

    if (play->faults.is_over)
        return;
    if ((simuv_now_usec() - play->faults.begun_usec) / SPELL_USEC % 2) {
        simuv_at(simuv_now_usec() + SPELL_USEC, fault_on_time, data);
        return;
    }
    fault = aq_alloc(sizeof(*fault));
    *fault = *source;
    if (!simuv_chance(of_manager / of_all))
        fault->node = &play->cluster.nodes[simuv_random_below((uint64_t)play->cluster.node_count)];
    fault_begin(fault);
    simuv_at(simuv_now_usec() + play_random_usec(3600 / of_all), fault_on_time, data);
}

void play_faults_begin(struct play *play)
{
    play->faults.begun_usec = simuv_now_usec();
    for (int kind = 0; kind < PLAY_FAULT_COUNT; kind++) {
        struct fault *source;

        if (!(play->options.faults & 1u << kind))
            continue;
        source = aq_alloc(sizeof(*source));
        *source = (struct fault){ .play = play, .kind = (enum play_fault)kind };
        simuv_at(simuv_now_usec() + play_random_usec(3600 / fault_rate(play, source->kind)),
                 fault_on_time, source);
    }
}

void play_faults_stop(struct play *play)
{
    play->faults.is_over = true;
    play_faults_on_request(play);
    if (play->faults.armed_node)
        fault_on_armed(AQ_TAKE(play->faults.armed_node));
}
