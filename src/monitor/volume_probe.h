/* SPDX-License-Identifier: Apache-2.0 */
/* volume_probe.h - is a volume of users' folders there, and can its folders be mounted?
 *
 * A mount of another machine may hang a process that looks at it, forever. So the agent has a process
 * of its own look: "aliquot-monitor --volume PATH", whose exit status is the result.
 */
#ifndef AQ_MONITOR_VOLUME_PROBE_H
#define AQ_MONITOR_VOLUME_PROBE_H

/* 0, or an errno: that of the directory, ENODATA if no storage host has marked it, EPERM if
 * others than its owner and group have permissions on it, EOPNOTSUPP if
 * its file system cannot map users.
 */
int volume_probe(const char *path);

#endif
