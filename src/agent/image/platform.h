/* SPDX-License-Identifier: Apache-2.0 */
/* platform.h - which platforms of an index this machine runs, and how well
 *
 * The variants of amd64 are the levels of the x86-64 psABI, "v1" to "v4"; an image that says
 * none is for all processors. Pure, but for platform_level(), which reads /proc/cpuinfo.
 */
#ifndef AQ_AGENT_IMAGE_PLATFORM_H
#define AQ_AGENT_IMAGE_PLATFORM_H

#define PLATFORM_LEVEL_MAX 4

/* The highest level whose features are all among these flags, parted by blanks; at least 1. */
int platform_amd64_level(const char *flags);

/* That of this machine's processor; the highest where nothing says which. */
int platform_level(void);

/* How well an image of the architecture (OCI name) with this variant ("" = none) runs on a
 * processor of the level: more is better, -1 = not at all.
 */
int platform_score(const char *architecture, const char *variant, int level);

#endif
