/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.h - sessions as durable objects */
#ifndef AQ_MANAGER_CORE_SESSION_LIFECYCLE_H
#define AQ_MANAGER_CORE_SESSION_LIFECYCLE_H

struct durable_ops;

/* For core.session_ops. */
extern const struct durable_ops session_durable_ops;

#endif
