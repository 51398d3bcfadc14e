/* SPDX-License-Identifier: Apache-2.0 */
/* service_app.h - apps of a session that runs, by their names */
#ifndef AQ_CLI_TUNNEL_SERVICE_APP_H
#define AQ_CLI_TUNNEL_SERVICE_APP_H

#include "cli/session/session.h"

struct service_app_opts {
    const char *bind, *port, *kernel; /* NULL = any of this machine; the app's first; main1 */
    bool open, url;
};

/* Start one of the list and print the address at which it is reached: that of the cluster's proxy
 * with 'open' or 'url', if there is one, else one of this machine, until Ctrl-C. 'open' shows it in
 * a browser, where there is one. -ENOENT: it is not in the list, or has no such port; others as
 * cli_call() and forward_run().
 */
int service_app_reach(struct cli *cli, const struct follow_session *session, const json_t *apps,
                      const char *name, const struct service_app_opts *opts, struct aq_error *err);

#endif
