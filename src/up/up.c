/* SPDX-License-Identifier: Apache-2.0 */
/* up.c - a manager and agents on this machine, watched over */
#include "up/up.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/fs.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/program.h"
#include "up/node.h"
#include "up/paths.h"
#include "up/port.h"
#include "up/warning.h"

#define INIT_MSEC 30000
#define SESSIONS_MSEC 20000 /* for their end when --dev stops */
#define STOP_MSEC 10000
#define DEATHS_MAX 5 /* before it has ever served */
#define MANAGER_METRICS_PORT 8083

/* Published for development; the manager accepts it with --dev only. */
#define DEV_EMAIL "admin@lablup.com"
#define DEV_PASSWORD "wJalrXUt"
#define DEV_ACCESS_KEY "AKIAIOSFODNN7EXAMPLE"
#define DEV_SECRET_KEY "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

struct up {
    const struct up_options *options;
    struct paths paths;
    uv_loop_t loop;
    uv_signal_t died, interrupted, terminated;
    struct child *manager;
    struct child_spec manager_spec;
    struct node *nodes;
    size_t node_count;
    char endpoint[64], link[64];
    char *manager_argv[12];
    char manager_metrics[64]; /* a variable of its environment; empty = none */
    int lock_fd;
    bool was_up, is_stopping, is_manager_stopping;
    int r;
    struct aq_error err;
};

static bool up_are_all_ready(const struct up *up)
{
    size_t i = 0;

    while (i < up->node_count && child_is_ready(up->nodes[i].child))
        i++;
    return i == up->node_count;
}

static bool up_are_all_stopped(const struct up *up)
{
    size_t i = 0;

    while (i < up->node_count && !child_is_active(up->nodes[i].child))
        i++;
    return i == up->node_count;
}

/* ---- what users and programs see ---- */

static int up_write_info(const struct up *up, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "pid", getpid());
    jsonw_member_int(&w, "manager_pid", up->manager ? child_get_pid(up->manager) : 0);
    jsonw_key(&w, "agent_pids");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < up->node_count; i++)
        if (!up->nodes[i].front)
            jsonw_int(&w, up->nodes[i].child ? child_get_pid(up->nodes[i].child) : 0);
    jsonw_array_end(&w);
    jsonw_member_str(&w, "endpoint", up->endpoint);
    jsonw_member_str(&w, "link", up->link);
    jsonw_object_end(&w);
    strbuf_addc(&out, '\n');
    return fs_write_atomic(AT_FDCWD, up->paths.info, out.data, out.len, 0600, err);
}

static void up_write_state_info(const struct up *up)
{
    struct aq_error err = { 0 };

    if (up_write_info(up, &err) < 0)
        log_warning("%s", err.text);
}

static size_t up_count_agents(const struct up_options *o)
{
    return AQ_MAX(o->agent_count, (size_t)1);
}

/* Who may log in to the web page. */
static void up_print_login(const struct up *up)
{
    if (up->options->web_port && up->options->is_dev)
        (void)printf("In the browser: http://127.0.0.1:%u\n\n"
                     "  e-mail   %s\n"
                     "  password %s\n\n",
                     up->options->web_port, DEV_EMAIL, DEV_PASSWORD);
    else if (up->options->web_port)
        (void)printf("In the browser: http://127.0.0.1:%u, with that e-mail and password.\n\n",
                     up->options->web_port);
}

static void up_print_welcome(const struct up *up)
{
    size_t agents = up_count_agents(up->options);

    (void)printf("Aliquot is ready.\n\n"
                 "  API      %s\n"
                 "  agents   %s  (%zu joined, on this machine)\n",
                 up->endpoint, up->link, agents);
    for (size_t i = agents; i < up->node_count; i++)
        (void)printf("  %s    http://%s\n", up->nodes[i].front->shown, up->nodes[i].listen);
    (void)printf("  state    %s\n"
                 "  logs     %s, %s%s\n\n",
                 up->paths.state, up->paths.manager_log, up->nodes[0].log,
                 up->node_count > 1 ? " ..." : "");
    if (!up->options->is_dev)
        (void)printf("The administrator's e-mail, password and keypair are in %s.\n\n",
                     up->paths.credentials);
    up_print_login(up);
    if (up->options->is_dev)
        (void)printf("In another terminal:\n\n"
                     "  aliquot login --dev --endpoint %s\n"
                     "  aliquot run -r cpu=1 -r mem=256m -- echo hello\n\n"
                     "%s"
                     "Or, for any client of this protocol:\n\n"
                     "  export BACKEND_ENDPOINT=%s BACKEND_ENDPOINT_TYPE=api\n"
                     "  export BACKEND_ACCESS_KEY=%s\n"
                     "  export BACKEND_SECRET_KEY=%s\n\n"
                     "Ctrl-C ends the cluster and its sessions.\n",
                     up->endpoint, warning_of_sessions(true), up->endpoint, DEV_ACCESS_KEY,
                     DEV_SECRET_KEY);
    else
        (void)printf("In another terminal:\n\n"
                     "  aliquot login --endpoint %s\n"
                     "  aliquot run%s -r cpu=1 -r mem=256m -- echo hello\n\n"
                     "%s"
                     "Ctrl-C ends manager and agents; sessions go on.\n",
                     up->endpoint, geteuid() == 0 ? " --image debian:stable-slim" : "",
                     warning_of_sessions(false));
    (void)fflush(stdout);
}

/* ---- stopping ---- */

static void up_end_sessions(struct up *up)
{
    char rm[] = "rm", all[] = "--all", everyone[] = "--everyone", force[] = "--force",
         yes[] = "--yes", wait[] = "--wait", quiet[] = "--quiet";
    char *const argv[] = { up->paths.cli, rm, all, everyone, force, yes, wait, quiet, NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (!child_is_ready(up->manager) || !up_are_all_ready(up))
        return;
    log_info("ending the sessions");
    if (program_run(argv, up->paths.log, SESSIONS_MSEC, &out, &err) < 0)
        log_warning("some sessions may go on: %s", err.text);
}

static void up_close_signals(struct up *up)
{
    uv_close((uv_handle_t *)&up->died, NULL);
    uv_close((uv_handle_t *)&up->interrupted, NULL);
    uv_close((uv_handle_t *)&up->terminated, NULL);
}

/* They are gone once the loop has run; the nodes stay until then. */
static void up_free_children(struct up *up)
{
    for (size_t i = 0; i < up->node_count; i++)
        child_free(AQ_TAKE(up->nodes[i].child));
    child_free(AQ_TAKE(up->manager));
    up_close_signals(up);
}

/* The agents go first: what they report at their end still reaches the manager. */
static void up_on_stopped(struct child *child, void *data)
{
    struct up *up = data;

    if (child == up->manager) {
        up_free_children(up);
    } else if (up_are_all_stopped(up) && !up->is_manager_stopping) {
        up->is_manager_stopping = true;
        child_stop(up->manager, STOP_MSEC);
    }
}

static void up_stop(struct up *up)
{
    if (up->is_stopping)
        return;
    up->is_stopping = true;
    if (up->options->is_dev)
        up_end_sessions(up);
    for (size_t i = 0; i < up->node_count; i++) {
        if (up->nodes[i].child)
            child_stop(up->nodes[i].child, STOP_MSEC);
    }
}

static void up_fail(struct up *up)
{
    up->r = -up->err.code;
    up_stop(up);
}

static void up_on_interrupted(uv_signal_t *handle, int signum)
{
    (void)signum;
    up_stop(handle->data);
}

/* ---- starting ---- */

static void up_start_agents(struct up *up)
{
    for (size_t i = 0; i < up->node_count; i++) {
        struct node *node = &up->nodes[i];

        if (child_is_active(node->child))
            continue;
        if (node_join(node, &up->paths, up->endpoint, up->link, &up->err) < 0
            || child_start(node->child, &up->err) < 0) {
            up_fail(up);
            return;
        }
    }
}

static void up_on_ready(struct child *child, void *data)
{
    struct up *up = data;

    up_write_state_info(up);
    if (up->is_stopping)
        return;
    if (up->was_up) {
        log_info("the %s serves again", child_get_name(child));
    } else if (child == up->manager) {
        up_start_agents(up);
    } else if (up_are_all_ready(up)) {
        up->was_up = true;
        up_print_welcome(up);
    }
}

static const char *up_log_of(const struct up *up, const struct child *child)
{
    for (size_t i = 0; i < up->node_count; i++) {
        if (up->nodes[i].child == child)
            return up->nodes[i].log;
    }
    return up->paths.manager_log;
}

static void up_on_death(struct child *child, int status, unsigned deaths, void *data)
{
    struct up *up = data;
    bool is_signal = WIFSIGNALED(status);

    up_write_state_info(up);
    if (!up->was_up && deaths >= DEATHS_MAX) {
        const char *path = up_log_of(up, child);
        AQ_CLEANUP(aq_freep) char *reason = log_read_last(path, 0);

        aq_fail(&up->err, ECHILD,
                "the %s does not start: %s; all that it said is in '%s', and what this "
                "machine lacks 'aliquot doctor' says",
                child_get_name(child), reason ? reason : "it said nothing", path);
        up_fail(up);
        return;
    }
    log_warning("the %s ended with %s %d; it is restarted", child_get_name(child),
                is_signal ? "signal" : "status",
                is_signal ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void up_on_child_died(uv_signal_t *handle, int signum)
{
    struct up *up = handle->data;

    (void)signum;
    for (size_t i = 0; i < up->node_count; i++) {
        if (up->nodes[i].child)
            child_reap(up->nodes[i].child);
    }
    if (up->manager)
        child_reap(up->manager);
}

/* Who has the state directory, by what it wrote there; 0 = it did not say. */
static long long up_find_owner(const struct up *up)
{
    json_t *root = json_load_file(up->paths.info, 0, NULL);
    long long pid = json_integer_value(json_object_get(root, "pid"));

    json_decref(root);
    return pid;
}

static int up_take_lock(struct up *up, struct aq_error *err)
{
    up->lock_fd = open(up->paths.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (up->lock_fd < 0)
        return aq_fail_errno(err, "open '%s'", up->paths.lock);
    if (flock(up->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    aq_closep(&up->lock_fd);
    return aq_fail(err, EBUSY,
                   "another 'aliquot up', process %lld, has '%s'; end that one, or start a second "
                   "cluster with another --state and --port-offset 100",
                   up_find_owner(up), up->paths.state);
}

/* Make the state directory ours; what this needs to write, everything after it needs, too. */
static int up_open_state(struct up *up, struct aq_error *err)
{
    struct aq_error why = { 0 };
    int r = paths_check_room(&up->paths, err);

    if (r < 0)
        return r;
    r = paths_make_folders(&up->paths, &why);
    if (r == 0)
        r = up_take_lock(up, &why);
    if (r == 0)
        r = up_write_info(up, &why);
    if (fs_is_full(-r))
        return aq_fail(err, -r, "%s; free some space there, or choose another --state", why.text);
    if (r < 0)
        return aq_fail(err, -r, "%s; choose another --state", why.text);
    return 0;
}

/* The first start of a cluster that is not for development: make its
 * administrator and keep the secrets, which are shown only once.
 */
static int up_init_cluster(struct up *up, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/aliquot.db.key", up->paths.manager_state);
    AQ_CLEANUP(strbuf_donep) struct strbuf secrets = STRBUF_INIT;
    char init[] = "init", json[] = "--json", state[] = "--state";
    char *const argv[] = { up->paths.manager, init, json, state, up->paths.manager_state, NULL };
    int r;

    if (up->options->is_dev || access(key, F_OK) == 0)
        return 0;
    r = program_run(argv, up->paths.manager_log, INIT_MSEC, &secrets, err);
    if (r == 0)
        r = fs_write_atomic(AT_FDCWD, up->paths.credentials, secrets.data, secrets.len, 0600, err);
    explicit_bzero(secrets.data, secrets.len);
    return r;
}

/* Sign our own requests as the administrator, if its keypair is still where
 * up_init_cluster() put it; only the first join of the agent needs it.
 */
static int up_use_credentials(const struct up *up)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *access_key, *secret_key;
    json_t *root;
    int r = -EINVAL;

    if (fs_read(AT_FDCWD, up->paths.credentials, 4096, &text, NULL) < 0)
        return 0;
    root = json_loadb(text.data, text.len, 0, NULL);
    access_key = json_string_value(json_object_get(root, "access_key"));
    secret_key = json_string_value(json_object_get(root, "secret_key"));
    if (access_key && secret_key)
        r = setenv("ALIQUOT_ACCESS_KEY", access_key, 1)
            | setenv("ALIQUOT_SECRET_KEY", secret_key, 1);
    json_decref(root);
    return r;
}

/* Where requests of ours go, and who sends them. */
static int up_set_environment(struct up *up, struct aq_error *err)
{
    static const char *const cleared[] = { "ALIQUOT_PROFILE", "ALIQUOT_DOMAIN", "BACKEND_DOMAIN" };
    int r = setenv("ALIQUOT_ENDPOINT", up->endpoint, 1);

    for (size_t i = 0; i < AQ_COUNT(cleared); i++)
        (void)unsetenv(cleared[i]);
    /* browsers take its names for this machine; Jupyter is none that a path would do for */
    r |= setenv("ALIQUOT_PROXY_DOMAIN", "localhost", 0);
    r |= setenv("ALIQUOT_WEB_API", up->endpoint, 0);
    if (up->options->web_port) /* it says for whom it asks */
        r |= setenv("ALIQUOT_API_TRUSTED_PROXIES", "127.0.0.1", 0);
    if (up->options->static_dir)
        r |= setenv("ALIQUOT_WEB_STATIC", up->options->static_dir, 1);
    if (up->options->is_dev)
        r |= setenv("ALIQUOT_ACCESS_KEY", DEV_ACCESS_KEY, 1)
             | setenv("ALIQUOT_SECRET_KEY", DEV_SECRET_KEY, 1);
    else
        r |= up_use_credentials(up);
    return r < 0 ? aq_fail(err, EINVAL, "'%s' cannot be used", up->paths.credentials) : 0;
}

static void up_describe_manager(struct up *up)
{
    static char dev[] = "--dev", state[] = "--state", listen[] = "--listen", link[] = "--link";
    int n = 0;

    up->manager_argv[n++] = up->paths.manager;
    up->manager_argv[n++] = state;
    up->manager_argv[n++] = up->paths.manager_state;
    up->manager_argv[n++] = listen;
    up->manager_argv[n++] = up->endpoint + strlen("http://");
    up->manager_argv[n++] = link;
    up->manager_argv[n++] = up->link;
    if (up->options->is_dev)
        up->manager_argv[n++] = dev;
    if (up->options->offset)
        node_choose_metrics(up->manager_metrics, sizeof(up->manager_metrics),
                            MANAGER_METRICS_PORT + up->options->offset);
    up->manager_spec = (struct child_spec){ "manager", up->manager_argv, up->paths.manager_log,
                                            up->paths.manager_notify,
                                            up->manager_metrics[0] ? up->manager_metrics : NULL };
}

static void up_watch_signal(struct up *up, uv_signal_t *handle, uv_signal_cb on_signal, int signum)
{
    (void)uv_signal_init(&up->loop, handle);
    handle->data = up;
    (void)uv_signal_start(handle, on_signal, signum);
}

static int up_make_children(struct up *up, struct aq_error *err)
{
    static const struct child_ops ops = { up_on_ready, up_on_death, up_on_stopped };
    const struct up_options *o = up->options;
    const struct {
        const struct node_front *front;
        uint16_t port;
    } fronts[] = { { &node_proxy, o->proxy_port },
                   { &node_storage, o->storage_port },
                   { &node_web, o->web_port } };
    size_t agents = up_count_agents(o);
    int r = child_new(&up->loop, &up->manager_spec, &ops, up, &up->manager, err);

    up->nodes = aq_alloc_array(agents + AQ_COUNT(fronts), sizeof(*up->nodes));
    for (size_t i = 0; r == 0 && i < agents; i++)
        r = node_init(&up->nodes[up->node_count++], i, o->agent_count ? o->agents[i] : NULL,
                      o->is_dev, &up->paths, err);
    for (size_t i = 0; r == 0 && i < AQ_COUNT(fronts); i++)
        if (fronts[i].port)
            r = node_init_front(&up->nodes[up->node_count++], fronts[i].front, fronts[i].port,
                                o->offset, &up->paths, err);
    for (size_t i = 0; r == 0 && i < up->node_count; i++)
        r = child_new(&up->loop, &up->nodes[i].spec, &ops, up, &up->nodes[i].child, err);
    return r;
}

static int up_run_loop(struct up *up, struct aq_error *err)
{
    int r = up_make_children(up, err);

    up_watch_signal(up, &up->died, up_on_child_died, SIGCHLD);
    up_watch_signal(up, &up->interrupted, up_on_interrupted, SIGINT);
    up_watch_signal(up, &up->terminated, up_on_interrupted, SIGTERM);
    if (r == 0)
        r = child_start(up->manager, err);
    if (r < 0)
        up_free_children(up);
    (void)uv_run(&up->loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < up->node_count; i++)
        node_done(&up->nodes[i]);
    free(up->nodes);
    if (r == 0 && up->r < 0) {
        *err = up->err;
        r = up->r;
    }
    return r;
}

int up_run(const struct up_options *options, struct aq_error *err)
{
    struct up up = { .options = options, .lock_fd = -1 };
    int r;

    (void)snprintf(up.endpoint, sizeof(up.endpoint), "http://127.0.0.1:%u", options->port);
    (void)snprintf(up.link, sizeof(up.link), "127.0.0.1:%u", options->link_port);
    r = paths_init(&up.paths, options->state_dir,
                   &(struct paths_wanted){ .proxy = options->proxy_port,
                                           .storage = options->storage_port,
                                           .web = options->web_port },
                   err);
    if (r == 0)
        r = up_open_state(&up, err);
    if (r == 0)
        r = port_wait(options->port, "--port", err);
    if (r == 0)
        r = port_wait(options->link_port, "--link-port", err);
    if (r == 0 && options->proxy_port)
        r = port_wait(options->proxy_port, "--proxy-port", err);
    if (r == 0 && options->storage_port)
        r = port_wait(options->storage_port, "--storage-port", err);
    if (r == 0 && options->web_port)
        r = port_wait(options->web_port, "--web-port", err);
    if (r == 0)
        r = up_init_cluster(&up, err);
    if (r == 0)
        r = up_set_environment(&up, err);
    if (r == 0) {
        r = uv_loop_init(&up.loop);
        if (r < 0)
            r = aq_fail(err, -r, "cannot make an event loop: %s", uv_strerror(r));
    }
    if (r == 0) {
        up_describe_manager(&up);
        r = up_run_loop(&up, err);
        (void)uv_loop_close(&up.loop);
    }
    if (up.lock_fd >= 0)
        (void)unlink(up.paths.info);
    aq_closep(&up.lock_fd);
    paths_done(&up.paths);
    return r;
}
