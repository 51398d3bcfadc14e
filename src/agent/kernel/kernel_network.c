/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_network.c - see kernel_network.h */
#include "agent/kernel/kernel_network.h"

#include <fcntl.h>

#include "agent/data/app_socket.h"

int kernel_open_network(const struct local_kernel *k, int *ret, struct aq_error *err)
{
    pid_t keeper = k->run && !k->wants_end ? runtime_pid(k->run) : 0;
    int ns;

    if (!keeper)
        return aq_fail_kind(err, ESRCH, "not-found", "the session does not run here");
    if (!k->is_container) {
        *ret = -1;
        return 0;
    }
    if (!k->network)
        return app_socket_open_network(keeper, &k->id, ret, err);
    ns = open(net_get_info(k->network)->namespace_path, O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return aq_fail_kind(err, ESRCH, "not-found", "the container has no network any more");
    *ret = ns;
    return 0;
}
