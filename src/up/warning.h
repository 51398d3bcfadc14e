/* SPDX-License-Identifier: Apache-2.0 */
/* warning.h - what sessions may do here that they may not on a node of a root agent's usual
 * settings
 */
#ifndef AQ_UP_WARNING_H
#define AQ_UP_WARNING_H

#include <stdbool.h>

/* Paragraphs for the welcome; "" = nothing. */
const char *warning_of_sessions(bool is_dev);

#endif
