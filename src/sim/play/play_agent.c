/* SPDX-License-Identifier: Apache-2.0 */
/* A real agent on a simulated machine: its settings, its certificate, its crashes and boots. */
#include "sim/play/play_agent.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "agent/agent.h"
#include "aliquot/accelerator.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "link/pki.h"
#include "manager/core/state/state.h"
#include "sim/play/play_runtime.h"

#define CERTIFICATE_DAYS 30
#define GPU_MEMORY (INT64_C(40) << 30)
#define GPU_PROCESSORS 108
#define ACCEPTED_MAX (16u << 20)

extern const struct aq_accelerator aq_accelerator; /* plugins/mock */

struct play_agent {
    simuv_host host;
    struct settings settings;
    struct play_machine *machine;
    uv_loop_t *loop; /* of this process; those that crashed are abandoned */
    struct runtime *runtime;
    struct agent_daemon *daemon; /* NULL = down */
    bool has_crashed;
};

static void play_agent_need(int r, const struct aq_error *err)
{
    if (r == 0)
        return;
    log_error("a simulated agent cannot start: %s", err->text);
    exit(EXIT_FAILURE);
}

static void play_agent_write(const struct play_agent *a, const char *name, const char *text)
{
    AQ_CLEANUP(aq_freep) char *path = settings_path(&a->settings, name);
    struct aq_error err = { 0 };

    play_agent_need(fs_write_quick(AT_FDCWD, path, text, strlen(text), 0600, &err), &err);
}

/* What joining with a token leaves. */
static void play_agent_join(const struct play_agent *a, struct play_manager *m)
{
    AQ_CLEANUP(aq_freep) char *key = NULL;
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    AQ_CLEANUP(aq_freep) char *address = aq_format("%s\n", play_manager_address(m));
    struct pki_ca *ca = play_manager_core(m)->ca;
    const char *id = a->settings.id;
    struct aq_error err = { 0 };

    play_agent_need(fs_mkdirs(a->settings.state, 0700, &err), &err);
    play_agent_need(pki_request_new(id, &key, &csr, &err), &err);
    play_agent_need(pki_issue_agent(ca, csr, id, CERTIFICATE_DAYS, &cert, NULL, &err), &err);
    play_agent_write(a, "agent.key", key);
    play_agent_write(a, "agent.crt", cert);
    play_agent_write(a, "ca.crt", pki_ca_cert(ca));
    play_agent_write(a, "manager", address);
}

/* The cards of mock-accelerator.toml: each is one share, whatever its size. */
static char *play_agent_describe_gpus(const struct play_agent_spec *spec)
{
    struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, "slot_name = \"cuda\"\nunit_mem = 0\nunit_proc = 0\nquantum_size = 0.05\n");
    if (spec->whole_gpus > 0)
        strbuf_addf(&text, "[[device]]\nid = \"GPU-%s-whole-*\"\nallocation_mode = \"discrete\"\n",
                    spec->id);
    for (int i = 0; i < spec->gpus + spec->whole_gpus; i++)
        strbuf_addf(&text,
                    "[[devices]]\nmother_uuid = \"GPU-%s-%s%d\"\nmodel_name = \"Simulated\"\n"
                    "subproc_count = %d\nmemory_size = %" PRId64 "\nis_mig_device = false\n",
                    spec->id, i < spec->gpus ? "" : "whole-", i, GPU_PROCESSORS,
                    spec->gpu_memory ? spec->gpu_memory : GPU_MEMORY);
    return strbuf_steal(&text);
}

static void play_agent_add_gpus(struct play_agent *a, const struct play_agent_spec *spec,
                                const char *home)
{
    AQ_CLEANUP(aq_freep) char *text = play_agent_describe_gpus(spec);
    struct accel_settings *accel = &a->settings.accel;
    struct aq_error err = { 0 };

    accel->mock = aq_format("%s/gpus.toml", home);
    accel->linked = &aq_accelerator;
    play_agent_need(fs_write_quick(AT_FDCWD, accel->mock, text, strlen(text), 0600, &err), &err);
}

/* Without anything that needs child processes or the machine's own devices. Those of a simulated
 * machine stay the same: looking again each half minute would only take time.
 */
static void play_agent_load_settings(struct play_agent *a, const struct play_agent_spec *spec,
                                     const char *ip, const struct play_manager *m)
{
    const char *scratch = play_manager_scratch(m);
    AQ_CLEANUP(aq_freep) char *home = aq_format("%s/%s", scratch, spec->id);
    AQ_CLEANUP(aq_freep) char *state = aq_format("%s/state", home);
    AQ_CLEANUP(aq_freep) char *file = aq_format("%s/agent.toml", home);
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "id = \"%s\"\n[resource]\ncpus = %d\nreserved-mem = 0\n"
        "allocation-mode = \"shared\"\n[process]\nshell = \"/bin/sh\"\n[metrics]\n"
        "listen = \"off\"\n[accelerators]\nplugins = []\nrescan = \"1h\"\n[statistics]\ninterval = 0\n[runtime]\ndriver = \"process\"\n"
        "folder = \"%s/run\"\n",
        spec->id, spec->cpus, home);
    struct aq_error err = { 0 };

    play_agent_need(fs_mkdirs(home, 0700, &err), &err);
    play_agent_need(fs_write_quick(AT_FDCWD, file, text, strlen(text), 0600, &err), &err);
    play_agent_need(settings_load(file, state, SETTINGS_DEV, &a->settings, &err), &err);
    free(a->settings.address);
    a->settings.address = aq_strdup(ip);
    a->settings.memory_bytes = spec->memory;
    a->settings.ping_usec = PLAY_PING_USEC;
    a->settings.dead_usec = PLAY_DEAD_USEC;
    if (spec->gpus + spec->whole_gpus > 0)
        play_agent_add_gpus(a, spec, home);
}

static void play_agent_on_ready(void *data)
{
    (void)data;
}

static void play_agent_on_rejected(void *data, const char *kind, const char *text)
{
    const struct play_agent *a = data;

    log_error("the manager refuses agent %s (%s): %s", a->settings.id, kind, text);
}

void play_agent_boot(struct play_agent *a)
{
    static const struct agent_events events = { .on_ready = play_agent_on_ready,
                                                .on_rejected = play_agent_on_rejected };
    struct agent_runtimes runtimes;
    struct aq_error err = { 0 };

    if (a->has_crashed)
        simuv_boot(a->host);
    a->has_crashed = false;
    simuv_enter(a->host);
    a->loop = aq_alloc(sizeof(*a->loop));
    (void)uv_loop_init(a->loop);
    a->runtime = play_runtime_new(a->machine, a->loop);
    runtimes = (struct agent_runtimes){ .process = a->runtime, .no_containers = "" };
    play_agent_need(agent_new(a->loop, &a->settings, &runtimes, &events, a, &a->daemon, &err),
                    &err);
    simuv_leave();
}

struct play_agent *play_agent_new(simuv_host host, const char *ip,
                                  const struct play_agent_spec *spec, struct play_manager *m)
{
    struct play_agent *a = aq_alloc(sizeof(*a));

    a->host = host;
    simuv_enter(host);
    play_agent_load_settings(a, spec, ip, m);
    play_agent_join(a, m);
    simuv_leave();
    a->machine = play_machine_new(host, a->settings.id);
    play_agent_boot(a);
    return a;
}

void play_agent_crash(struct play_agent *a, bool is_silent)
{
    a->daemon = NULL;
    a->runtime = NULL;
    a->loop = NULL;
    play_machine_abandon(a->machine);
    if (!a->has_crashed)
        simuv_crash(a->host, is_silent);
    a->has_crashed = true;
}

/* The list of accepted commands names the run of the machine that it is of. */
static void play_agent_change_run(const struct play_agent *a)
{
    AQ_CLEANUP(aq_freep) char *path = settings_path(&a->settings, "accepted");
    AQ_CLEANUP(strbuf_donep) struct strbuf run = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct aq_error err = { 0 };
    char *at;

    if (fs_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &run, &err) < 0
        || fs_read(AT_FDCWD, path, ACCEPTED_MAX, &text, &err) < 0)
        return;
    at = memmem(text.data, text.len, run.data, strcspn(run.data, "\n"));
    if (!at)
        return;
    memset(at, '0', strcspn(run.data, "\n"));
    play_agent_need(fs_write_quick(AT_FDCWD, path, text.data, text.len, 0600, &err), &err);
}

void play_agent_crash_machine(struct play_agent *a)
{
    play_agent_crash(a, true);
    play_machine_crash(a->machine);
    play_agent_change_run(a);
}

void play_agent_stop(struct play_agent *a)
{
    if (!a->daemon)
        return;
    simuv_enter(a->host);
    agent_free(AQ_TAKE(a->daemon));
    runtime_free(AQ_TAKE(a->runtime));
    (void)uv_run(a->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(a->loop);
    free(AQ_TAKE(a->loop));
    simuv_leave();
}
