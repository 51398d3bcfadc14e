/* SPDX-License-Identifier: Apache-2.0 */
/* role.h - what aliquot-k8s does as one of its sub-commands that go on until they are ended */
#ifndef AQ_K8S_ROLE_H
#define AQ_K8S_ROLE_H

#include <uv.h>

#include "base/error.h"
#include "k8s/settings.h"

struct role {
    const char *name;  /* of the sub-command */
    const char *usage; /* a line for --help */
    /* Begin. 'settings' are borrowed. */
    int (*begin)(uv_loop_t *loop, const struct settings *settings, void **ret,
                 struct aq_error *err);
    /* Its handles are gone after the loop has run until nothing is left. */
    void (*end)(void *data);
};

extern const struct role plugin_role, keep_role, scheduler_role, uninstall_role;

#endif
