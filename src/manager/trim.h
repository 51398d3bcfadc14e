/* trim.h - give memory back that only the start needed */
#ifndef AQ_MANAGER_TRIM_H
#define AQ_MANAGER_TRIM_H

/* Return free heap to the system and drop this process's mapping of program
 * text, which is read again from the page cache where it is still used:
 * loading libraries touches megabytes of text that never run again.
 */
void memory_trim(void);

#endif
