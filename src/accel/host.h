/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - loads one plugin and serves requests to it */
#ifndef AQ_ACCEL_HOST_H
#define AQ_ACCEL_HOST_H

#include "aliquot/accelerator.h"
#include "base/error.h"
#include "base/strbuf.h"

struct host {
    const struct aq_accelerator *plugin;
    void *handle, *self;
    struct aq_accelerator_host services; /* the plugin has its address */
};

/* Open a plugin that is part of this program. 'path' names it in errors; 'config' is borrowed for
 * the plugin's life, and *ret stays where it is. -ENOEXEC for one that is not a plugin of this ABI,
 * with what is wrong; what open() returned.
 */
int host_open(const struct aq_accelerator *plugin, const char *path, const char *config,
              struct host *ret, struct aq_error *err);

/* Load the shared object and open the plugin. Errors as of host_open(). */
int host_load(const char *path, const char *config, struct host *ret, struct aq_error *err);

/* Serve the requests that come from 'fd' until its end. 0, or -errno. */
int host_serve(struct host *host, int fd, struct aq_error *err);

/* The answer to one request, a line, into 'out'. -EINVAL for a request that is
 * none (nothing is written then).
 */
int host_answer(struct host *host, const char *line, size_t len, struct strbuf *out,
                struct aq_error *err);

#endif
