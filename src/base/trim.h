/* SPDX-License-Identifier: Apache-2.0 */
/* trim.h - give memory back that only the start needed */
#ifndef AQ_BASE_TRIM_H
#define AQ_BASE_TRIM_H

/* Return free heap to the system and drop what this process has mapped of
 * files and never changed, text and tables: it is read again from the page
 * cache where it is still used. Loading libraries touches megabytes that
 * nobody looks at again.
 */
void memory_trim(void);

#endif
