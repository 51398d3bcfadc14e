/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-agent - runs the kernels of one node */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/doctor/doctor.h"
#include "agent/identity.h"
#include "agent/runtime/oci.h"
#include "agent/runtime/spawn.h"
#include "base/clock.h"
#include "base/installed.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/notify.h"

#define EXIT_USAGE 2
#define TOKEN_LINE_MAX 512
#define EXIT_REFUSED 3 /* fenced, revoked: restarting would not help */

static const char usage[] =
    "usage: aliquot-agent [--config FILE] [--state FOLDER] [--shared] [--dev]\n"
    "                     [--volume STORAGE:VOLUME=PATH] [run]\n"
    "       aliquot-agent [--config FILE] [--state FOLDER] join MANAGER[:PORT] TOKEN\n"
    "       aliquot-agent [--config FILE] [--state FOLDER] end\n"
    "       aliquot-agent [--config FILE] [--state FOLDER] check [PART...]\n"
    "       aliquot-agent --print-config | --version | --help\n"
    "\n"
    "join gets this node's certificate with a one-time token (aliquot agent token); -\n"
    "reads it from standard input, where other users of the machine do not see it.\n"
    "run (the default) connects to the manager and runs what it orders; kernels\n"
    "outlive the agent and are found again when it starts. With --shared other agents\n"
    "of this machine may offer the same, unless the settings have an allocation-mode.\n"
    "With --dev, for development, root's agent runs sessions as processes, too.\n"
    "--volume is one more of the settings' volumes, unless it is among them.\n"
    "end ends what runs here, before the agent is removed from this machine.\n"
    "check is what 'aliquot doctor' runs: it looks whether the machine has what an agent\n"
    "needs and writes a JSON object a line; parts are agent, containers and gpu.\n";

struct agent_options {
    const char *config, *state, *volume, *verb;
    unsigned flags; /* SETTINGS_* */
    char **args;
    int arg_count;
};

struct agent_program {
    uv_loop_t loop;
    uv_signal_t terminated, interrupted;
    uv_timer_t watchdog;
    const struct settings *settings;
    struct agent_daemon *agent;
    int status;
};

static void main_stop(struct agent_program *program)
{
    notify_send("STOPPING=1");
    agent_free(AQ_TAKE(program->agent));
    uv_close((uv_handle_t *)&program->terminated, NULL);
    uv_close((uv_handle_t *)&program->interrupted, NULL);
    uv_close((uv_handle_t *)&program->watchdog, NULL);
}

static void main_on_signal(uv_signal_t *handle, int signum)
{
    struct agent_program *program = handle->data;

    if (uv_is_closing((uv_handle_t *)handle))
        return;
    log_info("signal %d: the agent stops, its sessions keep running", signum);
    main_stop(program);
}

static void main_on_kernels_ended(void *data, size_t left)
{
    struct agent_program *program = data;

    if (left) {
        log_error("%zu kernels of %s/kernels have not ended", left, program->settings->state);
        program->status = EXIT_FAILURE;
    }
    main_stop(program);
}

static void main_on_ready(void *data)
{
    (void)data;
    notify_send("READY=1");
}

static void main_on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify_send("WATCHDOG=1");
}

static void main_on_rejected(void *data, const char *kind, const char *text)
{
    struct agent_program *program = data;

    log_error("the manager refuses this agent (%s): %s", kind, text);
    program->status = EXIT_REFUSED;
    main_stop(program);
}

/* A program of ours: where the settings say, else of this installation. */
static char *main_find_program(const char *configured, const char *name)
{
    char *found = configured ? aq_strdup(configured) : installed_find(name);

    return found ? found : aq_strdup(name);
}

static int main_run_checks(const struct agent_options *options, const struct settings *settings,
                           struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *monitor = main_find_program(settings->monitor, "aliquot-monitor");
    AQ_CLEANUP(aq_freep) char *runner = main_find_program(settings->runner, "aliquot-runner");

    return doctor_run(settings, monitor, runner, options->args, options->arg_count, err);
}

static int main_run_loop(struct agent_program *program, bool ends,
                         const struct agent_runtimes *runtimes, struct aq_error *err)
{
    static const struct agent_events events = { .on_ready = main_on_ready,
                                                .on_rejected = main_on_rejected };
    uint64_t watchdog_msec = (uint64_t)(notify_watchdog_usec() / USEC_PER_MSEC);
    int r = agent_new(&program->loop, program->settings, runtimes, &events, program,
                      &program->agent, err);

    program->terminated.data = program->interrupted.data = program;
    (void)uv_signal_init(&program->loop, &program->terminated);
    (void)uv_signal_init(&program->loop, &program->interrupted);
    (void)uv_timer_init(&program->loop, &program->watchdog);
    if (r < 0) {
        main_stop(program);
    } else {
        (void)uv_signal_start(&program->terminated, main_on_signal, SIGTERM);
        (void)uv_signal_start(&program->interrupted, main_on_signal, SIGINT);
        if (watchdog_msec)
            (void)uv_timer_start(&program->watchdog, main_on_watchdog, watchdog_msec,
                                 watchdog_msec);
        if (ends)
            agent_end_kernels(program->agent, main_on_kernels_ended);
    }
    (void)uv_run(&program->loop, UV_RUN_DEFAULT);
    return r;
}

/* Which way containers are run here is said once, and if there is none, why. */
static int main_find_containers(uv_loop_t *loop, const struct settings *settings,
                                const char *monitor, struct agent_runtimes *runtimes,
                                struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *runner = main_find_program(settings->runner, "aliquot-runner");
    AQ_CLEANUP(strbuf_donep) struct strbuf notes = STRBUF_INIT;
    int r;

    if (strcmp(settings->driver, "process") == 0)
        return 0;
    r = runtime_new_oci(loop, settings, monitor, runner, &runtimes->containers, err);
    if (r < 0 && strcmp(settings->driver, "container") == 0)
        return r;
    if (r < 0) {
        log_info("no containers here: %s; see: aliquot doctor containers", err->text);
        return 0;
    }
    oci_host_add_notes(runtime_oci_host(runtimes->containers), "; ", "", &notes);
    log_info("containers by %s%s%s", runtime_oci_version(runtimes->containers), notes.data,
             notes.len ? "; see: aliquot doctor containers" : "");
    return 0;
}

static int main_run(const struct settings *settings, bool ends, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *monitor = main_find_program(settings->monitor, "aliquot-monitor");
    struct agent_program program = { .settings = settings };
    struct aq_error why = { 0 };
    struct agent_runtimes runtimes = { .no_containers = why.text };
    int r = uv_loop_init(&program.loop);

    if (r < 0)
        return aq_fail(err, -r, "start an event loop: %s", uv_strerror(r));
    r = runtime_new_process(&program.loop, monitor, &runtimes.process, err);
    if (r == 0 && main_find_containers(&program.loop, settings, monitor, &runtimes, &why) < 0)
        r = aq_fail(err, why.code, "%s", why.text);
    if (r == 0)
        r = main_run_loop(&program, ends, &runtimes, err);
    spawned_leave();
    (void)uv_run(&program.loop, UV_RUN_DEFAULT);
    runtime_free(runtimes.containers);
    runtime_free(runtimes.process);
    (void)uv_loop_close(&program.loop);
    return r < 0 ? r : program.status;
}

/* 0, or the status to exit with (-1 = success, but nothing more to do). */
static int main_parse_options(int argc, char **argv, struct agent_options *ret)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        const char **place = strcmp(argv[i], "--config") == 0   ? &ret->config
                             : strcmp(argv[i], "--state") == 0  ? &ret->state
                             : strcmp(argv[i], "--volume") == 0 ? &ret->volume
                                                                : NULL;

        if (strcmp(argv[i], "--version") == 0) {
            (void)printf("aliquot-agent %s\n", ALIQUOT_VERSION);
            return -1;
        }
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(usage, stdout);
            return -1;
        }
        if (strcmp(argv[i], "--print-config") == 0) {
            AQ_CLEANUP(strbuf_donep) struct strbuf sample = STRBUF_INIT;

            conf_write_sample(settings_items, &sample);
            (void)fputs(sample.data, stdout);
            return -1;
        }
        if (strcmp(argv[i], "--shared") == 0 || strcmp(argv[i], "--dev") == 0) {
            ret->flags |= argv[i][2] == 's' ? SETTINGS_SHARED : SETTINGS_DEV;
            continue;
        }
        if (!place || i + 1 >= argc) {
            (void)fprintf(stderr, "aliquot-agent: what is '%s'?\n%s", argv[i], usage);
            return EXIT_USAGE;
        }
        *place = argv[++i];
    }
    ret->verb = i < argc ? argv[i++] : "run";
    /* options may also follow the verb */
    if (i + 1 < argc && strcmp(argv[i], "--state") == 0) {
        ret->state = argv[i + 1];
        i += 2;
    }
    ret->args = argv + i;
    ret->arg_count = argc - i;
    return 0;
}

static bool main_has_kernels(const struct settings *settings)
{
    AQ_CLEANUP(aq_freep) char *directory = settings_path(settings, "kernels");

    return access(directory, F_OK) == 0;
}

/* '-' is on standard input: arguments are shown to every user of the machine. */
static int main_join(const char *address, const char *token, const struct settings *settings,
                     struct aq_error *err)
{
    char line[TOKEN_LINE_MAX];
    int r;

    if (strcmp(token, "-") == 0) {
        if (isatty(STDIN_FILENO))
            (void)fputs("token: ", stderr);
        if (!fgets(line, sizeof(line), stdin))
            return aq_fail(err, EINVAL,
                           "standard input has no token: 'aliquot agent token' makes one");
        line[strcspn(line, "\r\n")] = '\0';
        token = line;
    }
    r = identity_join(settings, address, token, err);
    if (r == 0)
        log_info("joined as '%s'; certificates are in %s", settings->id, settings->state);
    return r;
}

static int main_act(const struct agent_options *options, const struct settings *settings,
                    struct aq_error *err)
{
    if (strcmp(options->verb, "run") == 0)
        return main_run(settings, false, err);
    if (strcmp(options->verb, "end") == 0)
        return main_has_kernels(settings) ? main_run(settings, true, err) : 0;
    if (strcmp(options->verb, "check") == 0)
        return main_run_checks(options, settings, err);
    return main_join(options->args[0], options->args[1], settings, err);
}

static bool main_is_understood(const struct agent_options *options)
{
    static const struct {
        const char *verb;
        int args_min, args_max;
    } verbs[] = { { "run", 0, 0 }, { "join", 2, 2 }, { "end", 0, 0 }, { "check", 0, 3 } };

    for (size_t i = 0; i < AQ_COUNT(verbs); i++)
        if (strcmp(options->verb, verbs[i].verb) == 0)
            return options->arg_count >= verbs[i].args_min
                   && options->arg_count <= verbs[i].args_max;
    return false;
}

int main(int argc, char **argv)
{
    struct agent_options options = { .config = NULL };
    struct settings settings;
    struct aq_error err = { 0 };
    int r = main_parse_options(argc, argv, &options);

    if (r != 0)
        return r < 0 ? 0 : r;
    if (!main_is_understood(&options)) {
        (void)fputs(usage, stderr);
        return EXIT_USAGE;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    /* What containers read is for others too; all that is secret says so itself. */
    (void)umask(022);
    log_init("agent", LOG_LEVEL_INFO);
    r = settings_load(options.config, options.state, options.flags, &settings, &err);
    if (r == 0) {
        int level = log_parse_level(settings.log_level);

        if (level >= 0)
            log_init("agent", (enum log_level)level);
        if (options.volume)
            r = settings_add_volume(&settings, options.volume, &err);
        if (r == 0)
            r = level < 0 ? aq_fail(&err, EINVAL,
                                    "log-level '%s' is none of error, warning, info, "
                                    "debug",
                                    settings.log_level)
                          : main_act(&options, &settings, &err);
        settings_done(&settings);
    }
    if (r < 0)
        log_error("%s", err.text);
    return r < 0 ? 1 : r;
}
