/* SPDX-License-Identifier: Apache-2.0 */
/* Every option of sbatch(1), and what becomes of it. */
#include "cli/submit/slurm_table.h"

#include <string.h>

#include "model/session_spec.h"

#define AMOUNT(member) NULL, offsetof(struct slurm_amounts, member)
#define PLACE(member) offsetof(struct slurm_place, member)
#define CLUSTER "--profile chooses the cluster"
#define MAIL "no mail is sent; aliquot session wait SESSION, then mail"
#define OUTPUT \
    "the output is kept with the session: aliquot logs SESSION; #ALIQUOT --stdout FILE writes a file"
#define NODE "there are no features of nodes; --resource-group chooses among agents"
#define AGENTS "administrators name agents with #ALIQUOT --agent; others choose a --resource-group"
#define BINDING "cores and GPUs are bound to the session by its agent"
#define MPI "nothing starts tasks; the script does, with the cores of its session"
#define POLICY "limits come with the keypair's policy and the project"

/* clang-format off */
const struct slurm_option slurm_table[] = {
    /* what it needs */
    { "cpus-per-task",     'c', SLURM_ONE,   SLURM_COUNT, AMOUNT(cpus_per_task) },
    { "ntasks",            'n', SLURM_ONE,   SLURM_COUNT, AMOUNT(tasks) },
    { "ntasks-per-node",    0,  SLURM_ONE,   SLURM_COUNT, AMOUNT(tasks_per_node) },
    { "tasks-per-node",     0,  SLURM_ONE,   SLURM_COUNT, AMOUNT(tasks_per_node) },
    { "mincpus",            0,  SLURM_ONE,   SLURM_COUNT, AMOUNT(min_cpus) },
    { "nodes",             'N', SLURM_ONE,   SLURM_NODES, AMOUNT(nodes) },
    { "mem",                0,  SLURM_ONE,   SLURM_SIZE, AMOUNT(mem_bytes) },
    { "mem-per-cpu",        0,  SLURM_ONE,   SLURM_SIZE, AMOUNT(mem_per_cpu_bytes) },
    { "mem-per-gpu",        0,  SLURM_ONE,   SLURM_SIZE, AMOUNT(mem_per_gpu_bytes) },
    { "gpus",              'G', SLURM_ONE,   SLURM_GPUS, AMOUNT(gpus) },
    { "gpus-per-node",      0,  SLURM_ONE,   SLURM_GPUS, AMOUNT(gpus_per_node) },
    { "gpus-per-task",      0,  SLURM_ONE,   SLURM_GPUS, AMOUNT(gpus_per_task) },
    { "cpus-per-gpu",       0,  SLURM_ONE,   SLURM_COUNT, AMOUNT(cpus_per_gpu) },
    { "gres",               0,  SLURM_ONE,   SLURM_GRES, AMOUNT(gres_gpus) },
    { "tres-per-task",      0,  SLURM_ONE,   SLURM_TRES, NULL, 0 },
    { "time",              't', SLURM_ONE,   SLURM_TIME, NULL, 0 },
    { "time-min",           0,  SLURM_ONE,   SLURM_NOTE, "the limit is that of --time", 0 },
    { "ntasks-per-core",    0,  SLURM_ONE,   SLURM_NOTE, MPI, 0 },
    { "ntasks-per-gpu",     0,  SLURM_ONE,   SLURM_NOTE, MPI, 0 },
    { "ntasks-per-socket",  0,  SLURM_ONE,   SLURM_NOTE, MPI, 0 },
    { "gpus-per-socket",    0,  SLURM_ONE,   SLURM_NOTE, "ask for --gpus-per-node", 0 },
    { "tmp",                0,  SLURM_ONE,   SLURM_NOTE, "the disk is not counted", 0 },
    { "licenses",          'L', SLURM_ONE,   SLURM_REFUSE, "there are no licenses", 0 },

    /* which session it is */
    { "job-name",          'J', SLURM_ONE,   SLURM_NAME, NULL, 0 },
    { "comment",            0,  SLURM_ONE,   SLURM_COMMENT, NULL, 0 },
    { "account",           'A', SLURM_ONE,   SLURM_SAME, "--group", 0 },
    { "partition",         'p', SLURM_ONE,   SLURM_PARTITION, NULL, 0 },
    { "array",             'a', SLURM_ONE,   SLURM_ARRAY, NULL, 0 },
    { "qos",               'q', SLURM_ONE,   SLURM_NOTE, POLICY, 0 },
    { "wckey",              0,  SLURM_ONE,   SLURM_NOTE, "use --comment", 0 },
    { "reservation",        0,  SLURM_ONE,   SLURM_SAME, "--reservation", 0 },
    { "mcs-label",          0,  SLURM_ONE,   SLURM_NOTE, POLICY, 0 },
    { "uid",                0,  SLURM_ONE,   SLURM_NOTE, "administrators have --owner", 0 },
    { "gid",                0,  SLURM_ONE,   SLURM_NOTE, "use --account", 0 },

    /* when */
    { "begin",             'b', SLURM_ONE,   SLURM_BEGIN, NULL, 0 },
    { "dependency",        'd', SLURM_ONE,   SLURM_AFTER, NULL, 0 },
    { "hold",              'H', SLURM_NONE,  SLURM_REFUSE,
      "sessions are not held; --begin=now+1hour starts one later", 0 },
    { "deadline",           0,  SLURM_ONE,   SLURM_NOTE, "--time ends the program", 0 },
    { "priority",           0,  SLURM_ONE,   SLURM_NOTE, "here it is 0 to 100: #ALIQUOT --priority", 0 },
    { "nice",               0,  SLURM_MAYBE, SLURM_NOTE, "use #ALIQUOT --priority 0 to 9", 0 },
    { "requeue",            0,  SLURM_NONE,  SLURM_REQUEUE, "node-lost,preempted", 0 },
    { "no-requeue",         0,  SLURM_NONE,  SLURM_NO_REQUEUE, SESSION_ON_NODE_LOSS_END, 0 },
    { "kill-on-invalid-dep", 0, SLURM_ONE,   SLURM_NOTE,
      "a session whose dependency fails is cancelled", 0 },
    { "wait",              'W', SLURM_NONE,  SLURM_FLAG, "--wait", 0 },
    { "parsable",           0,  SLURM_NONE,  SLURM_FLAG, "--parsable", 0 },
    { "test-only",          0,  SLURM_NONE,  SLURM_REFUSE, "use aliquot run --dry-run", 0 },
    { "quiet",             'Q', SLURM_NONE,  SLURM_NOTHING, NULL, 0 },
    { "verbose",           'v', SLURM_NONE,  SLURM_NOTHING, NULL, 0 },
    { "version",           'V', SLURM_NONE,  SLURM_NOTHING, NULL, 0 },
    { "help",              'h', SLURM_NONE,  SLURM_NOTHING, NULL, 0 },
    { "usage",              0,  SLURM_NONE,  SLURM_NOTHING, NULL, 0 },
    { "immediate",         'I', SLURM_MAYBE, SLURM_NOTHING, NULL, 0 },
    { "wait-all-nodes",     0,  SLURM_ONE,   SLURM_NOTHING, NULL, 0 },
    { "external",           0,  SLURM_NONE,  SLURM_REFUSE, "nothing outside of a session is counted", 0 },
    { "extra",              0,  SLURM_ONE,   SLURM_NOTE, "use --comment", 0 },
    { "stepmgr",            0,  SLURM_NONE,  SLURM_NOTHING, NULL, 0 },
    { "oom-kill-step",      0,  SLURM_MAYBE, SLURM_NOTE, "a program that is killed for memory ends the session", 0 },

    /* where */
    { "constraint",        'C', SLURM_ONE,   SLURM_NOTE, NODE, 0 },
    { "cluster-constraint", 0,  SLURM_ONE,   SLURM_NOTE, NODE, 0 },
    { "prefer",             0,  SLURM_ONE,   SLURM_NOTE, NODE, 0 },
    { "nodelist",          'w', SLURM_ONE,   SLURM_NOTE, AGENTS, 0 },
    { "nodefile",          'F', SLURM_ONE,   SLURM_NOTE, AGENTS, 0 },
    { "exclude",           'x', SLURM_ONE,   SLURM_NOTE, AGENTS, 0 },
    { "clusters",          'M', SLURM_ONE,   SLURM_NOTE, CLUSTER, 0 },
    { "cluster",            0,  SLURM_ONE,   SLURM_NOTE, CLUSTER, 0 },
    { "segment",            0,  SLURM_ONE,   SLURM_NOTE, "use #ALIQUOT --pack", 0 },
    { "consolidate-segments", 0, SLURM_NONE, SLURM_NOTE, "use #ALIQUOT --pack", 0 },
    { "spread-segments",    0,  SLURM_NONE,  SLURM_NOTE, "use #ALIQUOT --spread", 0 },
    { "resv-ports",         0,  SLURM_MAYBE, SLURM_NOTE, "use #ALIQUOT --port", 0 },
    { "exclusive",          0,  SLURM_MAYBE, SLURM_NOTE,
      "cores, memory and GPUs belong to one session; ask for as many as it needs", 0 },
    { "oversubscribe",     's', SLURM_NONE,  SLURM_NOTE, "agents say what they offer more than once", 0 },
    { "overcommit",        'O', SLURM_NONE,  SLURM_NOTE, "agents say what they offer more than once", 0 },
    { "contiguous",         0,  SLURM_NONE,  SLURM_NOTE, "use #ALIQUOT --pack", 0 },
    { "switches",           0,  SLURM_ONE,   SLURM_NOTE, "use #ALIQUOT --pack", 0 },
    { "spread-job",         0,  SLURM_NONE,  SLURM_NOTE, "use #ALIQUOT --spread", 0 },
    { "use-min-nodes",      0,  SLURM_NONE,  SLURM_NOTHING, NULL, 0 },
    { "no-kill",           'k', SLURM_MAYBE, SLURM_NOTE, "a session ends with its kernels", 0 },

    /* what is around it */
    { "output",            'o', SLURM_ONE,   SLURM_PLACE, OUTPUT, PLACE(output) },
    { "error",             'e', SLURM_ONE,   SLURM_PLACE, OUTPUT, PLACE(error) },
    { "input",             'i', SLURM_ONE,   SLURM_PLACE, "the script's input is empty; aliquot run <FILE",
      PLACE(input) },
    { "open-mode",          0,  SLURM_ONE,   SLURM_PLACE, OUTPUT, PLACE(open_mode) },
    { "export",             0,  SLURM_ONE,   SLURM_EXPORT, NULL, 0 },
    { "export-file",        0,  SLURM_ONE,   SLURM_NOTE, "use #ALIQUOT --env", 0 },
    { "get-user-env",       0,  SLURM_MAYBE, SLURM_NOTE, "the environment is the image's; #ALIQUOT --env", 0 },
    { "propagate",          0,  SLURM_MAYBE, SLURM_NOTE, "limits are those of the agent", 0 },
    { "chdir",             'D', SLURM_ONE,   SLURM_PLACE,
      "the script starts in the session's own directory; use cd in the script", PLACE(directory) },
    { "container",          0,  SLURM_ONE,   SLURM_NOTE, "use #ALIQUOT --image", 0 },
    { "container-id",       0,  SLURM_ONE,   SLURM_NOTE, "use #ALIQUOT --image", 0 },
    { "mail-type",          0,  SLURM_ONE,   SLURM_NOTE, MAIL, 0 },
    { "mail-user",          0,  SLURM_ONE,   SLURM_NOTE, MAIL, 0 },
    { "signal",             0,  SLURM_ONE,   SLURM_SAME, "--signal", 0 },
    { "x11",                0,  SLURM_MAYBE, SLURM_NOTE, "there is no display", 0 },
    { "profile",            0,  SLURM_ONE,   SLURM_NOTE, "use aliquot session stats", 0 },
    { "acctg-freq",         0,  SLURM_ONE,   SLURM_NOTE, "use aliquot session stats", 0 },
    { "bb",                 0,  SLURM_ONE,   SLURM_REFUSE, "there are no burst buffers", 0 },
    { "bbf",                0,  SLURM_ONE,   SLURM_REFUSE, "there are no burst buffers", 0 },
    { "wrap",               0,  SLURM_ONE,   SLURM_WRAP, "use aliquot run --detach 'COMMAND'",
      PLACE(wrap) },

    /* how tasks lie on cores */
    { "cores-per-socket",   0,  SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "sockets-per-node",   0,  SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "threads-per-core",   0,  SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "extra-node-info",   'B', SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "core-spec",         'S', SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "thread-spec",        0,  SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "hint",               0,  SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "distribution",      'm', SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "mem-bind",           0,  SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "gpu-bind",           0,  SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "tres-bind",          0,  SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "gres-flags",         0,  SLURM_ONE,   SLURM_NOTE, BINDING, 0 },
    { "cpu-freq",           0,  SLURM_ONE,   SLURM_NOTE, "clocks are not set", 0 },
    { "gpu-freq",           0,  SLURM_ONE,   SLURM_NOTE, "clocks are not set", 0 },
    { "power",              0,  SLURM_ONE,   SLURM_NOTE, "clocks are not set", 0 },
    { "network",            0,  SLURM_ONE,   SLURM_NOTE, "every container session has a network of its own", 0 },
    { "reboot",             0,  SLURM_NONE,  SLURM_NOTE, "nodes are not rebooted", 0 },
    { "delay-boot",         0,  SLURM_ONE,   SLURM_NOTE, "nodes are not rebooted", 0 },
    { "ignore-pbs",         0,  SLURM_NONE,  SLURM_NOTHING, NULL, 0 },
    { .name = NULL },
};
/* clang-format on */

/* Two names of one option. */
static bool slurm_is_same(const struct slurm_option *one, const struct slurm_option *other)
{
    return one->value == other->value && one->meaning == other->meaning && one->text == other->text
           && one->offset == other->offset;
}

const struct slurm_option *slurm_find(const char *name, size_t len, struct strbuf *several)
{
    const struct slurm_option *found = NULL;
    bool is_unique = true;

    for (const struct slurm_option *o = slurm_table; o->name; o++) {
        if (len == 0 || strncmp(o->name, name, len) != 0)
            continue;
        if (!o->name[len])
            return o;
        is_unique = is_unique && (!found || slurm_is_same(found, o));
        found = o;
    }
    for (const struct slurm_option *o = slurm_table; !is_unique && o->name; o++)
        if (strncmp(o->name, name, len) == 0)
            strbuf_addf(several, "%s--%s", several->len ? ", " : "", o->name);
    return is_unique ? found : NULL;
}

const struct slurm_option *slurm_find_letter(char letter)
{
    for (const struct slurm_option *o = slurm_table; o->name; o++)
        if (o->letter && o->letter == letter)
            return o;
    return NULL;
}
