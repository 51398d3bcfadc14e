/* order.h - from a kernel.create message to what a runtime starts
 *
 * The order is kept as it came, in spec.json. Its environment becomes, later
 * ones winning: a few defaults, what the user asked for, what its accelerators
 * need, and the variables that programs made for Backend.AI look for.
 */
#ifndef AQ_AGENT_ORDER_H
#define AQ_AGENT_ORDER_H

#include "agent/accel/accel.h"
#include "agent/settings.h"
#include "alloc/grant.h"
#include "base/arena.h"
#include "link/message.h"
#include "model/slot.h"

/* What the agent itself checks: -EINVAL with the member as field. */
int order_check(const struct msg_kernel_create *order, struct aq_error *err);

/* The text of spec.json with this attempt; caller frees. */
int order_write(const struct msg_kernel_create *order, int64_t attempt, char **ret,
                struct aq_error *err);
/* Read spec.json; message_done() when done with it. */
int order_read(const char *path, struct message *ret, struct aq_error *err);

/* The text of config/resource.txt; caller frees. */
int order_write_resource(const struct slots *slots, const struct alloc_grant *grant,
                         const struct accel_attachment *attachment,
                         const struct slot_types *types, char **ret, struct aq_error *err);

/* NULL-terminated, in the arena; NULL if memory is short. 'work' is the
 * absolute path of the work folder.
 */
const char *const *order_argv(const struct msg_kernel_create *order,
                              const struct settings *settings, struct arena *arena);
const char *const *order_environ(const struct msg_kernel_create *order,
                                 const struct settings *settings, const char *work,
                                 const struct accel_attachment *attachment, struct arena *arena);

/* The text of config/environ.txt; caller frees; NULL if memory is short. */
char *order_write_environ(const char *const *variables);

#endif
