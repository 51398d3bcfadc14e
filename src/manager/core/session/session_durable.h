/* SPDX-License-Identifier: Apache-2.0 */
/* session_durable.h - sessions as durable objects */
#ifndef AQ_MANAGER_CORE_SESSION_SESSION_DURABLE_H
#define AQ_MANAGER_CORE_SESSION_SESSION_DURABLE_H

struct durable_ops;

/* For core.session_ops. */
extern const struct durable_ops session_durable_ops;

#endif
