/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - the manager as a service: core and HTTP server on one loop */
#ifndef AQ_MANAGER_DAEMON_H
#define AQ_MANAGER_DAEMON_H

#include <stdbool.h>

#include "manager/conf.h"

/* Serve until SIGINT or SIGTERM. 0 after an orderly end. */
int daemon_run(const struct manager_conf *conf, bool dev, struct aq_error *err);

#endif
