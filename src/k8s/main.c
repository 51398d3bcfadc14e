/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-k8s - parts of GPUs for pods of Kubernetes */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/trim.h"
#include "k8s/manifests/manifests.h"
#include "k8s/role.h"

#define EXIT_USAGE 2
#define TRIM_FIRST_MSEC 10000
#define TRIM_MSEC 60000

static const struct role *const roles[] = { &plugin_role, &keep_role, &scheduler_role,
                                            &uninstall_role };

struct k8s_program {
    uv_loop_t loop;
    uv_signal_t terminated, interrupted;
    uv_timer_t trim;
    const struct role *role;
    void *data; /* of the role */
};

/* ---- running ---- */

static void main_close(struct k8s_program *program)
{
    if (program->data)
        program->role->end(AQ_TAKE(program->data));
    uv_close((uv_handle_t *)&program->terminated, NULL);
    uv_close((uv_handle_t *)&program->interrupted, NULL);
    uv_close((uv_handle_t *)&program->trim, NULL);
}

static void main_on_signal(uv_signal_t *handle, int signum)
{
    struct k8s_program *program = handle->data;

    if (uv_is_closing((uv_handle_t *)handle))
        return;
    log_info("signal %d: the %s ends", signum, program->role->name);
    main_close(program);
}

static void main_watch(struct k8s_program *program, uv_signal_t *handle, int signum)
{
    (void)uv_signal_init(&program->loop, handle);
    handle->data = program;
    (void)uv_signal_start(handle, main_on_signal, signum);
}

static void main_on_trim(uv_timer_t *timer)
{
    (void)timer;
    memory_trim();
}

static int main_run(const struct role *role, const struct settings *settings, struct aq_error *err)
{
    struct k8s_program program = { .role = role };
    void *data = NULL;
    int r = uv_loop_init(&program.loop);

    if (r < 0)
        return aq_fail(err, -r, "start an event loop: %s", uv_strerror(r));
    main_watch(&program, &program.terminated, SIGTERM);
    main_watch(&program, &program.interrupted, SIGINT);
    (void)uv_timer_init(&program.loop, &program.trim);
    (void)uv_timer_start(&program.trim, main_on_trim, TRIM_FIRST_MSEC, TRIM_MSEC);
    r = role->begin(&program.loop, settings, &data, err);
    if (r == 0 && uv_is_closing((uv_handle_t *)&program.terminated)) /* begin() has run the loop */
        role->end(data);
    else if (r == 0)
        program.data = data;
    else if (!uv_is_closing((uv_handle_t *)&program.terminated))
        main_close(&program);
    (void)uv_run(&program.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&program.loop);
    return r;
}

/* ---- the command line ---- */

static int main_usage(FILE *to, int status)
{
    bool is_written = fputs("usage: aliquot-k8s [--config FILE] COMMAND\n"
                            "       aliquot-k8s manifests [--help] [OPTION VALUE]...\n"
                            "       aliquot-k8s --print-config | --version | --help\n\n",
                            to)
                      >= 0;

    for (size_t i = 0; i < AQ_COUNT(roles); i++)
        is_written &= fprintf(to, "  %-10s %s\n", roles[i]->name, roles[i]->usage) > 0;
    return is_written ? status : EXIT_FAILURE;
}

static const struct role *main_find_role(const char *name)
{
    for (size_t i = 0; i < AQ_COUNT(roles); i++)
        if (strcmp(roles[i]->name, name) == 0)
            return roles[i];
    return NULL;
}

static int main_print_config(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sample = STRBUF_INIT;

    conf_write_sample(settings_items, &sample);
    return fputs(sample.data, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int main_act(const struct role *role, const char *config, struct aq_error *err)
{
    struct settings settings;
    int r = settings_load(config, &settings, err), level;

    if (r < 0)
        return r;
    level = log_parse_level(settings.log_level);
    if (level < 0) {
        r = aq_fail(err, EINVAL, "log-level '%s' is none of error, warning, info, debug",
                    settings.log_level);
    } else {
        log_init("k8s", (enum log_level)level);
        r = main_run(role, &settings, err);
    }
    settings_done(&settings);
    return r;
}

int main(int argc, char **argv)
{
    const struct role *role = NULL;
    const char *config = NULL;
    struct aq_error err = { 0 };
    int i = 1;

    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return printf("aliquot-k8s %s\n", ALIQUOT_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return main_usage(stdout, EXIT_SUCCESS);
    if (argc == 2 && strcmp(argv[1], "--print-config") == 0)
        return main_print_config();
    if (argc >= 2 && strcmp(argv[1], "manifests") == 0)
        return manifests_command(argc - 2, argv + 2);
    if (argc == 4 && strcmp(argv[1], "--config") == 0) {
        config = argv[2];
        i = 3;
    }
    if (i == argc - 1)
        role = main_find_role(argv[i]);
    if (!role)
        return main_usage(stderr, EXIT_USAGE);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(022);
    log_init("k8s", LOG_LEVEL_INFO);
    if (main_act(role, config, &err) < 0) {
        log_error("%s", err.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
