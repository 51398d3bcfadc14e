/* SPDX-License-Identifier: Apache-2.0 */
/* offer.h - which part of the machine's cores, memory and devices this agent offers
 *
 * Several agents may share a machine: each offers some of its cores, a part of
 * its memory, some of its devices or a part of each. What they offer together
 * is never more than there is; claims.h sees to that among running agents.
 */
#ifndef AQ_AGENT_RESOURCES_OFFER_H
#define AQ_AGENT_RESOURCES_OFFER_H

#include "agent/settings/settings.h"
#include "alloc/alloc_map.h"

enum offer_mode {
    OFFER_EXCLUSIVE, /* what is offered here is offered by no other agent */
    OFFER_SHARED,    /* others may offer the same again */
    OFFER_AUTO,      /* one of several equal parts */
};

struct offer {
    enum offer_mode mode;
    int64_t part, parts;       /* OFFER_AUTO: 0 ... parts - 1 of parts */
    struct conf_list cores;    /* of the settings, borrowed: "0-3", "8" */
    struct conf_list devices;  /* "KIND[.SLOT]/ID[=AMOUNT]", '*' in ID; none = all */
    struct conf_list reserved; /* "KIND[.SLOT]/ID=BYTES", '*' in ID */
};

/* Read and check the settings. -EINVAL with the setting as field. */
int offer_read(const struct settings *settings, struct offer *ret, struct aq_error *err);

/* May this core be offered? Before cores are reserved and divided. */
bool offer_has_core(const struct offer *offer, int core);

/* Lower the capacity of a device in shares by the part of its memory that is
 * reserved for the node, up to a whole quantum. -EINVAL with the setting as
 * field if that leaves nothing, or if a device that is given whole is named.
 */
int offer_reserve(const struct offer *offer, const struct alloc_slot *slots, size_t slot_count,
                  uint64_t memory_bytes, struct alloc_device *device, struct aq_error *err);

/* Set each capacity to what this agent offers of the device, 0 for none of it.
 * Whole devices and cores go to the agents in runs of neighbours, the first
 * agents get one more where they do not divide evenly; shares are divided in
 * quanta, memory in multiples of 'align' bytes. 'slots' are those of the map.
 * -EINVAL with the setting as field if one of its amounts cannot be.
 */
int offer_apply(const struct offer *offer, const struct alloc_slot *slots, size_t slot_count,
                int64_t align, struct alloc_device *devices, size_t device_count,
                struct aq_error *err);

#endif
