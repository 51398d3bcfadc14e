/* SPDX-License-Identifier: Apache-2.0 */
/* cdi.h - resolves device names of the Container Device Interface (CDI)
 *
 * A plugin may name what a container needs as "vendor.com/class=name". What
 * that is stands in the vendor's specifications, JSON or YAML files in directories
 * such as /etc/cdi: device files, mounts, variables and groups
 * (https://github.com/cncf-tags/container-device-interface, SPEC.md, versions
 * up to 0.8). Hooks are programs of the vendor's that the OCI runtime runs on the
 * node while it makes the container. A device with hooks is rejected unless the
 * administrator allows them, and then only createContainer is: what else there
 * is would run before the container's namespaces are there, in the container's
 * place, or when nobody waits for it.
 */
#ifndef AQ_ACCELHOST_CDI_H
#define AQ_ACCELHOST_CDI_H

#include <jansson.h>

#include "accelhost/accel.h"

#define CDI_FILE_MAX (1u << 20)
#define CDI_DEPTH_MAX 16     /* of nesting */
#define CDI_VALUES_MAX 65536 /* in a file */

/* A specification's text, JSON or YAML without anchors and tags, as JSON; every
 * scalar of YAML is a string. Caller drops it. NULL with -EINVAL in 'err'.
 */
json_t *cdi_parse(const char *text, size_t len, bool is_yaml, struct aq_error *err) AQ_UNTRUSTED;

/* Add what the device 'name' of a specification is to 'to', once what all devices
 * of the specification need if 'with_common'. 0; -ENOENT if it is not of it;
 * -EINVAL naming what cannot be.
 */
int cdi_apply(const json_t *spec, const char *name, bool with_common, struct accel_attachment *to,
              struct aq_error *err) AQ_UNTRUSTED;

/* Add what the names in attachment->cdi are, from the files of the directories; a
 * file of a later directory goes before one of an earlier. -ENOENT with the name
 * as field if no file has it, -EINVAL with the file in the text, -EPERM with
 * the setting as field for hooks without 'may_run_hooks'; kind is
 * "accelerator-failed".
 */
int cdi_resolve(const struct conf_list *directories, bool may_run_hooks,
                struct accel_attachment *attachment, struct aq_error *err);

#endif
