/* SPDX-License-Identifier: Apache-2.0 */
/* address_walk.h - in which order a client tries the addresses of managers
 *
 * A round tries each address once, in a random order, so that a thousand agents that lose their
 * leader do not all come to the same manager. Addresses that were given, and those that a leader
 * has named.
 */
#ifndef AQ_LINK_ADDRESS_WALK_H
#define AQ_LINK_ADDRESS_WALK_H

#include "link/message.h"

struct address_walk;

/* 'is_fixed': named managers are not tried. Copies; each address is there once. */
struct address_walk *address_walk_new(const char *const *addresses, size_t count, bool is_fixed);
void address_walk_free(struct address_walk *walk);

/* A leader has named the managers of the cluster, in place of those named before: a copy that is
 * valid until the next call, or NULL if they are the same as before. Ends the round.
 */
const struct msg_managers *address_walk_name(struct address_walk *walk,
                                             const struct link_manager *list, size_t count);

/* Begin a round; 'first' comes first, even if it is not among the addresses. NULL = chance decides. */
void address_walk_begin(struct address_walk *walk, const char *first);

/* The next address of the round, NULL after the last; valid until the next round begins. */
const char *address_walk_next(struct address_walk *walk);

/* How many addresses there are, before doubles are left out. */
size_t address_walk_count(const struct address_walk *walk);

#endif
