/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - the list of an agent's checks */
#include "agent/doctor/doctor_internal.h"

#include <errno.h>

#include "agent/runtime/spawn.h"
#include "base/log.h"

static const struct check doctor_checks[] = {
    { "agent.user", "agent", "user", doctor_check_user },
    { "agent.kernel", "agent", "kernel", doctor_check_kernel },
    { "agent.state", "agent", "state folder", doctor_check_state },
    { "agent.monitor", "agent", "aliquot-monitor", doctor_check_monitor },
    { "agent.identity", "agent", "certificate", doctor_check_identity },
    { "agent.manager", "agent", "manager", doctor_check_manager },
    { "agent.files", "agent", "open files", doctor_check_files },
    { "agent.clock", "agent", "clock", doctor_check_clock },
    { "containers.root", "containers", "rights", doctor_check_root },
    { "containers.overlay", "containers", "overlayfs", doctor_check_overlay },
    { "containers.cgroups", "containers", "cgroups", doctor_check_cgroups },
    { "containers.users", "containers", "user namespaces", doctor_check_users },
    { "containers.scratch", "containers", "scratch space", doctor_check_scratch },
    { "containers.seccomp", "containers", "system calls", doctor_check_seccomp },
    { "containers.runtime", "containers", "OCI runtime", doctor_check_runtime },
    { "containers.inside", "containers", "machine", doctor_check_inside },
    { "containers.network", "containers", "network", doctor_check_network },
    { "containers.cluster", "containers", "network to other nodes", doctor_check_cluster },
    { "containers.rdma", "containers", "RDMA devices", doctor_check_rdma },
    { "containers.images", "containers", "images", doctor_check_images },
    { "containers.ssh", "containers", "SSH", doctor_check_ssh },
    { "containers.volumes", "containers", "volumes", doctor_check_volumes },
    { "gpu.driver", "gpu", "driver", doctor_check_driver },
    { "gpu.plugins", "gpu", "devices", doctor_check_plugins },
    { "gpu.slices", "gpu", "parts of GPUs", doctor_check_slices },
    { .id = NULL },
};

int doctor_run(const struct settings *settings, const char *monitor, const char *runner,
               char *const *parts, int count, struct aq_error *err)
{
    struct doctor doctor = {
        .settings = settings, .monitor = monitor, .runner = runner, .trial_lock = -1
    };
    int r;

    log_init("agent", LOG_LEVEL_ERR); /* whatever matters is a finding */
    r = uv_loop_init(&doctor.loop);
    if (r < 0)
        return aq_fail(err, -r, "start an event loop: %s", uv_strerror(r));
    r = checks_run(doctor_checks, &doctor, parts, count, stdout, err);
    doctor_end_trial(&doctor);
    spawned_leave();
    (void)uv_run(&doctor.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&doctor.loop);
    return r;
}
