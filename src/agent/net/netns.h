/* SPDX-License-Identifier: Apache-2.0 */
/* netns.h - network namespaces kept alive by a file
 *
 * Blocking, for worker threads. The calling thread is for moments in the new
 * namespace and always back in its own when a call returns.
 */
#ifndef AQ_AGENT_NET_NETNS_H
#define AQ_AGENT_NET_NETNS_H

#include "base/error.h"

/* Make a namespace, bind it to a new file at 'path' and mount a sysfs that
 * shows it at 'sys', a new directory. *ret is the namespace's descriptor, *ret_nl
 * a route socket in it. After a failure netns_remove() clears what there is.
 */
int netns_create(const char *path, const char *sys, int *ret, int *ret_nl, struct aq_error *err);

/* Call 'fn' in the namespace; what it returns. */
int netns_run(int ns, int (*fn)(const void *data, struct aq_error *err), const void *data,
              struct aq_error *err);

/* Undo both; the namespace goes with its last process. Nothing there is fine. */
int netns_remove(const char *path, const char *sys, struct aq_error *err);

#endif
