/* SPDX-License-Identifier: Apache-2.0 */
/* manager_list.h - a copy of the list of a cluster's managers, as a message and as its text */
#ifndef AQ_LINK_MANAGER_LIST_H
#define AQ_LINK_MANAGER_LIST_H

#include "link/message.h"

struct manager_list {
    struct message msg; /* MSG_MANAGERS; MSG_UNKNOWN: none were ever set */
    struct strbuf text; /* of msg */
};

void manager_list_init(struct manager_list *list);
void manager_list_done(struct manager_list *list);

/* Copy these, of which at most LINK_MANAGERS_MAX are kept. 1; 0 = the same as before; -EINVAL for one
 * without a name or an address, with the list as before.
 */
int manager_list_set(struct manager_list *list, const struct link_manager *managers, size_t count,
                     struct aq_error *err);

/* The same from a text of such a message. */
int manager_list_read(struct manager_list *list, const char *text, size_t len,
                      struct aq_error *err) AQ_UNTRUSTED;

#endif
