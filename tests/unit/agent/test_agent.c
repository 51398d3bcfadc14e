/* SPDX-License-Identifier: Apache-2.0 */
/* An agent with real processes: what it accepts, refuses, reports, and finds again. */
#include "scene.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "model/session.h"

static const struct {
    const char *command;
    int exit_code;
    enum msg_kernel_state state;
    const char *reason;
} commands[] = {
    { "exit 0", 0, MSG_KERNEL_TERMINATED, "task-finished" },
    { "exit 3", 3, MSG_KERNEL_TERMINATED, "task-failed" },
    { "kill -9 $$", 137, MSG_KERNEL_TERMINATED, "task-failed" },
    { "sleep 1000 & exit 0", 0, MSG_KERNEL_TERMINATED, "task-finished" },
    { "/nonexistent", 127, MSG_KERNEL_TERMINATED, "task-failed" },
};

static void test_exit_codes(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create orders[AQ_COUNT(commands)];

    for (size_t i = 0; i < AQ_COUNT(commands) - 1; i++)
        scene_create(s, (orders[i] = scene_order(commands[i].command), &orders[i]));
    for (size_t i = 0; i < AQ_COUNT(commands); i++) {
        const struct seen *seen;

        if (i == AQ_COUNT(commands) - 1) /* the node has four cores */
            scene_create(s, (orders[i] = scene_order(commands[i].command), &orders[i]));
        RUN_UNTIL(s, scene_is_final(s, &orders[i].kernel_id));
        seen = scene_find(s, &orders[i].kernel_id);
        assert_row(seen->state == commands[i].state, "%s: %d", commands[i].command, seen->state);
        assert_row(seen->has_exit && seen->exit_code == commands[i].exit_code, "%s: %lld",
                   commands[i].command, (long long)seen->exit_code);
        assert_row(strcmp(seen->reason, commands[i].reason) == 0, "%s: %s", commands[i].command,
                   seen->reason);
        assert_row(seen->was_running, "%s", commands[i].command);
    }
    assert_string_equal(s->slots, "{\"cpu\":[\"count\",\"4\"],\"mem\":[\"bytes\",\"1073741824\"]}");
}

static void test_environment(void **state)
{
    struct scene *s = *state;
    struct text_pair variables[] = { { "PATH", "/bin:/usr/bin" },
                                     { "MINE", "a b=c" },
                                     { "BACKENDAI_CLUSTER_HOST", "forged" } };
    struct msg_kernel_create create = scene_order(
        "mkdir -p sub; echo $MINE/$PATH/$BACKENDAI_CLUSTER_HOST/$BACKENDAI_SESSION_NAME; "
        "echo $ALIQUOT_KERNEL_ID; pwd; echo $HOME");
    char id[UUID_TEXT_MAX], path[128];
    AQ_CLEANUP(aq_freep) char *log = NULL;
    AQ_CLEANUP(aq_freep) char *resource = NULL;
    AQ_CLEANUP(aq_freep) char *want = NULL;
    AQ_CLEANUP(aq_freep) char *environ_txt = NULL;

    create.spec.session.environ = (struct pair_list){ variables, AQ_COUNT(variables) };
    create.spec.session.bootstrap = "touch booted";
    scene_create(s, &create);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    (void)uuid_format(&create.kernel_id, id);
    (void)snprintf(path, sizeof(path), "kernels/%s/run/1/log", id);
    log = scene_read(s, path);
    want = aq_format("a b=c//bin:/usr/bin/main1/test\n%s\n%s/kernels/%s/work\n%s/kernels/%s/work\n",
                     id, s->settings.state, id, s->settings.state, id);
    assert_string_equal(log, want);
    (void)snprintf(path, sizeof(path), "kernels/%s/work/booted", id);
    assert_true(scene_exists(s, path));
    (void)snprintf(path, sizeof(path), "kernels/%s/config/resource.txt", id);
    resource = scene_read(s, path);
    assert_non_null(strstr(resource, "CPU_SHARES=0:1\n"));
    assert_non_null(strstr(resource, "MEM_SHARES=root:64m\n"));
    (void)snprintf(path, sizeof(path), "kernels/%s/config/environ.txt", id);
    environ_txt = scene_read(s, path);
    assert_non_null(strstr(environ_txt, "\nMINE=a b=c\n"));
    assert_non_null(strstr(scene_find(s, &create.kernel_id)->alloc, "\"cpu\":{\"0\":\"1\"}"));
}

/* The script's failure is not the program's: the log says which it was. */
static void test_bootstrap_fails(void **state)
{
    static const struct {
        const char *type, *bootstrap, *command, *reason, *text;
    } rows[] = {
        { "interactive", "echo one; echo two >&2; exit 7", NULL, REASON_BOOTSTRAP_FAILED,
          "the bootstrap script failed with exit status 7; its last lines:\none\ntwo" },
        { "batch", "exit 7", "true", REASON_BOOTSTRAP_FAILED,
          "the bootstrap script failed with exit status 7, without output" },
        { "batch", "seq 1 2000; exit 7", "true", REASON_BOOTSTRAP_FAILED,
          "the bootstrap script failed with exit status 7; its last lines:\n"
          "1996\n1997\n1998\n1999\n2000" },
        { "batch", "echo fine", "exit 7", REASON_TASK_FAILED, "" },
    };
    struct scene *s = *state;

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct msg_kernel_create create = scene_order(rows[i].command);
        const struct seen *seen;

        create.spec.session_type = rows[i].type;
        create.spec.session.bootstrap = rows[i].bootstrap;
        scene_create(s, &create);
        RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
        seen = scene_find(s, &create.kernel_id);
        assert_row(seen->state == MSG_KERNEL_TERMINATED && seen->exit_code == 7, "%zu", i);
        assert_row(strcmp(seen->reason, rows[i].reason) == 0, "%zu: %s", i, seen->reason);
        assert_row(strcmp(seen->text, rows[i].text) == 0, "%zu: %s", i, seen->text);
    }
}

static void test_order_runs_once(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("echo x >>count; exit 4");
    char path[128], id[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *count = NULL;
    int heartbeats;

    for (int i = 0; i < 5; i++)
        scene_create(s, &create);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    scene_create(s, &create);
    scene_stop_agent(s);
    scene_start_agent(s);
    scene_create(s, &create);
    heartbeats = s->heartbeats;
    RUN_UNTIL(s, s->heartbeats > heartbeats + 1);
    assert_int_equal(scene_find(s, &create.kernel_id)->exit_code, 4);
    (void)snprintf(path, sizeof(path), "kernels/%s/work/count", uuid_format(&create.kernel_id, id));
    count = scene_read(s, path);
    assert_string_equal(count, "x\n");
}

static const struct {
    const char *slots, *cwd, *kind, *field;
} refusals[] = {
    { "{\"cpu\":\"1\",\"cuda.shares\":\"1\"}", NULL, "unsupported-resource", "cuda.shares" },
    { "{\"cpu\":\"5\"}", NULL, "insufficient-resource", "cpu" },
    { "{\"cpu\":\"1\",\"mem\":\"2147483648\"}", NULL, "insufficient-resource", "mem" },
    { "{\"cpu\":\"-1\"}", NULL, NULL, "cpu" },
    { "{\"cpu\":\"1\"}", "../up", NULL, "cwd" },
    { "{\"cpu\":\"1\"}", "a/../../up", NULL, "cwd" },
    { "{\"cpu\":\"1\"}", "/tmp", NULL, "cwd" },
};

static void test_refused_orders(void **state)
{
    struct scene *s = *state;
    int heartbeats;

    for (size_t i = 0; i < AQ_COUNT(refusals); i++) {
        struct msg_kernel_create create = scene_order("true");
        const struct seen *seen;

        create.spec.slots = refusals[i].slots;
        create.spec.cwd = refusals[i].cwd;
        scene_create(s, &create);
        RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
        seen = scene_find(s, &create.kernel_id);
        assert_row(seen->state == MSG_KERNEL_ERROR, "%zu", i);
        assert_row(strcmp(seen->field, refusals[i].field) == 0, "%zu: %s", i, seen->field);
        if (refusals[i].kind)
            assert_row(strcmp(seen->kind, refusals[i].kind) == 0, "%zu: %s", i, seen->kind);
    }
    heartbeats = s->heartbeats;
    RUN_UNTIL(s, s->heartbeats > heartbeats);
    assert_int_equal(s->inventory, 0); /* they leave no trace */
}

static void test_unknown_zero_slot_is_fine(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("true");

    create.spec.slots = "{\"cpu\":\"1\",\"cuda.shares\":\"0\"}";
    scene_create(s, &create);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    assert_int_equal(scene_find(s, &create.kernel_id)->state, MSG_KERNEL_TERMINATED);
}

static void test_drained_agent_takes_nothing(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("true"), later = scene_order("true");
    struct message msg = { .type = MSG_DRAIN, .drain = { .on = true } };

    scene_send(s, &msg);
    scene_create(s, &create);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    assert_string_equal(scene_find(s, &create.kernel_id)->kind, "draining");
    msg.drain.on = false;
    scene_send(s, &msg);
    scene_create(s, &later);
    RUN_UNTIL(s, scene_is_final(s, &later.kernel_id));
    assert_int_equal(scene_find(s, &later.kernel_id)->exit_code, 0);
}

static void test_destroy(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order(
        "trap '' TERM; touch ready; sleep 1000 & wait; wait");
    char path[128], id[UUID_TEXT_MAX];
    const struct seen *seen;

    scene_create(s, &create);
    (void)snprintf(path, sizeof(path), "kernels/%s/work/ready", uuid_format(&create.kernel_id, id));
    RUN_UNTIL(s, scene_exists(s, path));
    scene_destroy(s, &create.kernel_id, 3600 * USEC_PER_SEC);
    RUN_UNTIL(s, scene_find(s, &create.kernel_id)->state == MSG_KERNEL_TERMINATING);
    scene_destroy(s, &create.kernel_id, 0); /* now by force */
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    seen = scene_find(s, &create.kernel_id);
    assert_string_equal(seen->reason, "user-requested");
    assert_int_equal(seen->exit_code, 137);
}

/* Destroyed in the same breath: it never runs, not even after a restart. */
static void test_destroy_before_start(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("touch ran");
    char path[128], id[UUID_TEXT_MAX];
    int heartbeats;

    scene_create(s, &create);
    scene_destroy(s, &create.kernel_id, 0);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    assert_string_equal(scene_find(s, &create.kernel_id)->reason, "user-requested");
    assert_false(scene_find(s, &create.kernel_id)->was_running);
    scene_stop_agent(s);
    scene_start_agent(s);
    heartbeats = s->heartbeats;
    RUN_UNTIL(s, s->heartbeats > heartbeats + 2);
    (void)snprintf(path, sizeof(path), "kernels/%s/work/ran", uuid_format(&create.kernel_id, id));
    assert_false(scene_exists(s, path));
    assert_int_equal(scene_find(s, &create.kernel_id)->state, MSG_KERNEL_TERMINATED);
}

/* The agent goes, the kernel runs on; the next agent knows it and its devices. */
static void test_restarted_agent_adopts(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("while [ ! -e go ]; do sleep 0.05; done; exit 7");
    struct msg_kernel_create big = scene_order("true"), fits = scene_order("true");
    char path[128], id[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *go = NULL;

    create.spec.slots = "{\"cpu\":\"3\",\"mem\":\"67108864\"}";
    big.spec.slots = "{\"cpu\":\"2\"}";
    scene_create(s, &create);
    RUN_UNTIL(s, scene_find(s, &create.kernel_id)->state == MSG_KERNEL_RUNNING);
    scene_stop_agent(s);
    scene_find(s, &create.kernel_id)->state = MSG_KERNEL_CREATING;
    scene_start_agent(s);
    RUN_UNTIL(s, scene_find(s, &create.kernel_id)->state == MSG_KERNEL_RUNNING);
    scene_create(s, &big);
    RUN_UNTIL(s, scene_is_final(s, &big.kernel_id));
    assert_string_equal(scene_find(s, &big.kernel_id)->kind, "insufficient-resource");
    scene_create(s, &fits);
    RUN_UNTIL(s, scene_is_final(s, &fits.kernel_id));
    assert_int_equal(scene_find(s, &fits.kernel_id)->exit_code, 0);

    (void)snprintf(path, sizeof(path), "kernels/%s/work/go", uuid_format(&create.kernel_id, id));
    go = settings_path(&s->settings, path);
    assert_int_equal(fs_write_atomic(AT_FDCWD, go, "", 0, 0600, NULL), 0);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    assert_int_equal(scene_find(s, &create.kernel_id)->exit_code, 7);
    big.attempt = 2;
    scene_create(s, &big);
    RUN_UNTIL(s, scene_is_final(s, &big.kernel_id) && scene_find(s, &big.kernel_id)->attempt == 2);
    assert_int_equal(scene_find(s, &big.kernel_id)->state, MSG_KERNEL_TERMINATED);
}

static struct msg_kernel_create order_of_core(const char *devices)
{
    struct msg_kernel_create create = scene_order("sleep 1000");

    create.spec.devices = devices;
    return create;
}

static const char *cores_of(struct scene *s, const struct msg_kernel_create *create)
{
    return strstr(scene_find(s, &create->kernel_id)->alloc, "\"cpu\"");
}

/* The manager decided where it comes from: so it does, or not at all. It is kept over restarts of the
 * kernel and the agent; the order of a later attempt may say another.
 */
static void test_chosen_devices(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create third = order_of_core("{\"cpu\":{\"2\":\"1\"}}");
    struct msg_kernel_create taken = order_of_core("{\"cpu\":{\"2\":\"1\"}}");
    struct message restart = { .type = MSG_KERNEL_RESTART,
                               .kernel_restart = { third.kernel_id, 2, 0 } };
    const struct seen *seen;

    scene_create(s, &third);
    RUN_UNTIL(s, scene_find(s, &third.kernel_id)->state == MSG_KERNEL_RUNNING);
    assert_int_equal(strncmp(cores_of(s, &third), "\"cpu\":{\"2\":\"1\"}", 15), 0);
    scene_stop_agent(s);
    scene_start_agent(s);
    scene_send(s, &restart);
    RUN_UNTIL(s, (seen = scene_find(s, &third.kernel_id))->attempt == 2
                     && seen->state == MSG_KERNEL_RUNNING);
    assert_int_equal(strncmp(cores_of(s, &third), "\"cpu\":{\"2\":\"1\"}", 15), 0);

    scene_create(s, &taken);
    RUN_UNTIL(s, scene_is_final(s, &taken.kernel_id));
    seen = scene_find(s, &taken.kernel_id);
    assert_int_equal(seen->state, MSG_KERNEL_ERROR);
    assert_string_equal(seen->kind, "insufficient-resource");
    assert_string_equal(seen->field, "cpu");
    assert_string_equal(seen->text, "cpu: 1 of device 2 was chosen, 0 of it is free");

    third.attempt = 3;
    third.spec.devices = "{\"cpu\":{\"3\":\"1\"}}";
    scene_create(s, &third);
    RUN_UNTIL(s, (seen = scene_find(s, &third.kernel_id))->attempt == 3
                     && seen->state == MSG_KERNEL_RUNNING);
    assert_int_equal(strncmp(cores_of(s, &third), "\"cpu\":{\"3\":\"1\"}", 15), 0);
    taken.attempt = 2;
    scene_create(s, &taken);
    RUN_UNTIL(s, scene_find(s, &taken.kernel_id)->state == MSG_KERNEL_RUNNING);
    scene_destroy(s, &third.kernel_id, 0);
    scene_destroy(s, &taken.kernel_id, 0);
    RUN_UNTIL(s, scene_is_final(s, &third.kernel_id) && scene_is_final(s, &taken.kernel_id));
}

/* Its programs have written so many lines of "x" to the file 'count'. */
static bool has_counted(const struct scene *s, const struct uuid *kernel_id, off_t lines)
{
    char path[256], id[UUID_TEXT_MAX];
    struct stat st;

    (void)snprintf(path, sizeof(path),
                   "%s/state/kernels/%s/"
                   "work/count",
                   s->folder, uuid_format(kernel_id, id));
    return stat(path, &st) == 0 && st.st_size >= 2 * lines;
}

static void test_restart_is_a_new_attempt(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("echo x >>count; exec sleep 1000");
    struct message msg = { .type = MSG_KERNEL_RESTART,
                           .kernel_restart = { .kernel_id = create.kernel_id, .attempt = 2 } };
    char path[128], id[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *count = NULL;

    scene_create(s, &create);
    RUN_UNTIL(s, has_counted(s, &create.kernel_id, 1));
    scene_send(s, &msg);
    scene_send(s, &msg);
    RUN_UNTIL(s, scene_find(s, &create.kernel_id)->state == MSG_KERNEL_RUNNING
                     && scene_find(s, &create.kernel_id)->attempt == 2);
    RUN_UNTIL(s, has_counted(s, &create.kernel_id, 2));
    scene_create(s, &create); /* an old message comes late */
    scene_stop_agent(s);
    scene_start_agent(s);
    RUN_UNTIL(s, scene_find(s, &create.kernel_id)->state == MSG_KERNEL_RUNNING);
    scene_destroy(s, &create.kernel_id, 0);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    assert_int_equal(scene_find(s, &create.kernel_id)->attempt, 2);
    (void)snprintf(path, sizeof(path), "kernels/%s/work/count", uuid_format(&create.kernel_id, id));
    count = scene_read(s, path);
    assert_string_equal(count, "x\nx\n");
}

static void test_batch_timeout(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("sleep 1000");

    create.spec.session.batch_timeout_usec = 50 * USEC_PER_MSEC;
    scene_create(s, &create);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    assert_string_equal(scene_find(s, &create.kernel_id)->reason, "task-timeout");
}

/* State and parent of a process; 'X' if there is none. */
static char process_state(int pid, int *ret_parent)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf stat = STRBUF_INIT;
    char path[64], letter = 'X';

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (fs_read(AT_FDCWD, path, 4096, &stat, NULL) == 0)
        (void)sscanf(strrchr(stat.data, ')'), ") %c %d", &letter, ret_parent);
    return letter;
}

static void test_killed_monitor(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("echo $$ >pid.new; mv pid.new pid; sleep 1000");
    char path[128], id[UUID_TEXT_MAX], letter;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    int parent = 0, program;

    scene_create(s, &create);
    (void)snprintf(path, sizeof(path), "kernels/%s/work/pid", uuid_format(&create.kernel_id, id));
    RUN_UNTIL(s, scene_exists(s, path));
    text = scene_read(s, path);
    program = atoi(text);
    (void)process_state(program, &parent);
    assert_true(parent > 1);
    assert_int_equal(kill(parent, SIGKILL), 0);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    assert_string_equal(scene_find(s, &create.kernel_id)->reason, "monitor-lost");
    assert_false(scene_find(s, &create.kernel_id)->has_exit);
    letter = process_state(program, &parent);
    assert_row(letter == 'X' || letter == 'Z', "the program lives on: %c", letter);
}

static void test_damaged_order_ends(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("sleep 1000");
    char path[128], id[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *spec = NULL;

    scene_create(s, &create);
    RUN_UNTIL(s, scene_find(s, &create.kernel_id)->state == MSG_KERNEL_RUNNING);
    scene_stop_agent(s);
    (void)snprintf(path, sizeof(path), "kernels/%s/spec.json", uuid_format(&create.kernel_id, id));
    spec = settings_path(&s->settings, path);
    assert_int_equal(fs_write_atomic(AT_FDCWD, spec, "{", 1, 0600, NULL), 0);
    scene_start_agent(s);
    RUN_UNTIL(s, scene_find(s, &create.kernel_id)->state == MSG_KERNEL_ERROR);
    scene_forget(s, &create.kernel_id, 1);
    RUN_UNTIL(s, s->inventory == 0);
}

/* ---- after a restart of the machine ---- */

/* Let the file 'accepted' begin as another run of the machine would have begun it. */
static void pretend_reboot(struct scene *s)
{
    AQ_CLEANUP(aq_freep) char *path = settings_path(&s->settings, "accepted");
    AQ_CLEANUP(aq_freep) char *text = scene_read(s, "accepted");

    assert_non_null(text);
    memset(text, '0', strcspn(text, "\n"));
    assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

/* A file of kernels/ID, which may lie deeper. */
static const char *kernel_path(const struct uuid *id, const char *folder, const char *name,
                               char path[128])
{
    char text[UUID_TEXT_MAX];

    (void)snprintf(path, 128, "kernels/%s/%s/%s", uuid_format(id, text), folder, name);
    return path;
}

static void test_reboot_starts_nothing_again(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create lost = scene_order("echo x >>count; >ready; sleep 1000"),
                             done = scene_order("exit 3"), gone = scene_order("sleep 1000"),
                             foreign = scene_order("sleep 1000");
    struct msg_kernel_create *const orders[] = { &lost, &done, &gone, &foreign };
    char path[128];
    int connects;
    AQ_CLEANUP(aq_freep) char *count = NULL;
    AQ_CLEANUP(aq_freep) char *folder = NULL;
    AQ_CLEANUP(aq_freep) char *record = NULL;
    AQ_CLEANUP(aq_freep) char *record_path = NULL;

    for (size_t i = 0; i < AQ_COUNT(orders); i++) {
        orders[i]->spec.slots = "{\"cpu\":\"1\"}";
        scene_create(s, orders[i]);
        RUN_UNTIL(s, scene_find(s, &orders[i]->kernel_id)->was_running);
    }
    (void)kernel_path(&lost.kernel_id, "work", "ready", path);
    RUN_UNTIL(s, scene_is_final(s, &done.kernel_id) && scene_exists(s, path));
    scene_destroy(s, &lost.kernel_id, 0);
    scene_destroy(s, &gone.kernel_id, 0);
    scene_destroy(s, &foreign.kernel_id, 0);
    RUN_UNTIL(s, scene_is_final(s, &lost.kernel_id) && scene_is_final(s, &gone.kernel_id)
                     && scene_is_final(s, &foreign.kernel_id));
    scene_stop_agent(s);

    /* what a power failure may leave: no record, no directory, another kernel's record */
    folder = settings_path(&s->settings, kernel_path(&lost.kernel_id, "run/1", "exit.json", path));
    assert_int_equal(unlink(folder), 0);
    free(folder);
    folder = settings_path(&s->settings, kernel_path(&gone.kernel_id, "", "", path));
    assert_int_equal(fs_remove_tree(AT_FDCWD, folder, NULL), 0);
    record = scene_read(s, kernel_path(&done.kernel_id, "run/1", "exit.json", path));
    record_path = settings_path(&s->settings,
                                kernel_path(&foreign.kernel_id, "run/1", "exit.json", path));
    assert_int_equal(fs_write_atomic(AT_FDCWD, record_path, record, strlen(record), 0600, NULL), 0);
    pretend_reboot(s);
    connects = s->connects;
    scene_start_agent(s);
    RUN_UNTIL(s, s->connects > connects); /* nothing comes from the agent before any more */
    s->seen_count = 0;
    s->inventory = 0;
    RUN_UNTIL(s, s->inventory == 4 && scene_is_final(s, &done.kernel_id));

    assert_int_equal(scene_find(s, &done.kernel_id)->exit_code, 3);
    for (size_t i = 0; i < AQ_COUNT(orders); i++) {
        RUN_UNTIL(s, scene_is_final(s, &orders[i]->kernel_id));
        assert_int_equal(scene_find(s, &orders[i]->kernel_id)->attempt, 1);
        if (orders[i] != &done)
            assert_string_equal(scene_find(s, &orders[i]->kernel_id)->reason, "monitor-lost");
        scene_create(s, orders[i]); /* its acknowledgement may have been lost */
    }
    count = scene_read(s, kernel_path(&lost.kernel_id, "work", "count", path));
    assert_string_equal(count, "x\n");
    for (size_t i = 0; i < AQ_COUNT(orders); i++)
        scene_forget(s, &orders[i]->kernel_id, 1);
    RUN_UNTIL(s, s->inventory == 0);
}

/* ---- logs and terminals ---- */

static void test_logs(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("echo one; echo two; echo three");
    char path[128], id[UUID_TEXT_MAX];

    scene_create(s, &create);
    scene_stream(s, &create.kernel_id, "logs", true, 0); /* while it starts, to its end */
    RUN_UNTIL(s, s->stream_closes || s->stream_error);
    if (s->stream_error == 0)
        assert_string_equal(s->bytes.data, "one\ntwo\nthree\n");
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    scene_stream(s, &create.kernel_id, "logs", false, 2);
    RUN_UNTIL(s, s->stream_closes);
    assert_string_equal(s->bytes.data, "two\nthree\n");

    scene_forget(s, &create.kernel_id, 1);
    scene_stream(s, &create.kernel_id, "logs", true, 0); /* while its directory is being moved */
    RUN_UNTIL(s, s->stream_closes);
    assert_string_equal(s->bytes.data, "one\ntwo\nthree\n");
    (void)snprintf(path, sizeof(path), "kernels/%s", uuid_format(&create.kernel_id, id));
    RUN_UNTIL(s, !scene_exists(s, path) && s->inventory == 0);
    scene_stop_agent(s);
    scene_start_agent(s);
    scene_stream(s, &create.kernel_id, "logs", true, 0);
    RUN_UNTIL(s, s->stream_closes);
    assert_int_equal(s->stream_error, 0);
    assert_string_equal(s->bytes.data, "one\ntwo\nthree\n");

    create.kernel_id.bytes[0] ^= 1;
    scene_stream(s, &create.kernel_id, "logs", false, 0);
    RUN_UNTIL(s, s->stream_closes);
    assert_int_equal(s->stream_error, ENOENT);
}

static void test_old_logs_are_pruned(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create orders[5];
    char path[128], id[UUID_TEXT_MAX];

    for (int i = 0; i < 5; i++) {
        orders[i] = scene_order("echo output");
        scene_create(s, &orders[i]);
        RUN_UNTIL(s, scene_is_final(s, &orders[i].kernel_id));
        scene_forget(s, &orders[i].kernel_id, 1);
    }
    for (int i = 0; i < 5; i++) {
        (void)snprintf(path, sizeof(path), "logs/%s", uuid_format(&orders[i].kernel_id, id));
        RUN_UNTIL(s, scene_exists(s, path) == (i >= 2));
    }
}

static void test_silent_kernels_leave_nothing(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order("true");
    char path[128], id[UUID_TEXT_MAX];

    scene_create(s, &create);
    RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
    scene_forget(s, &create.kernel_id, 1);
    (void)snprintf(path, sizeof(path), "kernels/%s", uuid_format(&create.kernel_id, id));
    RUN_UNTIL(s, !scene_exists(s, path) && s->inventory == 0);
    (void)snprintf(path, sizeof(path), "logs/%s", id);
    assert_false(scene_exists(s, path));
}

static void test_terminal(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = scene_order(NULL);
    static const char type[] = "stty size; echo $((6*7)) $TERM\n", leave[] = "exit 5\n";

    scene_create(s, &create);
    RUN_UNTIL(s, scene_find(s, &create.kernel_id)->state == MSG_KERNEL_RUNNING);
    scene_stream(s, &create.kernel_id, "pty", false, 0);
    RUN_UNTIL(s, s->stream_opens);
    assert_true(link_stream_write(s->stream, type, strlen(type)) >= 0);
    RUN_UNTIL(s, strstr(s->bytes.data, "42 xterm-256color"));
    assert_non_null(strstr(s->bytes.data, "30 100"));
    assert_true(link_stream_write(s->stream, leave, strlen(leave)) >= 0);
    RUN_UNTIL(s, s->stream_closes && scene_is_final(s, &create.kernel_id));
    assert_int_equal(scene_find(s, &create.kernel_id)->exit_code, 5);
    assert_string_equal(scene_find(s, &create.kernel_id)->reason, "self-terminated");

    scene_stream(s, &create.kernel_id, "pty", false, 0);
    RUN_UNTIL(s, s->stream_closes);
    assert_int_equal(s->stream_error, ENOENT);
}

/* ---- the agent itself ---- */

static void test_state_folder_has_one_agent(void **state)
{
    struct scene *s = *state;
    static const struct agent_events events = { .on_ready = NULL };
    struct agent_daemon *second = NULL;
    struct aq_error err = { 0 };

    assert_int_equal(agent_new(&s->loop, &s->settings,
                               &(struct agent_runtimes){ .process = s->runtime }, &events, s,
                               &second, &err),
                     -EBUSY);
    assert_null(second);
}

static void test_leftovers_are_cleared(void **state)
{
    struct scene *s = *state;
    AQ_CLEANUP(aq_freep) char *spare = settings_path(&s->settings, "spares/1/work");
    AQ_CLEANUP(aq_freep) char *other = settings_path(&s->settings, "kernels/readme");

    scene_stop_agent(s);
    assert_int_equal(fs_mkdirs(spare, 0700, NULL), 0);
    assert_int_equal(fs_mkdirs(other, 0700, NULL), 0);
    scene_start_agent(s);
    assert_false(scene_exists(s, "spares/1"));
    assert_true(scene_exists(s, "kernels/readme"));
    assert_int_equal(s->inventory, 0);
}

static void test_fenced_agent_says_so(void **state)
{
    struct scene *s = *state;

    link_server_drop(s->server, "node", "you were removed");
    RUN_UNTIL(s, s->rejected[0]);
    assert_string_equal(s->rejected, "refused");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_init, scene_done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_exit_codes),
        TEST(test_environment),
        TEST(test_bootstrap_fails),
        TEST(test_order_runs_once),
        TEST(test_refused_orders),
        TEST(test_unknown_zero_slot_is_fine),
        TEST(test_drained_agent_takes_nothing),
        TEST(test_destroy),
        TEST(test_destroy_before_start),
        TEST(test_restarted_agent_adopts),
        TEST(test_chosen_devices),
        TEST(test_restart_is_a_new_attempt),
        TEST(test_batch_timeout),
        TEST(test_killed_monitor),
        TEST(test_damaged_order_ends),
        TEST(test_logs),
        TEST(test_old_logs_are_pruned),
        TEST(test_silent_kernels_leave_nothing),
        TEST(test_terminal),
        TEST(test_state_folder_has_one_agent),
        TEST(test_leftovers_are_cleared),
        TEST(test_reboot_starts_nothing_again),
        TEST(test_fenced_agent_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
