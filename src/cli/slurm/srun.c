/* SPDX-License-Identifier: Apache-2.0 */
/* srun: inside a job its command as tasks of the job, outside "aliquot run". */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/session/session.h"
#include "cli/slurm/slurm.h"
#include "cli/submit/slurm_options.h"
#include "cli/submit/slurm_value.h"
#include "cli/submit/submit.h"
#include "cli/verbs.h"

#define TASKS_MAX 1024

/* Options that sbatch does not have; none changes what happens here. */
static const struct {
    const char *name;
    char letter;
    bool has_value;
} srun_only[] = {
    { "cpu-bind", 0, true },
    { "cpu_bind", 0, true },
    { "mpi", 0, true },
    { "jobid", 0, true },
    { "overlap", 0, false },
    { "exact", 0, false },
    { "kill-on-bad-exit", 'K', false },
    { "unbuffered", 'u', false },
    { "preserve-env", 'E', false },
    { "disable-status", 'X', false },
    { "epilog", 0, true },
    { "prolog", 0, true },
    { "task-epilog", 0, true },
    { "task-prolog", 0, true },
    { "het-group", 0, true },
    { "interactive", 0, false },
    { "relative", 'r', true },
    { "threads", 'T', true },
};

/* How many words such an option is, 0 = it is none. */
static int srun_skip_own(int argc, char **argv)
{
    const char *word = argv[0];
    size_t len = strcspn(word, "=");

    for (size_t i = 0; i < AQ_COUNT(srun_only); i++) {
        bool is_long = strncmp(word, "--", 2) == 0 && strlen(srun_only[i].name) == len - 2
                       && strncmp(word + 2, srun_only[i].name, len - 2) == 0;
        bool is_short = srun_only[i].letter && word[0] == '-' && word[1] == srun_only[i].letter;
        bool has_rest = is_long ? word[len] == '=' : word[2] != '\0';

        if (is_long || (is_short && (srun_only[i].has_value || !has_rest)))
            return srun_only[i].has_value && !has_rest && argc > 1 ? 2 : 1;
    }
    return 0;
}

/* Leave in argv what sbatch has, too, and the command: *ret_options words, then the rest. */
static int srun_split(int *argc, char **argv, struct slurm_options *options, int *ret_options,
                      struct aq_error *err)
{
    int kept = 0, at = 0;

    while (at < *argc && argv[at][0] == '-' && argv[at][1] && strcmp(argv[at], "--") != 0) {
        int skipped = srun_skip_own(*argc - at, argv + at), count = 0, r;

        at += skipped;
        if (skipped)
            continue;
        r = slurm_option_words(*argc - at, argv + at, options, &count, err);
        if (r < 0)
            return r;
        memmove(argv + kept, argv + at, (size_t)count * sizeof(*argv));
        kept += count;
        at += count;
    }
    at += at < *argc && strcmp(argv[at], "--") == 0;
    memmove(argv + kept, argv + at, (size_t)(*argc - at) * sizeof(*argv));
    *argc = kept + *argc - at;
    *ret_options = kept;
    argv[*argc] = NULL;
    return 0;
}

/* ---- inside a job ---- */

static int64_t srun_variable(const char *name)
{
    const char *text = getenv(name);
    int64_t value = 0;

    return text && slurm_count_parse(text, &value) == 0 ? value : 0;
}

/* On this node: each node of the job runs the script, and so its srun. */
static int64_t srun_count_tasks(const struct slurm_amounts *amounts)
{
    int64_t nodes = AQ_MAX(srun_variable("SLURM_JOB_NUM_NODES"), 1);
    int64_t tasks = amounts->tasks ? amounts->tasks : srun_variable("SLURM_NTASKS");

    if (amounts->tasks_per_node)
        return amounts->tasks_per_node;
    return AQ_MAX((tasks + nodes - 1) / nodes, 1);
}

static void srun_set_number(const char *name, int64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    (void)setenv(name, text, 1);
}

static void srun_become_task(int64_t index, int64_t count, char **argv)
{
    int64_t node = srun_variable("SLURM_NODEID");
    int64_t nodes = AQ_MAX(srun_variable("SLURM_JOB_NUM_NODES"), 1);

    srun_set_number("SLURM_PROCID", node * count + index);
    srun_set_number("SLURM_LOCALID", index);
    srun_set_number("SLURM_NTASKS", count * nodes);
    srun_set_number("SLURM_NPROCS", count * nodes);
    srun_set_number("SLURM_STEP_ID", 0);
    srun_set_number("SLURM_STEPID", 0);
    (void)execvp(argv[0], argv);
    (void)fprintf(stderr, "srun: error: cannot execute %s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? EXIT_NO_SUCH_PROGRAM : EXIT_CANNOT_EXECUTE);
}

static int srun_wait(pid_t *pids, size_t count)
{
    int worst = 0;

    for (size_t i = 0; i < count; i++) {
        int status = 0;

        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            continue;
        worst = AQ_MAX(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return worst;
}

static int srun_run_tasks(int64_t count, char **argv, struct aq_error *err)
{
    pid_t pids[TASKS_MAX];

    if (count > TASKS_MAX)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--ntasks: at most %d tasks on a node",
                            TASKS_MAX);
    if (count == 1)
        srun_become_task(0, 1, argv);
    (void)fflush(NULL);
    for (int64_t i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] < 0) {
            int failed = aq_fail_errno(err, "start a task");

            while (i-- > 0)
                (void)kill(pids[i], SIGTERM);
            return failed;
        }
        if (pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
            srun_become_task(i, count, argv);
        }
    }
    return srun_wait(pids, (size_t)count);
}

/* ---- outside ---- */

/* The words of sbatch as ours, then the command, as "aliquot run" has them. */
static int srun_run_session(struct cli *cli, int options, int argc, char **argv,
                            struct aq_error *err)
{
    struct batch_line line = { .is_slurm = true, .argc = options, .argv = argv };
    const struct batch_script script = { .lines = &line, .count = 1 };
    AQ_CLEANUP(slurm_options_done) struct slurm_options given = { .is_sbatch = true };
    AQ_CLEANUP(aq_freep) void *opts = aq_alloc(verb_run.opts_size + 1);
    const struct cli_opt_set set = { verb_run.opts, opts };
    char gpus[SUBMIT_GPUS_MAX];
    int count = 0, r = slurm_options_translate(&script, false, &given, err);

    if (r == 0 && given.gpus) {
        r = submit_name_gpus(cli, given.gpus, gpus, err);
        cli_list_add(&given.words, "--resource");
        cli_list_add(&given.words, gpus);
    }
    if (r == 0)
        r = cli_opts_parse(&set, 1, true, (int)given.words.count, (char **)given.words.items,
                           &count, err);
    cli->verb = &verb_run; /* its options are those that a refusal names */
    if (r == 0)
        r = verb_run.run(cli, opts, argc, argv + options, err);
    cli->verb = &verb_slurm_srun;
    cli_opts_done(verb_run.opts, opts);
    return r;
}

static int srun_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(slurm_options_done) struct slurm_options given = { .is_sbatch = true };
    int options = 0, r;

    (void)data;
    if (argc == 1 && (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "-V") == 0))
        return slurm_print_version(err);
    if (argc == 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0))
        return slurm_print_help(&verb_slurm_srun, err);
    r = srun_split(&argc, argv, &given, &options, err);
    if (r < 0)
        return r;
    if (options == argc)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "No command given to execute");
    if (getenv("SLURM_JOB_ID"))
        return srun_run_tasks(srun_count_tasks(&given.amounts), argv + options, err);
    r = cli_config_load(&cli->config, NULL, NULL, err);
    return r < 0 ? r : srun_run_session(cli, options, argc - options, argv, err);
}

const struct cli_verb verb_slurm_srun = {
    .name = "slurm srun",
    .args = "COMMAND [ARG]...",
    .summary = "Run a command in a job, or as one, as Slurm's srun does",
    .details = "Inside a job it runs the command as many times as there are tasks on the node.\n"
               "Outside it starts a session for it and stays with it: see aliquot-run(1).",
    .examples = "srun -n 2 hostname\nsrun -c 4 --mem=8G python train.py",
    .max_args = -1,
    .flags = SLURM_VERB_FLAGS | CLI_NO_CONFIG,
    .run = srun_run,
};
