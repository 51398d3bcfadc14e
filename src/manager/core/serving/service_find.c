/* SPDX-License-Identifier: Apache-2.0 */
/* service_find.c - model services and their replicas as manager/core/services.h finds them */
#include "manager/core/services.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

const struct model_service *core_find_service_by_id(const struct core *core, const struct uuid *id)
{
    const struct model_service_entry *entry = model_service_entry_find(core, id);

    return entry ? &entry->s : NULL;
}

const struct model_service *core_find_service(const struct core *core, const char *text)
{
    const struct model_service_entry *entry;
    struct uuid id;

    if (uuid_parse(text, &id) == 0)
        return core_find_service_by_id(core, &id);
    entry = model_service_entry_find_named(core, text);
    return entry ? &entry->s : NULL;
}

const struct model_service *core_next_service(const struct core *core,
                                              const struct model_service *after)
{
    const struct list *link =
        after ? ((const struct model_service_entry *)(const void *)after)->all_link.next
              : core->services.next;

    return link == &core->services
               ? NULL
               : &LIST_ENTRY(link, const struct model_service_entry, all_link)->s;
}

const struct session *core_next_replica(const struct core *core,
                                        const struct model_service *service,
                                        const struct session *after)
{
    const struct model_service_entry *entry = (const struct model_service_entry *)(const void *)
        service;
    const struct list *link = after ? session_entry_of(after)->replica->link.next
                                    : entry->replicas.next;

    (void)core;
    return link == &entry->replicas
               ? NULL
               : &LIST_ENTRY(link, const struct replica_entry, link)->session->s;
}
