/* aliquot-agent - runs the kernels of one node */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/joining.h"
#include "agent/runtime/oci.h"
#include "agent/runtime/spawn.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/notify.h"

#define EXIT_USAGE 2
#define EXIT_REFUSED 3 /* fenced, revoked: starting again would not help */

static const char usage[] =
    "usage: aliquot-agent [--config FILE] [--state FOLDER] [--shared] [run]\n"
    "       aliquot-agent [--config FILE] [--state FOLDER] join MANAGER[:PORT] TOKEN\n"
    "       aliquot-agent --print-config | --version | --help\n"
    "\n"
    "join gets this node's certificate with a one-time token (aliquot agent token).\n"
    "run (the default) connects to the manager and runs what it orders; kernels\n"
    "outlive the agent and are found again when it starts. With --shared other agents\n"
    "of this machine may offer the same, unless the settings have an allocation-mode.\n";

struct options {
    const char *config, *state, *verb;
    bool is_shared;
    char **args;
    int arg_count;
};

struct program {
    uv_loop_t loop;
    uv_signal_t terminated, interrupted;
    uv_timer_t watchdog;
    struct agent *agent;
    int status;
};

static void stop(struct program *program)
{
    notify_send("STOPPING=1");
    agent_free(AQ_TAKE(program->agent));
    uv_close((uv_handle_t *)&program->terminated, NULL);
    uv_close((uv_handle_t *)&program->interrupted, NULL);
    uv_close((uv_handle_t *)&program->watchdog, NULL);
}

static void on_signal(uv_signal_t *handle, int signum)
{
    struct program *program = handle->data;

    if (uv_is_closing((uv_handle_t *)handle))
        return;
    log_info("signal %d: the agent stops, kernels run on", signum);
    stop(program);
}

static void on_ready(void *data)
{
    (void)data;
    notify_send("READY=1");
}

static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify_send("WATCHDOG=1");
}

static void on_refused(void *data, const char *kind, const char *text)
{
    struct program *program = data;

    log_error("the manager refuses this agent (%s): %s", kind, text);
    program->status = EXIT_REFUSED;
    stop(program);
}

/* A program of ours: where the settings say, else beside the agent. */
static char *find_program(const char *configured, const char *name)
{
    static const char *const places[] = { "", "../libexec/aliquot/", "../bin/" };
    AQ_CLEANUP(aq_freep) char *folder = fs_program_dir();

    if (configured)
        return strdup(configured);
    for (size_t i = 0; folder && i < AQ_COUNT(places); i++) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s%s", folder, places[i], name);

        if (path && access(path, X_OK) == 0)
            return AQ_TAKE(path);
    }
    return strdup(name);
}

static int run_loop(struct program *program, const struct settings *settings,
                    const struct agent_runtimes *runtimes, struct aq_error *err)
{
    static const struct agent_events events = { .on_ready = on_ready, .on_refused = on_refused };
    uint64_t watchdog_msec = (uint64_t)(notify_watchdog_usec() / USEC_PER_MSEC);
    int r = agent_new(&program->loop, settings, runtimes, &events, program, &program->agent, err);

    program->terminated.data = program->interrupted.data = program;
    (void)uv_signal_init(&program->loop, &program->terminated);
    (void)uv_signal_init(&program->loop, &program->interrupted);
    (void)uv_timer_init(&program->loop, &program->watchdog);
    if (r < 0) {
        stop(program);
    } else {
        (void)uv_signal_start(&program->terminated, on_signal, SIGTERM);
        (void)uv_signal_start(&program->interrupted, on_signal, SIGINT);
        if (watchdog_msec)
            (void)uv_timer_start(&program->watchdog, on_watchdog, watchdog_msec, watchdog_msec);
    }
    (void)uv_run(&program->loop, UV_RUN_DEFAULT);
    return r;
}

/* Which way containers are run here is said once, and if there is none, why. */
static int find_containers(uv_loop_t *loop, const struct settings *settings, const char *monitor,
                           struct agent_runtimes *runtimes, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *runner = find_program(settings->runner, "aliquot-runner");
    int r;

    if (strcmp(settings->driver, "process") == 0)
        return 0;
    r = runner ? runtime_new_oci(loop, settings, monitor, runner, &runtimes->containers, err)
               : aq_fail(err, ENOMEM, "agent");
    if (r < 0 && strcmp(settings->driver, "container") == 0)
        return r;
    if (r < 0)
        log_info("no containers here: %s", err->text);
    else
        log_info("containers by %s%s%s", runtime_oci_version(runtimes->containers),
                 runtime_oci_host(runtimes->containers)->notes.len ? "; " : "",
                 runtime_oci_host(runtimes->containers)->notes.data);
    return 0;
}

static int run(const struct settings *settings, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *monitor = find_program(settings->monitor, "aliquot-monitor");
    struct program program = { .status = 0 };
    struct aq_error why = { 0 };
    struct agent_runtimes runtimes = { .no_containers = why.text };
    int r = monitor ? 0 : aq_fail(err, ENOMEM, "agent");

    if (uv_loop_init(&program.loop) < 0)
        return aq_fail(err, ENOMEM, "event loop");
    if (r == 0)
        r = runtime_new_process(&program.loop, monitor, &runtimes.process, err);
    if (r == 0 && find_containers(&program.loop, settings, monitor, &runtimes, &why) < 0)
        r = aq_fail(err, why.code, "%s", why.text);
    if (r == 0)
        r = run_loop(&program, settings, &runtimes, err);
    spawned_leave();
    (void)uv_run(&program.loop, UV_RUN_DEFAULT);
    runtime_free(runtimes.containers);
    runtime_free(runtimes.process);
    (void)uv_loop_close(&program.loop);
    return r < 0 ? r : program.status;
}

/* 0, or the status to exit with (-1 = success, but nothing more to do). */
static int parse_options(int argc, char **argv, struct options *ret)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        const char **place = strcmp(argv[i], "--config") == 0  ? &ret->config
                             : strcmp(argv[i], "--state") == 0 ? &ret->state
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
        if (strcmp(argv[i], "--shared") == 0) {
            ret->is_shared = true;
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

static int act(const struct options *options, const struct settings *settings,
               struct aq_error *err)
{
    int r;

    if (strcmp(options->verb, "run") == 0)
        return run(settings, err);
    r = joining_run(settings, options->args[0], options->args[1], err);
    if (r == 0)
        log_info("joined as '%s'; certificates are in %s", settings->id, settings->state);
    return r;
}

int main(int argc, char **argv)
{
    struct options options = { .config = NULL };
    struct settings settings;
    struct aq_error err = { 0 };
    int r = parse_options(argc, argv, &options);
    bool is_join = r == 0 && strcmp(options.verb, "join") == 0;

    if (r != 0)
        return r < 0 ? 0 : r;
    if (options.arg_count != (is_join ? 2 : 0)
        || (!is_join && strcmp(options.verb, "run") != 0)) {
        (void)fputs(usage, stderr);
        return EXIT_USAGE;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    /* What containers read is for others too; all that is secret says so itself. */
    (void)umask(022);
    log_init("agent", LOG_LEVEL_INFO);
    r = settings_load(options.config, options.state, options.is_shared, &settings, &err);
    if (r == 0) {
        int level = log_parse_level(settings.log_level);

        if (level >= 0)
            log_init("agent", (enum log_level)level);
        r = level < 0 ? aq_fail(&err, EINVAL, "log-level '%s' is none of error, warning, info, "
                                              "debug", settings.log_level)
                      : act(&options, &settings, &err);
        settings_done(&settings);
    }
    if (r < 0)
        log_error("%s", err.text);
    return r < 0 ? 1 : r;
}
