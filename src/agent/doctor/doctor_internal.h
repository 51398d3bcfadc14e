/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_internal.h - what the checks of an agent's machine share */
#ifndef AQ_AGENT_DOCTOR_DOCTOR_INTERNAL_H
#define AQ_AGENT_DOCTOR_DOCTOR_INTERNAL_H

#include <uv.h>

#include "agent/doctor/doctor.h"
#include "agent/runtime/oci_host.h"
#include "check/check.h"

struct doctor {
    const struct settings *settings;
    const char *monitor, *runner;
    uv_loop_t loop;
    struct settings trial_settings; /* with the trial's state directory; texts are borrowed */
    char *trial_directory, *kept, *kept_run; /* the last two were there before */
    int trial_lock;
    bool has_tried, has_directory, has_runtime;
    struct aq_error trial_err; /* why there is no trial directory, or no 'host' */
    struct oci_host host;      /* if trial_err.code is 0 */
};

/* The directory for trials, below the state directory, and what the node has for
 * containers, found as by an agent that starts. 0, or -errno as before.
 */
int doctor_try(struct doctor *doctor);
/* True if containers could run here at all, and that was tried. */
bool doctor_can_try(struct doctor *doctor);
/* Remove all that was made for trials. */
void doctor_end_trial(struct doctor *doctor);

/* Run fn() in a process with mounts and a network of its own, for at most
 * 'timeout_msec'. Returns what it does, or why it could not be run.
 */
int doctor_run_apart(int (*fn)(struct doctor *doctor, struct aq_error *err), struct doctor *doctor,
                     int timeout_msec, struct aq_error *err);

/* The checks of doctor.c's table. */

/* machine.c */
void doctor_check_user(void *data, struct finding *ret);
void doctor_check_kernel(void *data, struct finding *ret);
void doctor_check_state(void *data, struct finding *ret);
void doctor_check_monitor(void *data, struct finding *ret);
void doctor_check_identity(void *data, struct finding *ret);
void doctor_check_manager(void *data, struct finding *ret);
void doctor_check_files(void *data, struct finding *ret);
void doctor_check_clock(void *data, struct finding *ret);
/* containers.c */
void doctor_check_root(void *data, struct finding *ret);
void doctor_check_overlay(void *data, struct finding *ret);
void doctor_check_cgroups(void *data, struct finding *ret);
void doctor_check_users(void *data, struct finding *ret);
void doctor_check_scratch(void *data, struct finding *ret);
void doctor_check_seccomp(void *data, struct finding *ret);
void doctor_check_runtime(void *data, struct finding *ret);
void doctor_check_inside(void *data, struct finding *ret);
void doctor_check_network(void *data, struct finding *ret);
void doctor_check_images(void *data, struct finding *ret);
void doctor_check_ssh(void *data, struct finding *ret);
/* cluster.c */
void doctor_check_cluster(void *data, struct finding *ret);
void doctor_check_rdma(void *data, struct finding *ret);
/* volumes.c */
void doctor_check_volumes(void *data, struct finding *ret);
/* gpu.c */
void doctor_check_driver(void *data, struct finding *ret);
void doctor_check_plugins(void *data, struct finding *ret);
void doctor_check_slices(void *data, struct finding *ret);

#endif
