/* SPDX-License-Identifier: Apache-2.0 */
/* protocol.h - what the agent and the process of an accelerator plugin say
 *
 * "aliquot-accel PLUGIN.so [CONFIG]" loads the plugin and serves descriptor
 * ACCEL_DESCRIPTOR, a stream socket: each request and each answer is one JSON
 * object on one line of at most ACCEL_LINE_MAX bytes. One request at a time.
 *
 *   {"id":1,"call":"describe"}
 *   {"id":2,"call":"attach","grants":[["cuda.shares","GPU-1",600000],...]}
 *   {"id":3,"call":"measure","targets":[{"grants":[...],"pids":[12,...]},...]}
 *
 * and, with the members of include/aliquot/accelerator.h under their names
 * (those that are absent, empty or 0 may be missing),
 *
 *   {"id":1,"result":{"identity":{...},"info":{"driver":"535"},"slots":[{...}],"devices":[{...}]}}
 *   {"id":2,"result":{"needs":[{...}],"parts":[{...}]}}
 *   {"id":3,"result":{"metrics":[{...}]}}
 *   {"id":3,"error":"text","code":5}
 *
 * A plugin that cannot be loaded is told with id 0; then the process ends. It
 * also ends when the other end is closed, and when its parent has died.
 */
#ifndef AQ_ACCEL_PROTOCOL_H
#define AQ_ACCEL_PROTOCOL_H

#define ACCEL_DESCRIPTOR 3
#define ACCEL_LINE_MAX (16u << 20)
#define ACCEL_ROOT_VARIABLE "ALIQUOT_ACCEL_ROOT" /* stands for "/" where plugins look; tests */

#define ACCEL_DESCRIBE "describe"
#define ACCEL_ATTACH "attach"
#define ACCEL_MEASURE "measure"

#endif
