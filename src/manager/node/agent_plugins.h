/* SPDX-License-Identifier: Apache-2.0 */
/* agent_plugins.h - what agents say of their accelerator plugins, as clients want it
 *
 * 'plugins' is the JSON list that agents send (src/agent/resources/plugins_json.c), or
 * NULL. Nothing of it is believed: what is not of the right type is left out.
 */
#ifndef AQ_MANAGER_NODE_AGENT_PLUGINS_H
#define AQ_MANAGER_NODE_AGENT_PLUGINS_H

#include "base/jsonw.h"
#include "manager/core/core.h"

/* {"cpu": {"version": ...}, "mem": {...}, "cuda": {"version": ..., "cuda_support": true, ...}}:
 * Agent.compute_plugins of Backend.AI. 'version' is the agent's.
 */
void plugins_write_compute(const char *version, const char *plugins, struct jsonw *w);

/* {"cuda": {"status": "healthy", "status_info": null, "metadata": {...}}}:
 * Agent.hardware_metadata.
 */
void plugins_write_hardware(const char *plugins, struct jsonw *w);

#endif
