/* SPDX-License-Identifier: Apache-2.0 */
/* open_data_path.c - opens the data path (data/data.h) as agent.toml says */
#include "agent/agent_internal.h"

#include <errno.h>
#include <string.h>

#include "agent/identity.h"
#include "agent/kernel/kernel_network.h"
#include "agent/settings/net_settings.h"
#include "base/arena.h"
#include "base/log.h"
#include "http/url.h"

static int data_path_open_network(void *data, const struct uuid *kernel_id, int *ret,
                                  struct aq_error *err)
{
    const struct local_kernel *k = kernel_find(data, kernel_id);

    if (!k || !k->is_container)
        return aq_fail_kind(err, ESRCH, "not-found", "the session does not run here");
    return kernel_open_network(k, ret, err);
}

/* "auto" listens on the address that other nodes reach, and nowhere on a machine whose manager is
 * its own, since there everything is.
 */
static void data_path_read_listen(const struct settings *s, const struct link_identity *identity,
                                  struct arena *arena, struct data_conf *conf)
{
    struct address given;

    if (strcmp(s->data_listen, "off") == 0)
        return;
    if (strcmp(s->data_listen, "auto") == 0) {
        conf->host = net_settings_find_address(s, &identity->manager, arena);
        return;
    }
    (void)address_parse(s->data_listen, 0, &given, NULL); /* settings.c has checked it */
    conf->host = arena_strdup(arena, given.host);
    conf->port = given.port;
}

void agent_open_data_path(struct agent_daemon *agent)
{
    const struct settings *s = agent->settings;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct data_conf conf = { .loop = agent->loop,
                              .agent_id = s->id,
                              .run = s->run,
                              .user = s->data_user,
                              .address = s->data_address,
                              .open_network = data_path_open_network,
                              .data = agent };
    struct link_identity identity;
    struct aq_error err = { 0 };

    if (!agent->containers)
        return;
    if (identity_load(s, &identity, &err) == 0) {
        conf.ca = identity.ca;
        conf.cert = identity.cert;
        conf.key = identity.key;
        data_path_read_listen(s, &identity, &arena, &conf);
        (void)data_path_new(&conf, &agent->data_path, &err);
        link_identity_done(&identity);
    }
    if (err.code)
        log_warning("proxies reach apps through the manager: %s", err.text);
}
