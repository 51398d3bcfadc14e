/* SPDX-License-Identifier: Apache-2.0 */
/* forwarding.h - switches on forwarding for the node's uplinks
 *
 * Kernels of machines that are no routers forward nothing. What comes from a
 * kernel of ours is let through by the setting of its own interface; for the
 * answers the interface they come in by has to forward too. Where it does
 * not, it is switched on, and a rule (nft_rules.h) keeps everything else out. The
 * machine-wide ip_forward is never touched.
 *
 * A file "forwarding.NAME" in the directory says that the setting is ours, so
 * that any agent of the machine knows to guard it and the last one to undo it.
 */
#ifndef AQ_AGENT_NET_FORWARDING_H
#define AQ_AGENT_NET_FORWARDING_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* True if it must be switched on, or was by one of us. -errno. */
int forwarding_is_ours(int directory, const char *link, struct aq_error *err);
int forwarding_switch_on(int directory, const char *link, struct aq_error *err);
/* Undo all that the directory's files name. */
void forwarding_restore(int directory);

#endif
