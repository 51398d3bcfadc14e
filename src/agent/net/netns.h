/* netns.h - network namespaces that stay by a file
 *
 * Blocking, for worker threads. The calling thread is for moments in the new
 * namespace and always back in its own when a call returns.
 */
#ifndef AQ_AGENT_NET_NETNS_H
#define AQ_AGENT_NET_NETNS_H

#include "base/error.h"

struct mnl_socket;

/* Make a namespace and bind it to a new file at 'path'. *ret is the
 * namespace's descriptor, *ret_nl a route socket in it.
 */
int netns_create(const char *path, int *ret, struct mnl_socket **ret_nl, struct aq_error *err);

/* Undo the file; the namespace goes with its last process. Nothing there is fine. */
int netns_remove(const char *path, struct aq_error *err);

#endif
