/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_spec.c - what a kernel is told: the table of its members */
#include "model/kernel_spec.h"

#include "model/wire_fields.h"

/* clang-format off */
#define FIELD(member, kind_) { #member, kind_, offsetof(struct kernel_spec, member), 0 }
/* clang-format on */

static const struct wire_field kernel_spec_fields[] = {
    FIELD(session_name, WIRE_TEXT),
    FIELD(session_type, WIRE_TEXT),
    FIELD(role, WIRE_TEXT),
    FIELD(index, WIRE_NUMBER),
    FIELD(rank, WIRE_NUMBER),
    FIELD(hostname, WIRE_TEXT),
    FIELD(cluster_size, WIRE_NUMBER),
    FIELD(replicas, WIRE_TEXT),
    FIELD(hosts, WIRE_TEXT),
    FIELD(job_number, WIRE_NUMBER),
    FIELD(attempts, WIRE_NUMBER),
    FIELD(is_held, WIRE_FLAG),
    FIELD(access_key, WIRE_TEXT),
    FIELD(user_id, WIRE_TEXT),
    FIELD(user_email, WIRE_TEXT),
    FIELD(user_name, WIRE_TEXT),
    FIELD(group_id, WIRE_TEXT),
    { "slots", WIRE_JSON, offsetof(struct kernel_spec, slots), WIRE_REQUIRED },
    FIELD(devices, WIRE_JSON),
    FIELD(network, WIRE_JSON),
    FIELD(cwd, WIRE_TEXT),
    FIELD(ssh_seed, WIRE_TEXT),
    FIELD(ssh_public_key, WIRE_TEXT),
    FIELD(dotfiles, WIRE_JSON),
    FIELD(resource_group, WIRE_TEXT),
    FIELD(lease_usec, WIRE_NUMBER),
    FIELD(lease_grace_usec, WIRE_NUMBER),
    FIELD(probe_port, WIRE_NUMBER),
    FIELD(probe_path, WIRE_TEXT),
    FIELD(probe_status, WIRE_NUMBER),
    FIELD(probe_interval_usec, WIRE_NUMBER),
    FIELD(probe_timeout_usec, WIRE_NUMBER),
    FIELD(probe_retries, WIRE_NUMBER),
    { NULL, WIRE_BESIDE, offsetof(struct kernel_spec, session), WIRE_FOR_AGENT,
      .of = &session_spec_shape },
    WIRE_FIELDS_END,
};

const struct wire_shape kernel_spec_shape = { .fields = kernel_spec_fields };
